//! Asking the controllers for the pages that the agent would ask them for.

use super::desk::Desk;
use super::tree::Node;
use nix::errno::Errno;
use std::collections::BTreeMap;
use storscope_collect::{controller_state, node, power};
use storscope_drive::{
    AdminChannel, AdminCommand, CommandError, CommandReport, Controller, FaultClass, LogPage, PageBuffer, Query,
    QueryError, Refusals, Replay, Survey, denied_target,
};
use storscope_model::device::Controller as Described;

/// Keeps every answer that passes as the file that a replay looks for.
struct Recorder<'a> {
    channel: Box<dyn AdminChannel>,
    desk: &'a Desk,
    folder: String,
    pages: BTreeMap<String, Vec<u8>>,
}

impl AdminChannel for Recorder<'_> {
    fn submit(&mut self, command: &AdminCommand) -> Result<PageBuffer, CommandError> {
        self.desk.busy_with(command.id());
        let name = Replay::file_name(command);
        let page = self.channel.submit(command).inspect_err(|error| {
            if let CommandError::Errno { errno, .. } = error
                && denied_target(*errno).is_some()
                && !self.pages.contains_key(&name)
            {
                self.desk.put(format!("{}/{name}", self.folder), Node::Denied(*errno));
            }
        })?;
        let offset = match command {
            AdminCommand::GetLog(log) => usize::try_from(log.offset()).unwrap_or(usize::MAX),
            AdminCommand::Identify(_) => 0,
        };
        let file = self.pages.entry(name.clone()).or_default();
        file.truncate(offset);
        if file.len() == offset {
            file.extend_from_slice(page.as_bytes());
        }
        self.desk.put(format!("{}/{name}", self.folder), Node::File(file.clone()));
        Ok(page)
    }

    fn take_reports(&mut self) -> Vec<CommandReport> {
        self.channel.take_reports()
    }
}

/// Asks `controller`, and for the namespaces `nsids` through it. What it refuses, or what is not permitted, is noted.
pub(super) fn copy(desk: &Desk, controller: &Described, nsids: &[u32]) {
    let name = &controller.name;
    let channel = match open(desk, controller) {
        Ok(channel) => channel,
        Err(why) => return desk.note(format_args!("{name}: pages not asked for: {why}")),
    };
    let folder = format!("drives/{name}");
    let mut recorder = Recorder { channel, desk, folder, pages: BTreeMap::new() };
    let mut refusals = Refusals::default();
    let survey = match Survey::take(&mut recorder, &mut refusals) {
        Ok(survey) => survey,
        Err(CommandError::NotServed { .. }) => return,
        Err(error) => return desk.note(format_args!("{name}: {error}{}", needs(&error))),
    };
    for page in LogPage::ALL {
        let mut query = Query::new(&mut recorder, &survey, &mut refusals);
        match ask(&mut query, page) {
            Ok(()) | Err(QueryError::Command(CommandError::NotServed { .. } | CommandError::Page(_))) => {}
            Err(QueryError::NotAsked { page, why }) => {
                desk.note(format_args!("{name}: {}: not asked for: {why}", page.name()))
            }
            Err(QueryError::Command(error)) => {
                desk.note(format_args!("{name}: {error}{}", needs(&error)));
            }
        }
    }
    for nsid in nsids {
        match Query::new(&mut recorder, &survey, &mut refusals).identify_namespace(*nsid) {
            Ok(_) | Err(CommandError::NotServed { .. } | CommandError::Page(_)) => {}
            Err(error) => desk.note(format_args!("{name}: {error}{}", needs(&error))),
        }
    }
}

/// Only a controller that is live and awake.
fn open(desk: &Desk, controller: &Described) -> Result<Box<dyn AdminChannel>, String> {
    let root = desk.root();
    let node = root.node(&controller.name);
    if let Some(errno) = node::was_denied(root, &controller.name) {
        desk.denied_at(&node, errno as i32);
        return Err(errno.desc().to_owned());
    }
    if let Some(drives) = &root.drives {
        return Ok(Box::new(Replay::new(&drives.join(&controller.name))));
    }
    desk.busy_with("state");
    let folder = root.resolve(&root.sys("class/nvme").join(&controller.name)).ok_or("no folder in sysfs")?;
    let state = controller_state::read(&folder).map_err(|fault| fault.to_string())?;
    if !state.is_live() {
        return Err(format!("the controller is {}", state.state));
    }
    match power::read(root, &folder) {
        Ok(power) if power.suspended => return Err("suspended: asking would wake it".to_owned()),
        Ok(_) => {}
        Err(fault) => return Err(fault.to_string()),
    }
    desk.busy_with("open");
    match Controller::open(&node) {
        Ok(channel) => Ok(Box::new(channel)),
        Err(CommandError::Open { errno, .. }) if denied_target(errno).is_some() => {
            desk.denied_at(&node, errno);
            Err(Errno::from_raw(errno).desc().to_owned())
        }
        Err(error) => Err(format!("{error}{}", needs(&error))),
    }
}

fn ask(query: &mut Query<'_>, page: LogPage) -> Result<(), QueryError> {
    match page {
        // Read with the survey.
        LogPage::SupportedPages => Ok(()),
        LogPage::ErrorInformation => query.error_log().map(drop),
        LogPage::SmartHealth => query.smart_health().map(drop),
        LogPage::FirmwareSlots => query.firmware_slots().map(drop),
        LogPage::CommandEffects => query.command_effects().map(drop),
        LogPage::SelfTest => query.self_test().map(drop),
        LogPage::OcpSmart => query.ocp_smart().map(drop),
    }
}

fn needs(error: &CommandError) -> String {
    match error.class() {
        FaultClass::Denied(capability) => format!(" (needs {})", capability.name()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::desk::{self, Job};
    use super::*;
    use std::num::NonZeroU16;
    use std::sync::Arc;
    use std::time::Duration;
    use storscope_collect::root::Root;
    use storscope_drive::{GetLog, Identify};

    /// A controller whose log pages need a capability.
    struct Bound;

    impl AdminChannel for Bound {
        fn submit(&mut self, command: &AdminCommand) -> Result<PageBuffer, CommandError> {
            match command {
                AdminCommand::Identify(_) => Ok(PageBuffer::copied(&[1; 4096])),
                AdminCommand::GetLog(_) => {
                    Err(CommandError::Errno { command: command.id(), errno: Errno::EACCES as i32 })
                }
            }
        }

        fn take_reports(&mut self) -> Vec<CommandReport> {
            Vec::new()
        }
    }

    #[test]
    fn a_denied_page_is_kept_as_denied() {
        let dir = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::captured(dir.path()));
        let job = Job::new("nvme0", |desk: &Desk| {
            let folder = "drives/nvme0".to_owned();
            let mut recorder = Recorder { channel: Box::new(Bound), desk, folder, pages: BTreeMap::new() };
            assert!(recorder.identify(Identify::Controller).is_ok());
            let smart = GetLog::new(LogPage::SmartHealth, NonZeroU16::new(128).unwrap());
            assert!(recorder.get_log(smart).is_err());
        });
        let read = desk::run(&root, vec![job], Duration::from_secs(60));
        let expected = [
            ("drives/nvme0/identify.bin".to_owned(), Node::File(vec![1; 4096])),
            ("drives/nvme0/logpage-0x02.bin".to_owned(), Node::Denied(Errno::EACCES as i32)),
        ];
        assert_eq!(read[0].entries, expected);
    }
}
