//! Device nodes that do not open: who refuses, and what helps.
//!
//! The kernel looks at mode and owner first, which is EACCES (fs/namei.c, `inode_permission`); what that lets pass it
//! gives to the device cgroup and to the driver, whose word is EPERM.

use super::privileges::Privileges;
use super::report::Check;
use nix::errno::Errno;
use nix::unistd::{User, geteuid};
use std::path::Path;
use storscope_collect::root::Root;

/// The check of the node `path` of `subject`, refused with `errno` to a process with `own` privileges. `loss`: what is
/// missed for it.
pub(super) fn denied(root: &Root, subject: &str, path: &Path, errno: Errno, own: Privileges, loss: &str) -> Check {
    // Of a captured host as it was called there.
    let path = match path.strip_prefix(&root.dev) {
        Ok(name) if !root.live => Root::live().dev.join(name),
        _ => path.to_path_buf(),
    };
    let path = path.display();
    if errno == Errno::EACCES && !own.ignore_modes() {
        let what = format!(
            "{path} does not open: {}: its mode and owner do not let this user pass. {loss}. What refuses root too (the \
             device cgroup of a container) does not show before they do",
            errno.desc()
        );
        return Check::denied(subject, what)
            .mend(format!("setfacl -m u:{}:r {path}   # as root, until the next start; then once more", user(root)))
            .mend("storscope doctor                    # says what is left");
    }
    let who = match errno {
        Errno::EPERM => "not by its mode: the device cgroup of a container, or the driver, refuses it, to root too",
        _ => "though no mode binds this process: a security module such as SELinux refuses it",
    };
    let what = format!("{path} does not open: {}, {who}; no capability helps. {loss}", errno.desc());
    let check = Check::denied(subject, what);
    match errno {
        Errno::EPERM => check.mend(format!("--device {path}:{path}:r            # where the container is started")),
        _ => check.mend("ausearch -m avc -ts recent          # what it refused"),
    }
}

/// Who asks; of a captured host that is not known.
fn user(root: &Root) -> String {
    if !root.live {
        return "USER".to_owned();
    }
    let user = User::from_uid(geteuid()).ok().flatten();
    user.map_or_else(|| geteuid().to_string(), |user| user.name)
}

#[cfg(test)]
mod tests {
    use super::super::report::Verdict;
    use super::*;

    fn of(errno: Errno, own: Privileges) -> Check {
        let root = Root::captured(Path::new("capture"));
        denied(&root, "vda", &root.node("vda"), errno, own, "Not probed")
    }

    #[test]
    fn mode_cgroup_and_security_module_differ() {
        let mode = of(Errno::EACCES, Privileges::none());
        let there = format!("setfacl -m u:USER:r {} ", Root::live().node("vda").display());
        assert!(mode.mend[0].starts_with(&there), "{mode:?}");
        assert!(!mode.mend.iter().any(|mend| mend.contains("run as root")), "root may be refused too: {mode:?}");
        for own in [Privileges::none(), Privileges::all()] {
            let cgroup = of(Errno::EPERM, own);
            assert!(cgroup.what.contains("to root too") && cgroup.what.contains("cgroup"), "{cgroup:?}");
            assert!(cgroup.mend.iter().all(|mend| !mend.contains("setfacl")), "{cgroup:?}");
        }
        let module = of(Errno::EACCES, Privileges::all());
        assert!(module.what.contains("security module") && !module.what.contains("cgroup"), "{module:?}");
        assert!([mode, module].iter().all(|check| check.verdict == Verdict::Denied));
    }
}
