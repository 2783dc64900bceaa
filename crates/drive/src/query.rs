//! Asking a drive for its pages as its [`Plan`] says, and remembering what it refuses.

use std::collections::HashSet;

use crate::admin::AdminChannel;
use crate::command::{CommandId, Identify, LogPage};
use crate::effects::CommandEffects;
use crate::error::{CommandError, PageError};
use crate::error_log::ErrorLog;
use crate::firmware_slots::FirmwareSlots;
use crate::identify_controller::IdentifyController;
use crate::identify_namespace::IdentifyNamespace;
use crate::ocp_smart::OcpSmart;
use crate::policy::{Evidence, Plan, WhyNot};
use crate::refusals::{DriveKind, Refusals};
use crate::self_test::SelfTestLog;
use crate::smart_health::SmartHealth;
use crate::supported_pages::SupportedPages;
use crate::uuid_list::UuidList;

/// No page, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Nothing was sent.
    #[error("{}: {why}", page.name())]
    NotAsked {
        /// The page.
        page: LogPage,
        /// Why it was not asked for.
        why: WhyNot,
    },
    /// It was asked for and did not come.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl From<PageError> for QueryError {
    fn from(error: PageError) -> Self {
        Self::Command(error.into())
    }
}

/// Who a controller is and how it is asked: taken on discovery and again after a reset or now and then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Identify Controller.
    pub identify: IdentifyController,
    /// How to ask it.
    pub plan: Plan,
    /// Its key among refusals.
    pub kind: DriveKind,
}

impl Survey {
    /// Sends Identify Controller, then reads the list of pages and the UUID list where the controller claims them.
    /// Either of these two may fail without harm.
    ///
    /// # Errors
    /// [`CommandError`] of Identify Controller.
    pub fn take(channel: &mut dyn AdminChannel, refusals: &mut Refusals) -> Result<Self, CommandError> {
        let page = channel.identify(Identify::Controller)?;
        let identify = IdentifyController::decode(page.as_bytes())?;
        let kind = DriveKind::of(&identify);
        let plan = |supported: Option<&SupportedPages>, uuids: Option<&UuidList>| {
            Plan::new(&Evidence { identify: &identify, supported, uuids })
        };
        let first = plan(None, None);
        let mut survey = Self { plan: first, kind, identify: identify.clone() };
        let supported = Query::new(channel, &survey, refusals).supported_pages().ok();
        survey.plan = plan(supported.as_ref(), None);
        let uuids = survey.uuid_list(channel, refusals);
        survey.plan = plan(supported.as_ref(), uuids.as_ref());
        Ok(survey)
    }

    /// Why a page will not be asked for, by the controller's own word or because it refused before.
    #[must_use]
    pub fn why_not(&self, page: LogPage, refusals: &Refusals) -> Option<WhyNot> {
        if let Err(why) = self.plan.verdict(page) {
            return Some(why);
        }
        refusals.find(&self.kind, CommandId::GetLog(page)).map(WhyNot::Refused)
    }

    fn uuid_list(&self, channel: &mut dyn AdminChannel, refusals: &mut Refusals) -> Option<UuidList> {
        let command = CommandId::Identify(Identify::UuidList);
        // The list serves to find OCP's page: nothing is to be found where that page cannot be.
        let pointless =
            matches!(self.plan.verdict(LogPage::OcpSmart), Err(WhyNot::NotListed | WhyNot::ControllerType(_)));
        if pointless || !self.identify.has_uuid_list() || refusals.find(&self.kind, command).is_some() {
            return None;
        }
        let result = channel.identify(Identify::UuidList).and_then(|page| Ok(UuidList::decode(page.as_bytes())?));
        if let Err(error) = &result {
            refusals.note(&self.kind, command, error);
        }
        result.ok()
    }
}

/// One poll of one drive: each page by itself, so that one failure costs only its own data.
pub struct Query<'a> {
    channel: &'a mut dyn AdminChannel,
    survey: &'a Survey,
    refusals: &'a mut Refusals,
}

impl<'a> Query<'a> {
    /// Asks through `channel` as `survey` says.
    #[must_use]
    pub fn new(channel: &'a mut dyn AdminChannel, survey: &'a Survey, refusals: &'a mut Refusals) -> Self {
        Self { channel, survey, refusals }
    }

    /// SMART / Health Information (02h) of the whole controller.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn smart_health(&mut self) -> Result<SmartHealth, QueryError> {
        self.page(LogPage::SmartHealth, SmartHealth::decode)
    }

    /// Error Information (01h), every entry that the drive keeps.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn error_log(&mut self) -> Result<ErrorLog, QueryError> {
        let mut log = self.page(LogPage::ErrorInformation, ErrorLog::decode)?;
        // An error between two parts of one reading pushes entries on, so that one of them is read twice.
        let mut seen = HashSet::new();
        log.entries.retain(|entry| seen.insert(entry.error_count));
        Ok(log)
    }

    /// Firmware Slot Information (03h).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn firmware_slots(&mut self) -> Result<FirmwareSlots, QueryError> {
        self.page(LogPage::FirmwareSlots, FirmwareSlots::decode)
    }

    /// Commands Supported and Effects (05h).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn command_effects(&mut self) -> Result<CommandEffects, QueryError> {
        self.page(LogPage::CommandEffects, CommandEffects::decode)
    }

    /// Device Self-test (06h): the history only.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn self_test(&mut self) -> Result<SelfTestLog, QueryError> {
        self.page(LogPage::SelfTest, SelfTestLog::decode)
    }

    /// OCP SMART / Health Information Extended (C0h).
    ///
    /// # Errors
    /// [`QueryError`]; a vendor's own page is remembered and not asked for again.
    pub fn ocp_smart(&mut self) -> Result<OcpSmart, QueryError> {
        self.page(LogPage::OcpSmart, OcpSmart::decode)
    }

    /// Supported Log Pages (00h).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn supported_pages(&mut self) -> Result<SupportedPages, QueryError> {
        self.page(LogPage::SupportedPages, SupportedPages::decode)
    }

    /// Identify Namespace.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn identify_namespace(&mut self, nsid: u32) -> Result<IdentifyNamespace, CommandError> {
        let page = self.channel.identify(Identify::Namespace { nsid })?;
        Ok(IdentifyNamespace::decode(page.as_bytes())?)
    }

    fn page<T>(&mut self, page: LogPage, decode: impl FnOnce(&[u8]) -> Result<T, PageError>) -> Result<T, QueryError> {
        if let Some(why) = self.survey.why_not(page, self.refusals) {
            return Err(QueryError::NotAsked { page, why });
        }
        let result = self.read(page).and_then(|bytes| Ok(decode(&bytes)?));
        if let Err(QueryError::Command(error)) = &result {
            self.refusals.note(&self.survey.kind, CommandId::GetLog(page), error);
        }
        result
    }

    fn read(&mut self, page: LogPage) -> Result<Vec<u8>, QueryError> {
        let commands = self.survey.plan.commands(page).map_err(|why| QueryError::NotAsked { page, why })?;
        let mut bytes = Vec::new();
        for command in commands {
            let part = self.channel.get_log(command)?;
            bytes.extend_from_slice(part.as_bytes());
            if part.as_bytes().len() < command.length() {
                break;
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{CommandReport, Outcome};
    use crate::buffer::PageBuffer;
    use crate::command::AdminCommand;
    use crate::status::Status;
    use std::time::Duration;

    /// A drive made of closures over pages: what it serves, and a list of what it was sent.
    struct MadeUp {
        pages: Vec<(CommandId, Vec<u8>)>,
        shift_after_first: bool,
        sent: Vec<AdminCommand>,
        reports: Vec<CommandReport>,
    }

    impl MadeUp {
        fn new(identify: Vec<u8>) -> Self {
            Self {
                pages: vec![(CommandId::Identify(Identify::Controller), identify)],
                shift_after_first: false,
                sent: Vec::new(),
                reports: Vec::new(),
            }
        }

        fn serving(mut self, page: LogPage, bytes: Vec<u8>) -> Self {
            self.pages.push((CommandId::GetLog(page), bytes));
            self
        }

        fn count(&self, command: CommandId) -> usize {
            self.sent.iter().filter(|sent| sent.id() == command).count()
        }
    }

    impl AdminChannel for MadeUp {
        fn submit(&mut self, command: &AdminCommand) -> Result<PageBuffer, CommandError> {
            self.sent.push(*command);
            let id = command.id();
            let served = self.pages.iter().find(|(page, _)| *page == id);
            let status = Status::from_ioctl(if served.is_some() { 0 } else { 0x2109 });
            self.reports.push(CommandReport {
                command: id,
                took: Duration::ZERO,
                outcome: if served.is_some() { Outcome::Done } else { Outcome::Status(status) },
            });
            let Some((_, bytes)) = served else {
                return Err(CommandError::Status { command: id, status });
            };
            let mut start = match command {
                AdminCommand::GetLog(get_log) => usize::try_from(get_log.offset()).unwrap(),
                AdminCommand::Identify(_) => 0,
            };
            if self.shift_after_first && start > 0 {
                start -= 64;
            }
            Ok(PageBuffer::copied(&bytes[start..start + command.length()]))
        }

        fn take_reports(&mut self) -> Vec<CommandReport> {
            std::mem::take(&mut self.reports)
        }
    }

    fn identify(version: u32, lpa: u8) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[0..2].copy_from_slice(&0x144d_u16.to_le_bytes());
        page[24..32].copy_from_slice(b"MADE UP ");
        page[80..84].copy_from_slice(&version.to_le_bytes());
        page[261] = lpa;
        page[262] = 255;
        page[77] = 1;
        page
    }

    fn health() -> Vec<u8> {
        let mut page = vec![0; 512];
        page[1] = 0x36;
        page[2] = 1;
        page[3] = 100;
        page
    }

    #[test]
    fn a_refused_page_is_asked_once_for_all_drives_of_its_kind() {
        let mut drive = MadeUp::new(identify(0x0001_0400, 0)).serving(LogPage::SmartHealth, health());
        let mut refusals = Refusals::default();
        let survey = Survey::take(&mut drive, &mut refusals).unwrap();
        for _ in 0..3 {
            let mut query = Query::new(&mut drive, &survey, &mut refusals);
            assert!(query.smart_health().is_ok());
            assert!(query.ocp_smart().is_err());
        }
        assert_eq!(drive.count(CommandId::GetLog(LogPage::OcpSmart)), 1);
        assert_eq!(drive.count(CommandId::GetLog(LogPage::SmartHealth)), 3);
        let why = survey.why_not(LogPage::OcpSmart, &refusals).unwrap();
        assert_eq!(why.to_string(), "refused: invalid log page (109h)");
        let mut twin = MadeUp::new(identify(0x0001_0400, 0));
        let survey = Survey::take(&mut twin, &mut refusals).unwrap();
        let error = Query::new(&mut twin, &survey, &mut refusals).ocp_smart().unwrap_err();
        assert!(matches!(error, QueryError::NotAsked { .. }), "{error}");
        assert_eq!(twin.count(CommandId::GetLog(LogPage::OcpSmart)), 0);
    }

    #[test]
    fn a_vendors_own_page_is_asked_for_once() {
        let mut drive = MadeUp::new(identify(0x0001_0400, 0)).serving(LogPage::OcpSmart, vec![3; 512]);
        let mut refusals = Refusals::default();
        let survey = Survey::take(&mut drive, &mut refusals).unwrap();
        for _ in 0..2 {
            assert!(Query::new(&mut drive, &survey, &mut refusals).ocp_smart().is_err());
        }
        assert_eq!(drive.count(CommandId::GetLog(LogPage::OcpSmart)), 1);
    }

    #[test]
    fn a_damaged_page_is_asked_for_again() {
        let mut drive = MadeUp::new(identify(0x0001_0400, 0)).serving(LogPage::SmartHealth, vec![0xff; 512]);
        let mut refusals = Refusals::default();
        let survey = Survey::take(&mut drive, &mut refusals).unwrap();
        for _ in 0..2 {
            let error = Query::new(&mut drive, &survey, &mut refusals).smart_health().unwrap_err();
            assert_eq!(error.to_string(), "SMART / Health (02h): not plausible: every byte is FFh");
        }
        assert_eq!(drive.count(CommandId::GetLog(LogPage::SmartHealth)), 2);
    }

    #[test]
    fn a_survey_of_an_old_drive_sends_only_identify() {
        let mut drive = MadeUp::new(identify(0x0001_0200, 0x03));
        Survey::take(&mut drive, &mut Refusals::default()).unwrap();
        assert_eq!(drive.sent, [AdminCommand::Identify(Identify::Controller)]);
        assert_eq!(drive.take_reports().len(), 1);
    }

    #[test]
    fn a_survey_goes_on_without_the_lists_that_it_is_refused() {
        let mut bytes = identify(0x0002_0000, 0x20);
        bytes[97] = 2;
        let mut drive = MadeUp::new(bytes);
        let mut refusals = Refusals::default();
        for _ in 0..2 {
            let survey = Survey::take(&mut drive, &mut refusals).unwrap();
            assert!(survey.plan.verdict(LogPage::OcpSmart).is_ok());
        }
        assert_eq!(drive.count(CommandId::GetLog(LogPage::SupportedPages)), 1);
        assert_eq!(drive.count(CommandId::Identify(Identify::UuidList)), 1);
    }

    #[test]
    fn a_discovery_controller_is_only_identified() {
        let mut bytes = identify(0x0002_0000, 0x20);
        bytes[97] = 2;
        bytes[111] = 2;
        let mut drive = MadeUp::new(bytes);
        Survey::take(&mut drive, &mut Refusals::default()).unwrap();
        assert_eq!(drive.sent.len(), 1);
    }

    #[test]
    fn the_uuid_list_is_not_asked_for_where_the_ocp_page_is_not_listed() {
        let mut bytes = identify(0x0002_0000, 0x20);
        bytes[97] = 2;
        let mut listed = vec![0; 1024];
        for id in [0, 1, 2, 3] {
            listed[id * 4] = 1;
        }
        let mut drive = MadeUp::new(bytes).serving(LogPage::SupportedPages, listed);
        let survey = Survey::take(&mut drive, &mut Refusals::default()).unwrap();
        assert_eq!(survey.plan.verdict(LogPage::OcpSmart), Err(WhyNot::NotListed));
        assert_eq!(drive.count(CommandId::Identify(Identify::UuidList)), 0);
    }

    #[test]
    fn an_error_log_that_moves_between_two_parts_repeats_no_entry() {
        let mut log = vec![0; 256 * 64];
        for (index, entry) in log.chunks_exact_mut(64).enumerate() {
            entry[0..8].copy_from_slice(&(300 - index as u64).to_le_bytes());
        }
        let mut drive = MadeUp::new(identify(0x0001_0400, 0x04)).serving(LogPage::ErrorInformation, log);
        drive.shift_after_first = true;
        let mut refusals = Refusals::default();
        let survey = Survey::take(&mut drive, &mut refusals).unwrap();
        let log = Query::new(&mut drive, &survey, &mut refusals).error_log().unwrap();
        assert_eq!(drive.count(CommandId::GetLog(LogPage::ErrorInformation)), 2);
        assert_eq!((log.slots, log.entries.len()), (256, 255));
        let counts: HashSet<_> = log.entries.iter().map(|entry| entry.error_count).collect();
        assert_eq!(counts.len(), 255);
    }

    #[test]
    fn a_controller_that_does_not_identify_itself_is_an_error() {
        let mut drive = MadeUp::new(vec![0; 4096]);
        let error = Survey::take(&mut drive, &mut Refusals::default()).unwrap_err();
        assert_eq!(error.to_string(), "Identify Controller: not plausible: every byte is 00h");
    }
}
