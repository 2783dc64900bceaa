//! Asking controllers: who may be asked what and when, and what is remembered of each.

use super::tally::Tally;
use super::{error_log, firmware_slots, identify, namespace, ocp_smart, self_test, smart_health};
use crate::attribute::{MAX_ATTRIBUTE, may_be_folder, read_bytes};
use crate::lanes::pool::{Change, Clock, Done};
use crate::lanes::{Job, Lane};
use crate::root::Root;
use crate::schedule::{Periods, Plan};
use crate::{answer, controller_state, power};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use storscope_drive::{
    AdminChannel, CommandError, Controller as LiveController, DriveKind, Identify, IdentifyNamespace, LogPage, Query,
    QueryError, Refusals, Replay, Survey, drive_text,
};
use storscope_model::device::Controller;
use storscope_model::event::{Event, Outcome};
use storscope_model::fault::Fault;
use storscope_model::identity::{ControllerId, Subject};
use storscope_model::sample::{Sample, Source};

/// The sources that are log pages.
pub const PAGES: [(Source, LogPage); 5] = [
    (Source::SmartHealth, LogPage::SmartHealth),
    (Source::ErrorLog, LogPage::ErrorInformation),
    (Source::FirmwareSlots, LogPage::FirmwareSlots),
    (Source::SelfTest, LogPage::SelfTest),
    (Source::OcpSmart, LogPage::OcpSmart),
];

/// What is remembered of one controller between polls.
#[derive(Debug, Default)]
struct Memory {
    survey: Option<Arc<Survey>>,
    /// The kind of drive whose effects log was read: it is read once.
    effects_of: Option<DriveKind>,
    /// The drive says that Get Log Page or Identify stops its I/O.
    asking_freezes_io: bool,
    error_log_entries: Option<u128>,
    live: Option<bool>,
    tally: Tally,
}

/// All controllers that were asked. No lock is held while a command is outstanding.
#[derive(Debug, Default)]
pub struct Drives {
    memories: Mutex<BTreeMap<ControllerId, Arc<Mutex<Memory>>>>,
    refusals: Mutex<Refusals>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One poll: whom, how, and what the clock says.
pub struct Poll<'a> {
    /// Where the controller's files are.
    pub root: &'a Root,
    /// Whom to ask.
    pub controller: &'a Controller,
    /// How often what is found out to exist is to be asked.
    pub periods: &'a Periods,
    /// For what is announced beside the read itself.
    pub clock: &'a dyn Clock,
}

impl Poll<'_> {
    fn subject(&self) -> Subject {
        Subject::Controller(self.controller.id.clone())
    }

    fn job(&self, source: Source) -> Job {
        Job::new(self.subject(), source)
    }

    /// The device node, or the folder of captured pages.
    fn node(&self) -> PathBuf {
        match &self.root.drives {
            Some(drives) => drives.join(&self.controller.name),
            None => self.root.node(&self.controller.name),
        }
    }

    /// Opened for this poll only: a descriptor that stays open makes a removed controller return under another number.
    fn open(&self, node: &Path) -> Result<Box<dyn AdminChannel>, Outcome> {
        if let Some(errno) = crate::node::was_denied(self.root, &self.controller.name) {
            let path = self.root.node(&self.controller.name);
            return Err(answer::failed(&CommandError::Open { path: path.clone(), errno: errno as i32 }, &path));
        }
        if self.root.drives.is_some() {
            return Ok(Box::new(Replay::new(node)));
        }
        match LiveController::open(node) {
            Ok(controller) => Ok(Box::new(controller)),
            Err(error) => Err(answer::failed(&error, node)),
        }
    }

    /// Only a controller that is live and awake is asked. A captured one that has no folder in sysfs is known by its
    /// pages alone.
    fn may_ask(&self) -> Result<(), Outcome> {
        let link = self.root.sys("class/nvme").join(&self.controller.name);
        let Some(folder) = self.root.resolve(&link) else {
            return Err(Outcome::Failed(Fault::Gone));
        };
        if !self.root.live && !may_be_folder(&folder) {
            return Ok(());
        }
        match controller_state::read(&folder) {
            Ok(state) if !state.is_live() => {
                return Err(Outcome::Withheld(format!("controller is {}", state.state)));
            }
            Err(fault) if self.tells(&fault) => return Err(Outcome::Failed(fault)),
            Ok(_) | Err(_) => {}
        }
        if self.is_another_drive(&folder) {
            return Err(Outcome::Failed(Fault::Gone));
        }
        match power::read(self.root, &folder) {
            Ok(power) if power.suspended => Err(Outcome::Withheld("suspended: asking would wake it".to_owned())),
            Err(fault) if self.tells(&fault) => Err(Outcome::Failed(fault)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// True when `fault` is one of the host. A capture need not hold every file, but it holds what was denied.
    const fn tells(&self, fault: &Fault) -> bool {
        self.root.live || matches!(fault, Fault::Denied { .. })
    }

    /// True when the kernel name has gone to another drive since discovery: its pages must not become this one's.
    fn is_another_drive(&self, folder: &Path) -> bool {
        let Some(known) = &self.controller.serial else {
            return false;
        };
        match read_bytes(&folder.join("serial"), MAX_ATTRIBUTE) {
            Ok(Some(bytes)) => drive_text(bytes.trim_ascii()) != *known,
            Ok(None) | Err(_) => false,
        }
    }

    fn announce(&self, source: Source, outcome: Outcome) -> Change {
        let now = self.clock.now();
        Change::Announce(Event::Read { subject: self.subject(), source, began: now, ended: now, outcome })
    }
}

impl Drives {
    /// Starts with what drives of the same model and firmware refused before.
    pub fn new(refusals: Refusals) -> Self {
        Self { refusals: Mutex::new(refusals), ..Self::default() }
    }

    /// Everything that drives refused, to be kept for the next start.
    pub fn refusals(&self) -> Refusals {
        lock(&self.refusals).clone()
    }

    /// Forgets a controller that left.
    pub fn forget(&self, id: &ControllerId) {
        lock(&self.memories).remove(id);
    }

    fn memory(&self, id: &ControllerId) -> Arc<Mutex<Memory>> {
        Arc::clone(lock(&self.memories).entry(id.clone()).or_default())
    }

    /// Takes in the controller's state; true when it has become live again.
    pub fn note_live(&self, id: &ControllerId, live: bool) -> bool {
        let memory = self.memory(id);
        let before = lock(&memory).live.replace(live);
        live && before == Some(false)
    }

    /// Reads one source of a controller: Identify or a log page.
    pub fn poll(&self, poll: &Poll<'_>, source: Source) -> Done {
        if let Err(outcome) = poll.may_ask() {
            return outcome.into();
        }
        match poll.open(&poll.node()) {
            Ok(mut channel) => self.ask(poll, channel.as_mut(), source),
            Err(outcome) => outcome.into(),
        }
    }

    /// Reads Identify Namespace through the controller.
    pub fn namespace(&self, poll: &Poll<'_>, nsid: u32) -> Done {
        if let Err(outcome) = poll.may_ask() {
            return outcome.into();
        }
        let node = poll.node();
        let mut channel = match poll.open(&node) {
            Ok(channel) => channel,
            Err(outcome) => return outcome.into(),
        };
        let answer = channel
            .identify(Identify::Namespace { nsid })
            .and_then(|page| Ok(IdentifyNamespace::decode(page.as_bytes())?));
        let outcome = match answer {
            Ok(id) => namespace::sample(&id).map_or_else(
                || {
                    Outcome::Failed(Fault::Parse {
                        path: node.display().to_string(),
                        line: 0,
                        what: "Identify Namespace: the block format in use does not exist".to_owned(),
                    })
                },
                |sample| Outcome::Value(Box::new(Sample::Namespace(sample))),
            ),
            Err(error) => answer::failed(&error, &node),
        };
        let memory = self.memory(&poll.controller.id);
        Done { outcome, changes: vec![count(poll, &memory, channel.as_mut())] }
    }

    /// As [`Drives::poll`], through a channel that is open.
    fn ask(&self, poll: &Poll<'_>, channel: &mut dyn AdminChannel, source: Source) -> Done {
        let memory = self.memory(&poll.controller.id);
        // A copy, for the time of the commands: other drives are asked meanwhile.
        let mut refusals = self.refusals();
        let mut done = if source == Source::Identify {
            survey(poll, channel, &memory, &mut refusals)
        } else {
            let known = lock(&memory).survey.clone();
            match known {
                Some(survey) => page(poll, channel, &memory, &survey, &mut refusals, source),
                None => Outcome::Withheld("Identify Controller was not read yet".to_owned()).into(),
            }
        };
        let mut shared = lock(&self.refusals);
        for (drive, label, refusal) in refusals.iter() {
            shared.restore(drive.clone(), label, refusal);
        }
        drop(shared);
        done.changes.push(count(poll, &memory, channel));
        done
    }
}

fn count(poll: &Poll<'_>, memory: &Mutex<Memory>, channel: &mut dyn AdminChannel) -> Change {
    let mut memory = lock(memory);
    memory.tally.add(&channel.take_reports());
    poll.announce(Source::DriveCommands, Outcome::Value(Box::new(Sample::DriveCommands(memory.tally.sample()))))
}

/// Identify Controller, and from it the pages that are asked from now on.
fn survey(poll: &Poll<'_>, channel: &mut dyn AdminChannel, memory: &Mutex<Memory>, refusals: &mut Refusals) -> Done {
    let survey = match Survey::take(channel, refusals) {
        Ok(survey) => Arc::new(survey),
        Err(error) => {
            // Every controller has it: a refusal is a fault and worth another try, not a page that does not exist.
            return match answer::failed(&error, &poll.node()) {
                Outcome::Unsupported(_) if poll.root.live => {
                    Outcome::Failed(answer::fault(&error, &poll.node())).into()
                }
                outcome => outcome.into(),
            };
        }
    };
    let known_effects = lock(memory).effects_of.as_ref() == Some(&survey.kind);
    if !known_effects && let Ok(effects) = Query::new(channel, &survey, refusals).command_effects() {
        let mut memory = lock(memory);
        memory.effects_of = Some(survey.kind.clone());
        memory.asking_freezes_io = effects.asking_freezes_io();
    }
    let freezes = lock(memory).asking_freezes_io;
    let mut changes = Vec::new();
    let mut not_asked = Vec::new();
    for (source, page) in PAGES {
        let job = poll.job(source);
        match survey.why_not(page, refusals) {
            None => {
                let period = poll.periods.of(source).unwrap_or(poll.periods.rare);
                let period = if freezes { period.max(poll.periods.rare) } else { period };
                changes.push(Change::Plan(Plan { lane: Lane::of(&job, None), job, period }));
            }
            Some(why) => {
                not_asked.push((source.as_str().to_owned(), why.to_string()));
                changes.push(Change::Retire(job));
                changes.push(poll.announce(source, Outcome::Unsupported(why.to_string())));
            }
        }
    }
    let sample = identify::sample(&survey.identify, not_asked);
    lock(memory).survey = Some(survey);
    Done { outcome: Outcome::Value(Box::new(Sample::Identify(Box::new(sample)))), changes }
}

fn page(
    poll: &Poll<'_>,
    channel: &mut dyn AdminChannel,
    memory: &Mutex<Memory>,
    survey: &Survey,
    refusals: &mut Refusals,
    source: Source,
) -> Done {
    let mut query = Query::new(channel, survey, refusals);
    let answer = match source {
        Source::SmartHealth => {
            query.smart_health().map(|page| Sample::SmartHealth(Box::new(smart_health::sample(&page))))
        }
        Source::ErrorLog => query.error_log().map(|page| Sample::ErrorLog(error_log::sample(&page))),
        Source::FirmwareSlots => query.firmware_slots().map(|page| Sample::FirmwareSlots(firmware_slots::sample(page))),
        Source::SelfTest => query.self_test().map(|page| Sample::SelfTest(self_test::sample(&page))),
        Source::OcpSmart => query.ocp_smart().map(|page| Sample::OcpSmart(Box::new(ocp_smart::sample(&page)))),
        _ => return Outcome::Unsupported("not a source of a controller".to_owned()).into(),
    };
    Done { changes: follow_up(poll, memory, &answer), outcome: outcome(answer, &poll.node()) }
}

fn outcome(answer: Result<Sample, QueryError>, node: &Path) -> Outcome {
    match answer {
        Ok(sample) => Outcome::Value(Box::new(sample)),
        Err(error) => answer::not_answered(&error, node),
    }
}

/// The error log is read early when the count of its entries moved.
fn follow_up(poll: &Poll<'_>, memory: &Mutex<Memory>, answer: &Result<Sample, QueryError>) -> Vec<Change> {
    let Ok(Sample::SmartHealth(smart)) = answer else {
        return Vec::new();
    };
    let mut memory = lock(memory);
    let before = memory.error_log_entries.replace(smart.error_log_entries);
    let moved = before.is_some_and(|before| before != smart.error_log_entries);
    if moved && !memory.asking_freezes_io { vec![Change::Hasten(poll.job(Source::ErrorLog))] } else { Vec::new() }
}

#[cfg(test)]
mod tests;
