//! Which sources a host, a controller and a device have, and how each is read.

use super::{AgentCounts, Inventory};
use crate::attribute::may_be_folder;
use crate::lanes::pool::{Change, Clock, Done};
use crate::lanes::{Job, Lane};
use crate::nvme::{Drives, Poll};
use crate::root::Root;
use crate::schedule::{Periods, Plan};
use crate::{
    aer, agent, ata_power, controller_state, cpu, diskstats, host_info, node, pcie, power, pressure, queue, stack,
};
use nix::errno::Errno;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use storscope_model::device::{Controller, Device};
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_model::identity::Subject;
use storscope_model::sample::host::HostInfo;
use storscope_model::sample::{Sample, Source};

const OF_HOST: [Source; 6] =
    [Source::Diskstats, Source::Pressure, Source::Cpu, Source::HostInfo, Source::Stack, Source::Agent];
const OF_CONTROLLER: [Source; 5] =
    [Source::ControllerState, Source::Power, Source::PcieLink, Source::PcieAer, Source::Identify];

/// The host-wide sources beside discovery. A captured host holds no agent.
pub(super) fn of_host(root: &Root, periods: &Periods) -> Vec<Plan> {
    let sources = OF_HOST.into_iter().filter(|source| root.live || *source != Source::Agent);
    plans(&Subject::Host, None, sources, periods)
}

/// The sources of a controller. Its log pages are planned by what Identify says. One that a captured host knows only by
/// its pages has no files.
pub(super) fn of_controller(controller: &Controller, root: &Root, periods: &Periods) -> Vec<Plan> {
    let has_files = root.live || controller_folder(root, controller).is_some_and(|folder| may_be_folder(&folder));
    let sources = OF_CONTROLLER.into_iter().filter(|source| has_files || *source == Source::Identify);
    plans(&Subject::Controller(controller.id.clone()), None, sources, periods)
}

/// The sources of a device; its commands go to `drive` if it has one. A partition has no queue of its own.
pub(super) fn of_device(device: &Device, drive: Option<&Controller>, root: &Root, periods: &Periods) -> Vec<Plan> {
    let mut sources = Vec::new();
    if device.partition_of.is_none() {
        sources.extend([Source::Queue, Source::Power]);
        if drive.is_some() && device.nvme.as_ref().is_some_and(|nvme| nvme.nsid.is_some()) {
            sources.push(Source::Namespace);
        }
        if (root.live || ata_power::was_denied(root, device)) && ata_power::may_have_mode(device) {
            sources.push(Source::AtaPower);
        }
    }
    let commands = drive.map(|drive| Subject::Controller(drive.id.clone()));
    let subject = Subject::Device(device.id.clone());
    let mut plans = plans(&subject, commands.as_ref(), sources, periods);
    // The prober of a live host tells it by itself.
    if node::probes_were_denied(root, device, drive) {
        let job = Job::new(subject, Source::Probe);
        plans.push(Plan { lane: Lane::of(&job, None), job, period: periods.rescan });
    }
    plans
}

fn plans(
    subject: &Subject,
    drive: Option<&Subject>,
    sources: impl IntoIterator<Item = Source>,
    periods: &Periods,
) -> Vec<Plan> {
    sources
        .into_iter()
        .filter_map(|source| {
            let job = Job::new(subject.clone(), source);
            let period = periods.of(source)?;
            Some(Plan { lane: Lane::of(&job, drive.cloned()), job, period })
        })
        .collect()
}

fn controller_folder(root: &Root, controller: &Controller) -> Option<PathBuf> {
    root.resolve(&root.sys("class/nvme").join(&controller.name))
}

/// What every read needs to know.
pub(super) struct Context<'a> {
    /// Where the files are.
    pub root: &'a Root,
    /// What is watched.
    pub inventory: &'a Inventory,
    /// How often pages are to be asked.
    pub periods: &'a Periods,
    /// What is remembered of NVMe controllers.
    pub drives: &'a Drives,
    /// Counts that the agent keeps itself.
    pub agent: &'a AgentCounts,
    /// Boot time.
    pub clock: &'a dyn Clock,
}

impl Context<'_> {
    /// Reads one source of the host, a controller or a device. A capture need not hold every file that a host has.
    pub(super) fn read(&self, job: &Job) -> Done {
        let mut done = self.ask(job);
        if !self.root.live && is_absent(&done.outcome) {
            done.outcome = Outcome::Unsupported("not in the capture".to_owned());
        }
        done
    }

    fn ask(&self, job: &Job) -> Done {
        match &job.subject {
            Subject::Host => self.host(job.source).into(),
            Subject::Controller(id) => match self.inventory.controllers.get(id) {
                Some(controller) => self.controller(controller, job.source),
                None => Outcome::Failed(Fault::Gone).into(),
            },
            Subject::Device(id) => match self.inventory.devices.get(id) {
                Some(device) => self.device(device, job.source),
                None => Outcome::Failed(Fault::Gone).into(),
            },
        }
    }

    fn host(&self, source: Source) -> Outcome {
        match source {
            Source::Diskstats => value(diskstats::read(self.root).map(Sample::Diskstats)),
            Source::Pressure => pressure::read(self.root),
            Source::Cpu => value(cpu::read(self.root).map(Sample::Cpu)),
            Source::HostInfo => value(host_info::read(self.root).map(Sample::HostInfo)),
            Source::Stack => value(stack::read(self.root).map(Sample::Stack)),
            Source::Agent => {
                let (dropped, superseded) = self.agent.get();
                let mut processes = self.agent.processes.lock().unwrap_or_else(PoisonError::into_inner);
                value(agent::read(self.root, &mut processes, dropped, superseded).map(Sample::Agent))
            }
            _ => not_here(),
        }
    }

    fn controller(&self, controller: &Controller, source: Source) -> Done {
        let files = |read: &dyn Fn(&Path) -> Outcome| match controller_folder(self.root, controller) {
            Some(folder) => read(&folder),
            None => Outcome::Failed(Fault::Gone),
        };
        let outcome = match source {
            Source::ControllerState => return self.controller_state(controller),
            Source::Power => files(&|folder| value(power::read(self.root, folder).map(Sample::Power))),
            Source::PcieLink => files(&|folder| pcie::read(self.root, folder)),
            Source::PcieAer => files(&|folder| aer::read(self.root, folder)),
            _ => return self.drives.poll(&self.poll(controller), source),
        };
        outcome.into()
    }

    /// A controller that has come back is asked at once for what was withheld.
    fn controller_state(&self, controller: &Controller) -> Done {
        let Some(folder) = controller_folder(self.root, controller) else {
            return Outcome::Failed(Fault::Gone).into();
        };
        let state = controller_state::read(&folder);
        let live = state.as_ref().is_ok_and(|state| state.is_live());
        let mut changes = Vec::new();
        if self.drives.note_live(&controller.id, live) {
            let subject = Subject::Controller(controller.id.clone());
            let pages = crate::nvme::PAGES.map(|(source, _)| source);
            let sources = [Source::Identify].into_iter().chain(pages);
            changes.extend(sources.map(|source| Change::Hasten(Job::new(subject.clone(), source))));
        }
        Done { outcome: value(state.map(Sample::ControllerState)), changes }
    }

    fn device(&self, device: &Device, source: Source) -> Done {
        let files = |read: &dyn Fn(&Path) -> Outcome| match self.root.resolve(&self.root.block(&device.name)) {
            Some(folder) => read(&folder),
            None => Outcome::Failed(Fault::Gone),
        };
        let outcome = match source {
            Source::Queue => {
                files(&|folder| value(queue::read(self.root, folder).map(|queue| Sample::Queue(Box::new(queue)))))
            }
            Source::Power => files(&|folder| value(power::read(self.root, folder).map(Sample::Power))),
            Source::AtaPower => ata_power::read(self.root, device),
            Source::Probe => node::denied_probes(),
            Source::Namespace => {
                let nsid = device.nvme.as_ref().and_then(|nvme| nvme.nsid);
                return match (self.inventory.drive_of(device), nsid) {
                    (Some(controller), Some(nsid)) => self.drives.namespace(&self.poll(controller), nsid),
                    _ => Outcome::Unsupported("no controller to ask".to_owned()).into(),
                };
            }
            _ => not_here(),
        };
        outcome.into()
    }

    fn poll<'a>(&'a self, controller: &'a Controller) -> Poll<'a> {
        Poll { root: self.root, controller, periods: self.periods, clock: self.clock }
    }
}

fn value(read: Result<Sample, Fault>) -> Outcome {
    match read {
        Ok(sample) => Outcome::Value(Box::new(sample)),
        Err(fault) => Outcome::Failed(fault),
    }
}

/// A file that any host has is not there, or nothing at all is known.
fn is_absent(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(Fault::Io { errno, .. }) => *errno == Errno::ENOENT as i32,
        Outcome::Value(sample) => matches!(sample.as_ref(), Sample::HostInfo(info) if *info == HostInfo::default()),
        _ => false,
    }
}

fn not_here() -> Outcome {
    Outcome::Unsupported("not a source of this subject".to_owned())
}
