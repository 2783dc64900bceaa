//! Queue settings of a block device: `queue/`, `inflight` and `device/state` in sysfs
//! (Documentation/ABI/stable/sysfs-block).

use crate::attribute::{read_text, read_u64, require_folder};
use crate::root::Root;
use nix::errno::Errno;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use storscope_model::fault::Fault;
use storscope_model::sample::queue::QueueSettings;

/// The settings of the device whose sysfs folder is `device`. Every attribute is optional, and one that cannot be read
/// is a fault within the settings.
///
/// # Errors
/// [`Fault::Gone`] when there is no such folder; the first fault when nothing at all could be read.
pub fn read(root: &Root, device: &Path) -> Result<QueueSettings, Fault> {
    require_folder(device)?;
    let mut queue = Attributes::new(device.join("queue"));
    let (scheduler, schedulers) = queue.text("scheduler").map_or((None, Vec::new()), |text| schedulers(&text));
    let mut settings = QueueSettings {
        scheduler,
        schedulers,
        nr_requests: queue.number("nr_requests"),
        read_ahead_bytes: queue.kibibytes("read_ahead_kb"),
        max_sectors_bytes: queue.kibibytes("max_sectors_kb"),
        max_hw_sectors_bytes: queue.kibibytes("max_hw_sectors_kb"),
        logical_block_bytes: queue.number("logical_block_size"),
        physical_block_bytes: queue.number("physical_block_size"),
        minimum_io_bytes: queue.number("minimum_io_size"),
        optimal_io_bytes: queue.number("optimal_io_size"),
        discard_granularity_bytes: queue.number("discard_granularity"),
        discard_max_bytes: queue.number("discard_max_bytes"),
        write_cache: queue.text("write_cache"),
        fua: queue.flag("fua"),
        wbt_lat_usec: queue.number("wbt_lat_usec"),
        nomerges: queue.number("nomerges"),
        rq_affinity: queue.number("rq_affinity"),
        io_poll: queue.flag("io_poll"),
        iostats: queue.flag("iostats"),
        rotational: queue.flag("rotational"),
        zoned: queue.text("zoned"),
        dma_alignment: queue.number("dma_alignment"),
        io_timeout_ms: queue.number("io_timeout"),
        stable_writes: queue.flag("stable_writes"),
        ..QueueSettings::default()
    };
    let mut own = Attributes::new(device.to_path_buf());
    settings.inflight = own.parsed("inflight", "not two numbers", inflight);
    let mut faults = queue.faults;
    faults.append(&mut own.faults);
    if let Some(parent) = root.resolve(&device.join("device")) {
        let mut parent = Attributes::new(parent);
        if parent.is_scsi() {
            settings.device_state = parent.text("state");
        }
        faults.append(&mut parent.faults);
    }
    if settings == QueueSettings::default() && !faults.is_empty() {
        return Err(faults.swap_remove(0));
    }
    settings.faults = faults;
    Ok(settings)
}

/// The scheduler in use, which is the word in brackets or the only word, and all on offer.
fn schedulers(text: &str) -> (Option<String>, Vec<String>) {
    let bare = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let marked = words.iter().find(|word| word.starts_with('[') && word.ends_with(']'));
    let used = match (marked, words.as_slice()) {
        (Some(word), _) | (None, [word]) => Some(bare(word)),
        (None, _) => None,
    };
    (used.filter(|word| !word.is_empty()), words.iter().map(|word| bare(word)).collect())
}

/// Reads and writes in flight.
fn inflight(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace();
    let pair = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(pair)
}

/// One folder of attributes, and what went wrong in it.
struct Attributes {
    folder: PathBuf,
    faults: Vec<Fault>,
}

impl Attributes {
    const fn new(folder: PathBuf) -> Self {
        Self { folder, faults: Vec::new() }
    }

    /// Keeps the fault, if it is one: some attributes answer EINVAL or EOPNOTSUPP where the queue does not have the
    /// facility (`wbt_lat_usec`).
    fn kept<T>(&mut self, result: Result<Option<T>, Fault>) -> Option<T> {
        match result {
            Ok(value) => value,
            Err(Fault::Io { errno, .. }) if matches!(Errno::from_raw(errno), Errno::EINVAL | Errno::EOPNOTSUPP) => None,
            Err(fault) => {
                self.faults.push(fault);
                None
            }
        }
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let text = read_text(&self.folder.join(name));
        let trimmed = text.map(|text| text.map(|text| text.trim().to_owned()));
        self.kept(trimmed).filter(|text| !text.is_empty())
    }

    fn number(&mut self, name: &str) -> Option<u64> {
        let number = read_u64(&self.folder.join(name));
        self.kept(number)
    }

    fn kibibytes(&mut self, name: &str) -> Option<u64> {
        self.parsed(name, "not a number of kilobytes", |text| text.parse::<u64>().ok()?.checked_mul(1024))
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        self.parsed(name, "neither 0 nor 1", |text| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })
    }

    fn parsed<T>(&mut self, name: &str, what: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(&text);
        if value.is_none() {
            let path = self.folder.join(name).display().to_string();
            self.faults.push(Fault::parse(path, 1, what, text.as_bytes()));
        }
        value
    }

    /// Other buses have a `state` of another meaning. Where a captured folder has no subsystem link, its name decides.
    fn is_scsi(&self) -> bool {
        match std::fs::read_link(self.folder.join("subsystem")) {
            Ok(target) => target.file_name().is_some_and(|name| name == "scsi"),
            Err(_) => {
                self.folder.file_name().and_then(OsStr::to_str).is_some_and(|name| name == "device" || is_hctl(name))
            }
        }
    }
}

/// `host:channel:target:lun`, the name of a SCSI device.
fn is_hctl(name: &str) -> bool {
    let numbers = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    name.split(':').count() == 4 && name.split(':').all(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    fn device(files: &[(&str, &str)]) -> (tempfile::TempDir, Root, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        let device = root.sys("devices/pci0/0:0:0:0/block/sda");
        std::fs::create_dir_all(device.join("queue")).unwrap();
        symlink("../../../0:0:0:0", device.join("device")).unwrap();
        for (name, text) in files {
            std::fs::write(device.join(name), text).unwrap();
        }
        (dir, root, device)
    }

    #[test]
    fn all_attributes() {
        let (_dir, root, device) = device(&[
            ("queue/scheduler", "none [mq-deadline] kyber bfq \n"),
            ("queue/nr_requests", "64\n"),
            ("queue/read_ahead_kb", "128\n"),
            ("queue/max_sectors_kb", "1280\n"),
            ("queue/max_hw_sectors_kb", "32767\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/physical_block_size", "4096\n"),
            ("queue/minimum_io_size", "4096\n"),
            ("queue/optimal_io_size", "0\n"),
            ("queue/discard_granularity", "512\n"),
            ("queue/discard_max_bytes", "2147450880\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/fua", "1\n"),
            ("queue/wbt_lat_usec", "2000\n"),
            ("queue/nomerges", "2\n"),
            ("queue/rq_affinity", "1\n"),
            ("queue/io_poll", "0\n"),
            ("queue/iostats", "1\n"),
            ("queue/rotational", "0\n"),
            ("queue/zoned", "none\n"),
            ("queue/dma_alignment", "3\n"),
            ("queue/io_timeout", "30000\n"),
            ("queue/stable_writes", "0\n"),
            ("inflight", "       3        12\n"),
            ("device/state", "offline\n"),
        ]);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            read(&root, &device).unwrap(),
            QueueSettings {
                scheduler: Some("mq-deadline".to_owned()),
                schedulers: words(&["none", "mq-deadline", "kyber", "bfq"]),
                nr_requests: Some(64),
                read_ahead_bytes: Some(131_072),
                max_sectors_bytes: Some(1_310_720),
                max_hw_sectors_bytes: Some(33_553_408),
                logical_block_bytes: Some(512),
                physical_block_bytes: Some(4096),
                minimum_io_bytes: Some(4096),
                optimal_io_bytes: Some(0),
                discard_granularity_bytes: Some(512),
                discard_max_bytes: Some(2_147_450_880),
                write_cache: Some("write back".to_owned()),
                fua: Some(true),
                wbt_lat_usec: Some(2000),
                nomerges: Some(2),
                rq_affinity: Some(1),
                io_poll: Some(false),
                iostats: Some(true),
                rotational: Some(false),
                zoned: Some("none".to_owned()),
                dma_alignment: Some(3),
                io_timeout_ms: Some(30_000),
                stable_writes: Some(false),
                inflight: Some((3, 12)),
                device_state: Some("offline".to_owned()),
                faults: Vec::new(),
            }
        );
    }

    #[test]
    fn scheduler_spellings() {
        for (text, used, offered) in [
            ("none", Some("none"), 1),
            ("[mq-deadline] none", Some("mq-deadline"), 2),
            ("[none] mq-deadline ", Some("none"), 2),
            ("noop deadline [cfq] ", Some("cfq"), 3),
            ("mq-deadline kyber [bfq] none", Some("bfq"), 4),
            ("none mq-deadline", None, 2),
            ("[]", None, 1),
            ("", None, 0),
        ] {
            let (word, all) = schedulers(text);
            assert_eq!((word.as_deref(), all.len()), (used, offered), "{text}");
        }
    }

    #[test]
    fn absent_attributes_are_neither_values_nor_faults() {
        let (_dir, root, device) = device(&[("queue/rotational", "1\n"), ("queue/write_cache", "\n")]);
        let settings = read(&root, &device).unwrap();
        let expected = QueueSettings { rotational: Some(true), ..QueueSettings::default() };
        assert_eq!(settings, expected);
        assert_eq!(read(&root, &root.sys("devices/none")), Err(Fault::Gone));
    }

    #[test]
    fn a_bad_attribute_costs_only_itself() {
        let (_dir, root, device) = device(&[
            ("queue/nr_requests", "18446744073709551616\n"),
            ("queue/read_ahead_kb", "18446744073709551615\n"),
            ("queue/rotational", "yes\n"),
            ("queue/fua", "0\n"),
            ("inflight", "1\n"),
        ]);
        std::fs::create_dir(device.join("queue/zoned")).unwrap();
        let settings = read(&root, &device).unwrap();
        assert_eq!(settings.fua, Some(false));
        assert_eq!((settings.nr_requests, settings.read_ahead_bytes, settings.inflight), (None, None, None));
        let text: Vec<_> = settings.faults.iter().map(ToString::to_string).collect();
        assert_eq!(text.len(), 5, "{text:?}");
        for (fault, name) in text.iter().zip(["nr_requests", "read_ahead_kb", "rotational", "zoned", "inflight"]) {
            assert!(fault.contains(name), "{fault}");
        }
    }

    #[test]
    fn einval_is_absent_and_no_fault() {
        let mut queue = Attributes::new(PathBuf::new());
        for (errno, faults) in [(Errno::EINVAL, 0), (Errno::EOPNOTSUPP, 0), (Errno::EIO, 1)] {
            let fault = Fault::Io { path: "wbt_lat_usec".to_owned(), errno: errno as i32 };
            assert_eq!(queue.kept::<u64>(Err(fault)), None);
            assert_eq!(queue.faults.len(), faults, "{errno}");
        }
    }

    #[test]
    fn nothing_but_faults_is_a_failure() {
        let (_dir, root, device) = device(&[("queue/rotational", "\u{0}x")]);
        assert_eq!(read(&root, &device).unwrap_err().class(), "parse");
    }

    #[test]
    fn the_state_of_another_bus_is_left_out() {
        let (_dir, root, device) = device(&[("queue/rotational", "0\n"), ("device/state", "live\n")]);
        symlink("../../../class/nvme", device.join("device/subsystem")).unwrap();
        assert_eq!(read(&root, &device).unwrap().device_state, None);
        let controller = root.sys("devices/pci0/nvme0");
        std::fs::create_dir_all(controller.join("nvme0n1")).unwrap();
        std::fs::write(controller.join("state"), "live\n").unwrap();
        symlink("../../nvme0", controller.join("nvme0n1/device")).unwrap();
        assert_eq!(read(&root, &controller.join("nvme0n1")).unwrap().device_state, None);
    }

    #[test]
    fn a_denied_attribute_costs_only_itself() {
        if !unprivileged::go_on("queue::tests::a_denied_attribute_costs_only_itself") {
            return;
        }
        let (_dir, root, device) = device(&[("queue/rotational", "0\n"), ("queue/nr_requests", "64\n")]);
        unprivileged::deny(&device.join("queue/nr_requests"));
        let settings = read(&root, &device).unwrap();
        assert_eq!((settings.rotational, settings.nr_requests), (Some(false), None));
        assert!(matches!(settings.faults.as_slice(), [Fault::Denied { path, .. }] if path.ends_with("nr_requests")));
    }

    proptest! {
        #[test]
        fn any_text_parses(text in any::<String>()) {
            let (used, all) = schedulers(&text);
            prop_assert!(used.is_none_or(|word| all.contains(&word)));
            let _ = inflight(&text);
        }
    }
}
