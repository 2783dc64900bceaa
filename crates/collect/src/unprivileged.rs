//! Runs a test as a user whom mode bits bind: root ignores them.

use std::path::Path;
use std::process::Command;

/// Set in the process that runs without privileges.
const MARK: &str = "STORSCOPE_UNPRIVILEGED";

/// True when the calling test is to go on in this process. As root, runs the test named `test` (its full path in the
/// crate) again as *nobody*, panics when that fails, and returns false.
pub(crate) fn go_on(test: &str) -> bool {
    if !nix::unistd::geteuid().is_root() {
        return true;
    }
    assert!(std::env::var_os(MARK).is_none(), "still root without privileges");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test} as nobody: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Takes all permissions from `path` and asserts that reading it is denied.
pub(crate) fn deny(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let error = std::fs::File::open(path).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}
