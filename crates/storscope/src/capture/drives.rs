//! Asking the controllers for the pages that the agent would ask them for.

use super::desk::Desk;
use super::tree::Node;
use std::collections::BTreeMap;
use storscope_collect::{controller_state, power};
use storscope_drive::{
    AdminChannel, AdminCommand, CommandError, CommandReport, Controller, FaultClass, LogPage, PageBuffer, Query,
    QueryError, Refusals, Replay, Survey,
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
        let page = self.channel.submit(command)?;
        let offset = match command {
            AdminCommand::GetLog(log) => usize::try_from(log.offset()).unwrap_or(usize::MAX),
            AdminCommand::Identify(_) => 0,
        };
        let name = Replay::file_name(command);
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
                if matches!(error.class(), FaultClass::Denied(_)) {
                    return desk.note(format_args!("{name}: all further pages left out: not permitted"));
                }
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
    match Controller::open(&root.node(&controller.name)) {
        Ok(channel) => Ok(Box::new(channel)),
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
