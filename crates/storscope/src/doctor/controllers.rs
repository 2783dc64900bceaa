//! NVMe controllers: do they take commands, may they be asked, is their link readable.

use super::nodes;
use super::privileges::Privileges;
use super::report::Check;
use crate::deadline::{NoResult, within};
use nix::errno::Errno;
use std::path::Path;
use std::time::Duration;
use storscope_collect::nvme::PAGES;
use storscope_collect::root::Root;
use storscope_collect::{aer, controller_state, node, pcie, power};
use storscope_drive::{
    AdminChannel, CommandError, Controller as Channel, FaultClass, Query, QueryError, Refusals, Replay, Survey,
};
use storscope_model::device::{Controller, Transport};
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_model::sample::Sample;

/// Time for the kernel's files of a controller.
const FILES_LIMIT: Duration = Duration::from_secs(5);
/// Time for its answers; a command that takes longer is left to the kernel, whose own limit is 60 s.
const COMMAND_LIMIT: Duration = Duration::from_secs(15);

/// Everything about one controller.
pub(super) fn checks(root: &Root, controller: &Controller, own: Privileges) -> Vec<Check> {
    let subject = controller.name.as_str();
    let (host, known) = (root.clone(), controller.clone());
    let (mut checks, may_ask) = match within(FILES_LIMIT, move || kernel_files(&host, &known)) {
        Ok(found) => found,
        Err(why) => return vec![hangs(subject, "its files in sysfs", FILES_LIMIT, &why)],
    };
    if root.live && may_ask {
        let node = root.node(subject);
        match within(COMMAND_LIMIT, move || ask(&node)) {
            Ok(Ok(answers)) => checks.extend(answers.into_iter().map(|what| Check::fine(subject, what))),
            Ok(Err(error)) => checks.push(not_answered(root, subject, &error, own)),
            Err(why) => checks.push(hangs(subject, "Identify and SMART", COMMAND_LIMIT, &why)),
        }
    } else if !root.live && may_ask {
        checks.extend(captured(root, subject).map(|error| not_answered(root, subject, &error, own)));
    }
    checks
}

fn hangs(subject: &str, what: &str, limit: Duration, why: &NoResult) -> Check {
    match why {
        NoResult::Late => {
            let what =
                format!("{what}: no answer within {} s. The controller hangs: see the kernel log", limit.as_secs());
            Check::denied(subject, what).mend("dmesg -T | grep nvme | tail -50")
        }
        NoResult::Failed(error) => Check::denied(subject, format!("{what}: cannot be looked at: {error}")),
    }
}

/// What sysfs says, and whether the controller may be asked.
fn kernel_files(root: &Root, controller: &Controller) -> (Vec<Check>, bool) {
    let subject = controller.name.as_str();
    let folder = root.resolve(&root.sys("class/nvme").join(subject)).filter(|folder| folder.is_dir());
    let Some(folder) = folder else {
        return (vec![Check::fine(subject, "known by its captured pages only")], false);
    };
    let mut checks = Vec::new();
    let live = match controller_state::read(&folder) {
        Ok(state) if state.is_live() => true,
        Ok(state) => {
            let what = format!("the controller is {}: it takes no commands and its disks no reads", state.state);
            checks.push(Check::lacks(subject, what).mend("dmesg -T | grep nvme | tail -50"));
            false
        }
        Err(fault) => {
            checks.push(Check::lacks(subject, format!("its state is not known: {fault}")));
            false
        }
    };
    let awake = match power::read(root, &folder) {
        Ok(power) if power.suspended => {
            checks.push(Check::fine(subject, "suspended: not asked, which would wake it"));
            false
        }
        Ok(_) => true,
        Err(fault) => {
            checks.push(Check::lacks(subject, format!("whether it sleeps is not known, so it is left alone: {fault}")));
            false
        }
    };
    if controller.transport == Transport::NvmePcie {
        checks.push(link(subject, pcie::read(root, &folder)));
        checks.extend(errors(subject, aer::read(root, &folder)));
    }
    (checks, live && awake)
}

fn link(subject: &str, outcome: Outcome) -> Check {
    let Outcome::Value(sample) = outcome else {
        return match outcome {
            Outcome::Failed(fault @ Fault::Denied { .. }) => Check::denied(subject, format!("PCIe link: {fault}")),
            Outcome::Failed(fault) => Check::lacks(subject, format!("PCIe link: {fault}")),
            Outcome::Unsupported(why) | Outcome::Withheld(why) => Check::lacks(subject, format!("PCIe link: {why}")),
            Outcome::Value(_) => Check::fine(subject, "PCIe link readable"),
        };
    };
    let Sample::PcieLink(link) = *sample else {
        return Check::fine(subject, "PCIe link readable");
    };
    match link.hops.first() {
        Some(hop) if hop.suspended => Check::fine(subject, "PCIe link not read: it or its port is suspended"),
        Some(hop) if hop.current.mega_transfers.is_none() || hop.current.width.is_none() => {
            Check::lacks(subject, "the kernel does not know the speed or width of its PCIe link")
        }
        _ => Check::fine(subject, "PCIe link readable"),
    }
}

fn errors(subject: &str, outcome: Outcome) -> Option<Check> {
    match outcome {
        Outcome::Unsupported(_) => Some(
            Check::lacks(
                subject,
                "no counters of PCIe errors (AER): the kernel lacks CONFIG_PCIEAER, or the firmware keeps them to itself",
            )
            .boot_with("pcie_ports=native"),
        ),
        Outcome::Failed(fault) => Some(Check::lacks(subject, format!("counters of PCIe errors: {fault}"))),
        Outcome::Value(_) | Outcome::Withheld(_) => None,
    }
}

/// What was denied on a captured host: its node, or the first of the two commands that [`ask`] begins with.
fn captured(root: &Root, name: &str) -> Option<CommandError> {
    if let Some(errno) = node::was_denied(root, name) {
        return Some(CommandError::Open { path: root.node(name), errno: errno as i32 });
    }
    let mut pages = Replay::new(&root.drives.as_ref()?.join(name));
    let error = answers(&mut pages).err()?;
    matches!(error.class(), FaultClass::Denied(_)).then_some(error)
}

/// What the controller answers, and what it does not have. Nothing is asked that the agent itself would not ask.
fn ask(node: &Path) -> Result<Vec<String>, CommandError> {
    answers(&mut Channel::open(node)?)
}

fn answers(channel: &mut dyn AdminChannel) -> Result<Vec<String>, CommandError> {
    let mut refusals = Refusals::default();
    let survey = Survey::take(channel, &mut refusals)?;
    let mut answers = vec![match Query::new(channel, &survey, &mut refusals).smart_health() {
        Ok(_) => "answers Identify and SMART / Health".to_owned(),
        Err(QueryError::NotAsked { why, .. }) => format!("SMART / Health is not asked for: {why}"),
        Err(QueryError::Command(error)) => return Err(error),
    }];
    let missing: Vec<String> = PAGES
        .iter()
        .filter_map(|(_, page)| Some(format!("{} ({})", page.name(), survey.why_not(*page, &refusals)?)))
        .collect();
    if !missing.is_empty() {
        answers.push(format!("pages that it is not asked for: {}", missing.join("; ")));
    }
    Ok(answers)
}

fn not_answered(root: &Root, subject: &str, error: &CommandError, own: Privileges) -> Check {
    const LOSS: &str = "No SMART, temperature, wear or errors";
    match error.class() {
        FaultClass::Denied(_) if let CommandError::Open { path, errno } = error => {
            nodes::denied(root, subject, path, Errno::from_raw(*errno), own, LOSS)
        }
        FaultClass::Denied(needs) => Check::denied(subject, format!("{error}. {LOSS}; needs {}", needs.name())),
        FaultClass::NotLive => Check::lacks(subject, format!("takes no commands now: {error}")),
        FaultClass::Gone => {
            Check::lacks(subject, format!("{error}: its node is missing; a container sees it with --device"))
        }
        _ => Check::lacks(subject, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Verdict;
    use super::*;
    use storscope_collect::discovery;
    use storscope_drive::{CommandId, LogPage};

    fn host(state: &str, status: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        let function = root.sys("devices/pci0000:00/0000:01:00.0");
        let folder = function.join("nvme/nvme0");
        std::fs::create_dir_all(folder.join("power")).unwrap();
        std::fs::create_dir_all(function.join("power")).unwrap();
        for (name, text) in [("transport", "pcie"), ("state", state), ("cntlid", "1")] {
            std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
        std::fs::write(function.join("current_link_speed"), "8.0 GT/s PCIe\n").unwrap();
        std::fs::write(function.join("current_link_width"), "4\n").unwrap();
        std::fs::write(function.join("power/runtime_status"), format!("{status}\n")).unwrap();
        std::fs::create_dir_all(root.sys("class/nvme")).unwrap();
        let target = Path::new("../../devices/pci0000:00/0000:01:00.0/nvme/nvme0");
        std::os::unix::fs::symlink(target, root.sys("class/nvme/nvme0")).unwrap();
        (dir, root)
    }

    fn found(root: &Root) -> Vec<Check> {
        let scan = discovery::scan(root);
        checks(root, &scan.controllers[0], Privileges::none())
    }

    #[test]
    fn a_controller_that_is_not_live_is_told() {
        let (_dir, root) = host("connecting", "active");
        let found = found(&root);
        assert_eq!(found[0].verdict, Verdict::Lacks);
        assert!(found[0].what.contains("is connecting"), "{found:?}");
        assert!(found.iter().any(|check| check.what == "PCIe link readable"), "{found:?}");
        assert!(
            found.iter().any(|check| check.mend.iter().any(|mend| mend.contains("pcie_ports=native"))),
            "{found:?}"
        );
    }

    #[test]
    fn a_suspended_one_is_left_alone() {
        let (_dir, root) = host("live", "suspended");
        let found = found(&root);
        assert!(found.iter().any(|check| check.what.starts_with("suspended")), "{found:?}");
        assert!(found.iter().any(|check| check.what.starts_with("PCIe link not read")), "{found:?}");
    }

    #[test]
    fn denial_names_the_capability() {
        let error = CommandError::Errno { command: CommandId::GetLog(LogPage::SmartHealth), errno: nix::libc::EACCES };
        let root = Root::captured(Path::new("capture"));
        let check = not_answered(&root, "nvme0", &error, Privileges::none());
        assert_eq!(check.verdict, Verdict::Denied);
        assert!(check.what.contains("CAP_SYS_ADMIN"), "{check:?}");
        let error = CommandError::Open { path: root.node("nvme0"), errno: nix::libc::EPERM };
        let check = not_answered(&root, "nvme0", &error, Privileges::all());
        assert!(check.what.contains("cgroup") && check.what.contains("No SMART"), "{check:?}");
    }
}
