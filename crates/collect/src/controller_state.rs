//! `state` of an NVMe controller (drivers/nvme/host/sysfs.c, `nvme_sysfs_show_state`).

use crate::attribute::{MAX_ATTRIBUTE, read_required, require_folder};
use std::path::Path;
use storscope_model::fault::{Fault, quote};
use storscope_model::sample::nvme::ControllerState;

/// The state of the controller whose sysfs folder is `controller`: the whole line, as the kernel prints it.
///
/// # Errors
/// [`Fault::Gone`] when there is no such folder, else when the file is absent, empty, too long or cannot be read.
pub fn read(controller: &Path) -> Result<ControllerState, Fault> {
    require_folder(controller)?;
    let path = controller.join("state");
    let bytes = read_required(&path, MAX_ATTRIBUTE)?;
    parse(&bytes).ok_or_else(|| Fault::Parse {
        path: path.display().to_string(),
        line: 1,
        what: format!("not a state: {}", quote(&bytes)),
    })
}

/// Longest line that is taken for a state, in bytes.
const MAX_STATE: usize = 64;

/// One line of printable ASCII.
pub(crate) fn parse(bytes: &[u8]) -> Option<ControllerState> {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let printable = line.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let state = std::str::from_utf8(line).ok()?;
    let sound = printable && !state.trim().is_empty() && line.len() <= MAX_STATE;
    sound.then(|| ControllerState { state: state.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    #[test]
    fn the_whole_line_counts() {
        let dir = tempfile::tempdir().unwrap();
        for (text, live) in
            [("live\n", true), ("live", true), ("deleting (no IO)\n", false), ("not live\n", false), ("live \n", false)]
        {
            std::fs::write(dir.path().join("state"), text).unwrap();
            let state = read(dir.path()).unwrap();
            assert_eq!(state.state, text.trim_end_matches('\n'));
            assert_eq!(state.is_live(), live, "{text:?}");
        }
    }

    #[test]
    fn absent_and_malformed() {
        let dir = tempfile::tempdir().unwrap();
        let errno = nix::libc::ENOENT;
        assert!(matches!(read(dir.path()), Err(Fault::Io { errno: e, .. }) if e == errno));
        assert_eq!(read(&dir.path().join("nvme9")), Err(Fault::Gone));
        let long = "x".repeat(MAX_STATE + 1);
        for text in ["", "\n", "  \n", "live\nlive\n", "li\0ve\n", long.as_str()] {
            std::fs::write(dir.path().join("state"), text).unwrap();
            let fault = read(dir.path()).unwrap_err();
            assert_eq!(fault.class(), "parse", "{text:?}");
        }
    }

    #[test]
    fn a_denied_state_is_not_live() {
        if !unprivileged::go_on("controller_state::tests::a_denied_state_is_not_live") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("state"), "live\n").unwrap();
        unprivileged::deny(&dir.path().join("state"));
        assert_eq!(read(dir.path()).unwrap_err().class(), "denied");
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(state) = parse(&bytes) {
                prop_assert!(state.state.len() <= MAX_STATE);
            }
        }
    }
}
