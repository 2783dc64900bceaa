//! The prober's end of a socket pair: requested targets become paths on this host, reports become events.

use crate::config::{Config, EngineChoice};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storscope_collect::collector::EventSink;
use storscope_collect::root::Root;
use storscope_model::event::{Event, Outcome};
use storscope_model::identity::{DeviceId, Subject};
use storscope_model::request::{ProbeTarget, Request};
use storscope_model::sample::probe::Engine;
use storscope_model::sample::{Sample, Source};
use storscope_probe::{Limits, Pace, Prober, QueueSize, Report, Target};

/// Hardware queues that are counted.
const MAX_HARDWARE_QUEUES: usize = 4096;

type Keys = Arc<Mutex<Directory>>;

/// Handles of the devices that were ever probed.
#[derive(Debug, Default)]
struct Directory {
    by_id: BTreeMap<DeviceId, u64>,
    by_key: BTreeMap<u64, DeviceId>,
}

impl Directory {
    fn key(&mut self, id: &DeviceId) -> u64 {
        if let Some(key) = self.by_id.get(id) {
            return *key;
        }
        let key = self.by_key.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        self.by_id.insert(id.clone(), key);
        self.by_key.insert(key, id.clone());
        key
    }
}

/// A running prober, fed by requests.
pub(crate) struct Adapter {
    prober: Prober,
    root: Root,
    keys: Keys,
}

impl Adapter {
    /// Starts a prober whose reports go to `sender`.
    ///
    /// # Errors
    /// When the demanded engine cannot be had.
    pub(crate) fn start(root: Root, config: &Config, sender: Arc<dyn EventSink>) -> anyhow::Result<Self> {
        let keys = Keys::default();
        let names = Arc::clone(&keys);
        let settings = storscope_probe::Config {
            engine: match config.probe.engine {
                EngineChoice::Auto => storscope_probe::EngineChoice::Auto,
                EngineChoice::IoUring => storscope_probe::EngineChoice::IoUring,
                EngineChoice::Pread => storscope_probe::EngineChoice::Pread,
            },
            limits: Limits {
                reads_per_second: config.probe.reads_per_second.into(),
                device_share: config.probe.max_share,
            },
            deadline: config.probe.deadline,
            ..storscope_probe::Config::default()
        };
        let prober = Prober::start(settings, move |report| tell(&names, sender.as_ref(), report))?;
        Ok(Self { prober, root, keys })
    }

    /// The engine in use, and why it is not io_uring.
    pub(crate) fn engine(&self) -> (Engine, Option<String>) {
        let engine = self.prober.engine();
        let why = engine.ring_refused.map(std::io::Error::from_raw_os_error);
        (engine.kind, why.map(|error| format!("io_uring is refused: {error}")))
    }

    /// Takes in one request.
    pub(crate) fn request(&self, request: Request) {
        let Request::ProbeTargets(wanted) = request else { return };
        let targets: Vec<Target> = wanted.iter().filter_map(|target| self.target(target)).collect();
        if let Err(error) = self.prober.set_targets(&targets) {
            tracing::error!(%error, "a device cannot be probed: no thread for it");
        }
    }

    fn target(&self, wanted: &ProbeTarget) -> Option<Target> {
        let number = format!("{}:{}", wanted.devnum.major, wanted.devnum.minor);
        let sysfs = self.root.resolve(&self.root.sys("dev/block").join(number))?;
        let name = sysfs.file_name()?.to_str()?.replace('!', "/");
        let key = self.keys.lock().unwrap_or_else(PoisonError::into_inner).key(&wanted.id);
        Some(Target {
            key,
            node: self.root.node(&name),
            devnum: wanted.devnum,
            stat: sysfs.join("stat"),
            queue: wanted.queue_depth.and_then(|requests| queue_size(&sysfs, requests)),
            runtime_status: self.runtime_status(&sysfs),
            logical_block_bytes: wanted.logical_block_bytes,
            pace: Pace { burst: wanted.burst, interval: Duration::from_millis(wanted.interval_ms) },
        })
    }

    /// `power/runtime_status` of the device and of all it hangs on.
    fn runtime_status(&self, sysfs: &Path) -> Vec<PathBuf> {
        let above = sysfs.ancestors().take_while(|folder| *folder != self.root.sys.as_path());
        above.map(|folder| folder.join("power").join("runtime_status")).filter(|file| file.exists()).collect()
    }
}

fn queue_size(sysfs: &Path, requests: u64) -> Option<QueueSize> {
    let queues = std::fs::read_dir(sysfs.join("mq")).map_or(1, |folder| folder.take(MAX_HARDWARE_QUEUES).count());
    Some(QueueSize { requests: u32::try_from(requests).ok()?, hardware_queues: u32::try_from(queues.max(1)).ok()? })
}

fn tell(keys: &Keys, sender: &dyn EventSink, report: Report) {
    let known = keys.lock().unwrap_or_else(PoisonError::into_inner).by_key.get(&report.key).cloned();
    let Some(id) = known else { return };
    let subject = Subject::Device(id);
    sender.put(Event::Read {
        subject,
        source: Source::Probe,
        began: report.began,
        ended: report.ended,
        outcome: Outcome::Value(Box::new(Sample::Probe(Box::new(report.probe)))),
    });
}
