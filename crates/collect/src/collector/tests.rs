use super::*;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use storscope_model::fault::Fault;
use storscope_model::identity::DeviceId;
use storscope_model::outbox::Outbox;

/// Only ends a test that would hang for ever; nothing is right because of it.
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

impl Collector {
    /// Scans for devices soon, as after a uevent.
    fn rescan(&self) {
        self.pool.change(vec![Change::Hasten(Job::host(Source::Discovery))]);
    }
}

/// A captured host with one SATA disk and one NVMe controller of which only pages are known.
fn captured(dir: &Path) -> Root {
    let root = Root::captured(dir);
    disk(&root, "sda");
    fs::create_dir_all(&root.proc).unwrap();
    let line = "   8       0 sda 10 0 80 5 20 0 160 9 0 12 14\n";
    fs::write(root.proc("diskstats"), line).unwrap();
    let drive = dir.join("drives/nvme0");
    fs::create_dir_all(&drive).unwrap();
    let mut identify = vec![0; 4096];
    identify[4..64].fill(b' ');
    identify[4..6].copy_from_slice(b"S1");
    identify[24..31].copy_from_slice(b"Made up");
    fs::write(drive.join("identify.bin"), identify).unwrap();
    let mut smart = vec![0; 512];
    smart[1..3].copy_from_slice(&311_u16.to_le_bytes());
    smart[5] = 12;
    fs::write(drive.join("logpage-0x02.bin"), smart).unwrap();
    root
}

fn disk(root: &Root, name: &str) {
    let disk = root.sys("block").join(name);
    fs::create_dir_all(disk.join("queue")).unwrap();
    fs::write(disk.join("size"), "2048\n").unwrap();
    fs::write(disk.join("queue/scheduler"), "[none] mq-deadline\n").unwrap();
    fs::write(disk.join("queue/rotational"), "1\n").unwrap();
}

fn name_of(event: &Event) -> Option<&str> {
    match event {
        Event::DeviceAppeared(device) => Some(&device.name),
        Event::ControllerAppeared(controller) => Some(&controller.name),
        _ => None,
    }
}

fn sample(events: &[Event], wanted: Source) -> Option<&Sample> {
    events.iter().find_map(|event| match event {
        Event::Read { source, outcome: Outcome::Value(sample), .. } if *source == wanted => Some(sample.as_ref()),
        _ => None,
    })
}

#[test]
fn one_round_reads_every_source_once_after_what_appeared() {
    let dir = tempfile::tempdir().unwrap();
    let events = collect_once(captured(dir.path()), CollectorSettings::default()).unwrap();
    let appeared: Vec<&str> = events.iter().map_while(name_of).collect();
    assert_eq!(appeared, ["nvme0", "sda"]);
    assert!(events[2..].iter().all(|event| name_of(event).is_none()));

    let mut slots: Vec<_> = events.iter().map(Event::slot).collect();
    let count = slots.len();
    slots.sort();
    slots.dedup();
    assert_eq!(slots.len(), count, "a slot stands twice");

    assert!(matches!(sample(&events, Source::Diskstats), Some(Sample::Diskstats(table)) if table.rows.len() == 1));
    assert!(matches!(sample(&events, Source::Queue), Some(Sample::Queue(queue))
        if queue.scheduler.as_deref() == Some("none")));
    assert!(matches!(sample(&events, Source::SmartHealth), Some(Sample::SmartHealth(smart))
        if smart.temperature_c == Some(38) && smart.percentage_used == 12));
    assert!(matches!(sample(&events, Source::Discovery), Some(Sample::Discovery(scan)) if scan.seen == 1));
    assert!(sample(&events, Source::Agent).is_none(), "a captured host holds no agent");
    // Known by its pages only: no file of it is missed.
    let files = [Source::ControllerState, Source::PcieLink, Source::PcieAer];
    assert!(!events.iter().any(|event| matches!(event.slot().source(), Some(source) if files.contains(&source))));
}

#[test]
fn counters_that_a_capture_does_not_hold_are_no_failure_but_a_host_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let outcomes = |root: Root| -> Vec<(Source, Outcome)> {
        let events = collect_once(root, CollectorSettings::default()).unwrap();
        assert!(matches!(sample(&events, Source::Discovery), Some(Sample::Discovery(scan)) if scan.seen == 0));
        let read = events.into_iter().filter_map(|event| match event {
            Event::Read { source, outcome, .. } => Some((source, outcome)),
            _ => None,
        });
        read.collect()
    };
    let captured = outcomes(Root::captured(dir.path()));
    for wanted in [Source::Diskstats, Source::Cpu, Source::HostInfo] {
        let outcome = captured.iter().find(|(source, _)| *source == wanted);
        assert_eq!(outcome, Some(&(wanted, Outcome::Unsupported("not in the capture".to_owned()))));
    }
    assert!(!captured.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(_))), "{captured:?}");
    let live = outcomes(Root::host(dir.path()));
    for wanted in [Source::Diskstats, Source::Cpu] {
        let failed = |(source, outcome): &(Source, Outcome)| {
            *source == wanted && matches!(outcome, Outcome::Failed(Fault::Io { errno: nix::libc::ENOENT, .. }))
        };
        assert!(live.iter().any(failed), "{wanted:?}: {live:?}");
    }
}

#[test]
fn a_capture_of_drives_alone_has_no_failing_source() {
    let dir = tempfile::tempdir().unwrap();
    let root = captured(dir.path());
    fs::remove_dir_all(&root.proc).unwrap();
    fs::remove_dir_all(&root.sys).unwrap();
    let events = collect_once(root, CollectorSettings::default()).unwrap();
    assert!(matches!(sample(&events, Source::SmartHealth), Some(Sample::SmartHealth(_))));
    let failed = |event: &&Event| matches!(event, Event::Read { outcome: Outcome::Failed(_), .. });
    assert_eq!(events.iter().find(failed), None);
}

/// A folder in which nothing can be listed, whoever asks: opening it fails with ELOOP.
fn unlistable(path: &Path) {
    std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap();
}

#[test]
fn a_list_that_cannot_be_read_takes_no_device_away_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let root = captured(dir.path());
    let (collector, events) = start(root.clone(), slow());
    let sda = appeared(&events, "sda").unwrap();
    until(&events, |event| read_of(event, Source::Discovery));

    let aside = root.sys("aside");
    fs::rename(root.sys("block"), &aside).unwrap();
    unlistable(&root.sys("block"));
    collector.rescan();
    // Nothing may be told as gone before the failure is, which comes after what the scan changed.
    let outcome = until(&events, |event| {
        assert!(!matches!(event, Event::Vanished(_)), "{event:?}");
        read_of(event, Source::Discovery)
    });
    assert!(
        matches!(&outcome, Outcome::Failed(Fault::Io { path, errno: nix::libc::ELOOP }) if path.ends_with("block")),
        "{outcome:?}"
    );

    fs::remove_file(root.sys("block")).unwrap();
    fs::rename(&aside, root.sys("block")).unwrap();
    fs::remove_dir_all(root.sys("block/sda")).unwrap();
    collector.rescan();
    until(&events, |event| (*event == Event::Vanished(Subject::Device(sda.clone()))).then_some(()));
    assert!(matches!(until(&events, |event| read_of(event, Source::Discovery)), Outcome::Value(_)));
}

#[test]
fn a_disk_whose_files_cannot_be_read_for_now_stays_who_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let root = captured(dir.path());
    let serial = root.sys("block/sda/device/serial");
    fs::create_dir_all(serial.parent().unwrap()).unwrap();
    fs::write(serial.with_file_name("rev"), "1\n").unwrap();
    fs::write(&serial, "WD-1\n").unwrap();
    let (collector, events) = start(root.clone(), slow());
    let sda = appeared(&events, "sda").unwrap();
    assert!(sda.0.contains("WD-1"), "{sda}");
    until(&events, |event| read_of(event, Source::Discovery));
    fs::remove_file(&serial).unwrap();
    unlistable(&serial);
    collector.rescan();
    let outcome = until(&events, |event| {
        let other = matches!(event, Event::Vanished(_) | Event::DeviceAppeared(_));
        assert!(!other, "{event:?}");
        read_of(event, Source::Discovery)
    });
    assert!(matches!(outcome, Outcome::Value(sample) if matches!(sample.as_ref(), Sample::Discovery(scan)
        if scan.seen == 1 && scan.faults.len() == 1)));
}

#[test]
fn a_first_list_that_is_not_whole_shows_what_was_found() {
    let dir = tempfile::tempdir().unwrap();
    let root = captured(dir.path());
    fs::create_dir_all(root.sys("class")).unwrap();
    unlistable(&root.sys("class/block"));
    let events = collect_once(root, CollectorSettings::default()).unwrap();
    assert!(events.iter().any(|event| name_of(event) == Some("sda")));
    let discovery = events.iter().find_map(|event| read_of(event, Source::Discovery));
    assert!(matches!(discovery, Some(Outcome::Failed(Fault::Io { .. }))), "{discovery:?}");
}

struct ChannelSink(mpsc::Sender<Event>);

impl EventSink for ChannelSink {
    fn put(&self, event: Event) {
        let _ = self.0.send(event);
    }
}

fn start(root: Root, settings: CollectorSettings) -> (Collector, mpsc::Receiver<Event>) {
    let (sender, events) = mpsc::channel();
    (Collector::start(root, settings, Arc::new(ChannelSink(sender))).unwrap(), events)
}

/// Periods at which nothing comes by itself.
fn slow() -> CollectorSettings {
    let periods = Periods {
        tick: HOUR,
        controller_state: HOUR,
        power: HOUR,
        link: HOUR,
        aer: HOUR,
        queue: HOUR,
        smart: HOUR,
        ocp: HOUR,
        ata_power: HOUR,
        stack: HOUR,
        host_info: HOUR,
        rescan: HOUR,
        ..Periods::default()
    };
    CollectorSettings { periods, ..CollectorSettings::default() }
}

/// The next event that `wanted` takes.
fn until<T>(events: &mpsc::Receiver<Event>, wanted: impl Fn(&Event) -> Option<T>) -> T {
    loop {
        if let Some(found) = wanted(&events.recv_timeout(PATIENCE).unwrap()) {
            return found;
        }
    }
}

fn appeared(events: &mpsc::Receiver<Event>, name: &str) -> Option<DeviceId> {
    until(events, |event| match event {
        Event::DeviceAppeared(device) if device.name == name => Some(Some(device.id.clone())),
        Event::ControllerAppeared(controller) if controller.name == name => Some(None),
        _ => None,
    })
}

fn read_of(event: &Event, wanted: Source) -> Option<Outcome> {
    match event {
        Event::Read { source, outcome, .. } if *source == wanted => Some(outcome.clone()),
        _ => None,
    }
}

#[test]
fn what_comes_and_goes_is_told_on_a_rescan() {
    let dir = tempfile::tempdir().unwrap();
    let root = captured(dir.path());
    let (collector, events) = start(root.clone(), slow());
    let sda = appeared(&events, "sda").unwrap();
    until(&events, |event| read_of(event, Source::Discovery));

    disk(&root, "sdb");
    collector.rescan();
    let sdb = appeared(&events, "sdb").unwrap();
    let queue = Subject::Device(sdb);
    until(&events, |event| match event {
        Event::Read { subject, source: Source::Queue, .. } if *subject == queue => Some(()),
        _ => None,
    });

    fs::remove_dir_all(root.sys("block/sda")).unwrap();
    collector.rescan();
    until(&events, |event| (*event == Event::Vanished(Subject::Device(sda.clone()))).then_some(()));
}

#[test]
fn another_selection_takes_effect_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (collector, events) = start(captured(dir.path()), slow());
    let sda = appeared(&events, "sda").unwrap();
    let selection = Selection::new(None, Some("sd.*"), None).unwrap();
    collector.reconfigure(CollectorSettings { selection, ..slow() });
    until(&events, |event| (*event == Event::Vanished(Subject::Device(sda.clone()))).then_some(()));
}

#[test]
fn a_captured_host_is_read_again_each_period() {
    let dir = tempfile::tempdir().unwrap();
    let root = captured(dir.path());
    let mut settings = slow();
    settings.periods.tick = crate::schedule::MIN_PERIOD;
    let (_collector, events) = start(root.clone(), settings);
    until(&events, |event| read_of(event, Source::Diskstats));
    fs::write(root.proc("diskstats"), "   8      16 sdz 1 0 8 5 2 0 16 9 0 12 14\n").unwrap();
    until(&events, |event| match read_of(event, Source::Diskstats)? {
        Outcome::Value(sample) => {
            matches!(sample.as_ref(), Sample::Diskstats(table) if table.rows[0].name == "sdz").then_some(())
        }
        _ => None,
    });
}

#[test]
fn nothing_is_told_after_the_stop() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = Arc::new(Mutex::new(Outbox::default()));
    let sink = Arc::clone(&outbox) as Arc<dyn EventSink>;
    let collector = Collector::start(captured(dir.path()), slow(), sink).unwrap();
    collector.stop();
    while outbox.lock().unwrap().take().is_some() {}
    collector.rescan();
    drop(collector);
    assert!(outbox.lock().unwrap().is_empty());
}
