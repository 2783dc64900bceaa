use super::*;
use crate::collector::made_up;
use std::fs;
use std::time::Duration;
use storscope_drive::{
    AdminCommand, CommandError, CommandId, CommandReport, Outcome as Ended, PageBuffer, Refusal, Status,
};
use storscope_model::time::BootTime;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> BootTime {
        BootTime::from_secs(12 * 3600)
    }
}

const CSE: u32 = 1 | 1 << 16;

/// A drive that serves these pages and refuses all others with 109h.
struct MadeUp {
    pages: Vec<(CommandId, Vec<u8>)>,
    sent: Vec<CommandId>,
    reports: Vec<CommandReport>,
}

impl MadeUp {
    fn new(pages: &[(LogPage, Vec<u8>)]) -> Self {
        let logs = pages.iter().map(|(page, bytes)| (CommandId::GetLog(*page), bytes.clone()));
        let identify = (CommandId::Identify(Identify::Controller), identify("FW1"));
        Self { pages: logs.chain([identify]).collect(), sent: Vec::new(), reports: Vec::new() }
    }

    fn set(&mut self, command: CommandId, bytes: Vec<u8>) {
        self.pages.retain(|(known, _)| *known != command);
        self.pages.push((command, bytes));
    }

    fn sent(&self, page: LogPage) -> usize {
        self.sent.iter().filter(|sent| **sent == CommandId::GetLog(page)).count()
    }
}

impl AdminChannel for MadeUp {
    fn submit(&mut self, command: &AdminCommand) -> Result<PageBuffer, CommandError> {
        let id = command.id();
        self.sent.push(id);
        let served = self.pages.iter().find(|(page, _)| *page == id);
        let status = Status::from_ioctl(0x2109);
        let outcome = if served.is_some() { Ended::Done } else { Ended::Status(status) };
        self.reports.push(CommandReport { command: id, took: Duration::from_micros(7), outcome });
        match served {
            Some((_, bytes)) => Ok(PageBuffer::copied(&bytes[..bytes.len().min(command.length())])),
            None => Err(CommandError::Status { command: id, status }),
        }
    }

    fn take_reports(&mut self) -> Vec<CommandReport> {
        std::mem::take(&mut self.reports)
    }
}

/// An NVMe 1.3 drive with an effects log, without self-test, of a vendor that makes OCP drives.
fn identify(firmware: &str) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[0..2].copy_from_slice(&0x144d_u16.to_le_bytes());
    bytes[4..24].copy_from_slice(b"S1                  ");
    bytes[24..64].fill(b' ');
    bytes[24..31].copy_from_slice(b"Made up");
    bytes[64..72].fill(b' ');
    bytes[64..64 + firmware.len()].copy_from_slice(firmware.as_bytes());
    bytes[80..84].copy_from_slice(&0x0001_0300_u32.to_le_bytes());
    bytes[261] = 0b10;
    bytes[262] = 7;
    bytes
}

fn smart(error_entries: u128) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[1..3].copy_from_slice(&310_u16.to_le_bytes());
    bytes[3] = 100;
    bytes[176..192].copy_from_slice(&error_entries.to_le_bytes());
    bytes
}

fn effects(get_log: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[2 * 4..3 * 4].copy_from_slice(&get_log.to_le_bytes());
    bytes[6 * 4..7 * 4].copy_from_slice(&1_u32.to_le_bytes());
    bytes
}

struct Bench {
    root: Root,
    controller: Controller,
    periods: Periods,
    drives: Drives,
}

impl Bench {
    fn new() -> Self {
        Self {
            root: Root::host(Path::new("nowhere")),
            controller: made_up::controller("nvme0"),
            periods: Periods::default(),
            drives: Drives::default(),
        }
    }

    fn poll(&self) -> Poll<'_> {
        Poll { root: &self.root, controller: &self.controller, periods: &self.periods, clock: &Noon }
    }

    fn ask(&self, drive: &mut MadeUp, source: Source) -> Done {
        self.drives.ask(&self.poll(), drive, source)
    }
}

fn planned(done: &Done) -> Vec<(Source, Duration)> {
    let plans = done.changes.iter().filter_map(|change| match change {
        Change::Plan(plan) => Some((plan.job.source, plan.period)),
        _ => None,
    });
    plans.collect()
}

fn hastened(done: &Done) -> Vec<Source> {
    let jobs = done.changes.iter().filter_map(|change| match change {
        Change::Hasten(job) => Some(job.source),
        _ => None,
    });
    jobs.collect()
}

fn told(done: &Done, wanted: Source) -> Option<&Outcome> {
    done.changes.iter().find_map(|change| match change {
        Change::Announce(Event::Read { source, outcome, .. }) if *source == wanted => Some(outcome),
        _ => None,
    })
}

#[test]
fn identify_plans_the_pages_that_exist_and_tells_why_others_do_not() {
    let bench = Bench::new();
    let mut drive = MadeUp::new(&[(LogPage::CommandEffects, effects(1))]);
    let done = bench.ask(&mut drive, Source::Identify);
    let periods = &bench.periods;
    let expected = [
        (Source::SmartHealth, periods.smart),
        (Source::ErrorLog, periods.error_log),
        (Source::FirmwareSlots, periods.rare),
        (Source::OcpSmart, periods.ocp),
    ];
    assert_eq!(planned(&done), expected);
    assert!(matches!(told(&done, Source::SelfTest), Some(Outcome::Unsupported(why)) if why.contains("OACS")));
    let Outcome::Value(sample) = &done.outcome else { panic!("{:?}", done.outcome) };
    let Sample::Identify(sample) = sample.as_ref() else { panic!("{sample:?}") };
    assert_eq!(sample.model, "Made up");
    assert_eq!(sample.not_asked.iter().map(|(page, _)| page.as_str()).collect::<Vec<_>>(), ["self_test"]);
}

#[test]
fn a_drive_whose_io_stops_for_a_log_read_is_asked_rarely_and_its_effects_once() {
    let bench = Bench::new();
    let mut drive = MadeUp::new(&[(LogPage::CommandEffects, effects(CSE)), (LogPage::SmartHealth, smart(1))]);
    for _ in 0..2 {
        let done = bench.ask(&mut drive, Source::Identify);
        assert!(planned(&done).iter().all(|(_, period)| *period == bench.periods.rare), "{done:?}");
    }
    assert_eq!(drive.sent(LogPage::CommandEffects), 1);
    bench.ask(&mut drive, Source::SmartHealth);
    drive.set(CommandId::GetLog(LogPage::SmartHealth), smart(2));
    assert!(hastened(&bench.ask(&mut drive, Source::SmartHealth)).is_empty());
}

#[test]
fn the_error_log_is_read_early_when_its_count_moved() {
    let bench = Bench::new();
    let mut drive = MadeUp::new(&[(LogPage::SmartHealth, smart(70))]);
    bench.ask(&mut drive, Source::Identify);
    assert!(hastened(&bench.ask(&mut drive, Source::SmartHealth)).is_empty());
    assert!(hastened(&bench.ask(&mut drive, Source::SmartHealth)).is_empty());
    drive.set(CommandId::GetLog(LogPage::SmartHealth), smart(71));
    assert_eq!(hastened(&bench.ask(&mut drive, Source::SmartHealth)), [Source::ErrorLog]);
    assert!(hastened(&bench.ask(&mut drive, Source::SmartHealth)).is_empty());
}

#[test]
fn a_refused_page_is_asked_once_until_the_firmware_changes_also_after_a_restart() {
    let mut bench = Bench::new();
    let mut drive = MadeUp::new(&[(LogPage::CommandEffects, effects(1))]);
    bench.ask(&mut drive, Source::Identify);
    for _ in 0..3 {
        let done = bench.ask(&mut drive, Source::OcpSmart);
        assert!(matches!(done.outcome, Outcome::Unsupported(why) if why.contains("109h")));
    }
    assert_eq!(drive.sent(LogPage::OcpSmart), 1);

    let saved = bench.drives.refusals();
    let kept: Vec<_> = saved.iter().map(|(kind, label, refusal)| (kind.firmware.clone(), label, refusal)).collect();
    let ocp = CommandId::GetLog(LogPage::OcpSmart).label();
    assert_eq!(kept, [("FW1".to_owned(), ocp, Refusal::Status(Status::from_ioctl(0x2109)))]);
    bench.drives = Drives::new(saved);
    let done = bench.ask(&mut drive, Source::Identify);
    assert!(told(&done, Source::OcpSmart).is_some());
    assert_eq!(drive.sent(LogPage::OcpSmart), 1);

    drive.set(CommandId::Identify(Identify::Controller), identify("FW2"));
    let done = bench.ask(&mut drive, Source::Identify);
    assert!(planned(&done).iter().any(|(source, _)| *source == Source::OcpSmart));
}

#[test]
fn one_page_that_fails_costs_no_other() {
    let bench = Bench::new();
    let pages = [
        (LogPage::SmartHealth, vec![0xff; 512]),
        (LogPage::FirmwareSlots, {
            let mut page = vec![0; 512];
            page[0] = 1;
            page[8..11].copy_from_slice(b"FW1");
            page
        }),
    ];
    let mut drive = MadeUp::new(&pages);
    bench.ask(&mut drive, Source::Identify);
    let smart = bench.ask(&mut drive, Source::SmartHealth).outcome;
    assert!(matches!(smart, Outcome::Failed(Fault::Parse { what, .. }) if what.contains("every byte is FFh")));
    let firmware = bench.ask(&mut drive, Source::FirmwareSlots).outcome;
    assert!(matches!(firmware, Outcome::Value(sample) if sample.source() == Source::FirmwareSlots));
}

#[test]
fn every_poll_tells_what_asking_cost() {
    let bench = Bench::new();
    let mut drive = MadeUp::new(&[(LogPage::SmartHealth, smart(0))]);
    bench.ask(&mut drive, Source::Identify);
    bench.ask(&mut drive, Source::SmartHealth);
    let done = bench.ask(&mut drive, Source::SmartHealth);
    let Some(Outcome::Value(sample)) = told(&done, Source::DriveCommands) else { panic!("{done:?}") };
    let Sample::DriveCommands(commands) = sample.as_ref() else { panic!("{sample:?}") };
    let label = CommandId::GetLog(LogPage::SmartHealth).label();
    let smart = commands.counts.iter().find(|count| count.command == label).unwrap();
    assert_eq!((smart.count, smart.time_ns), (2, 14_000));
}

#[test]
fn pages_wait_for_identify() {
    let bench = Bench::new();
    let mut drive = MadeUp::new(&[(LogPage::SmartHealth, smart(0))]);
    assert!(matches!(bench.ask(&mut drive, Source::SmartHealth).outcome, Outcome::Withheld(_)));
    assert!(drive.sent.is_empty());
}

/// A live host in a folder: `nvme0` in `state`, its PCI function in `power`.
fn host(state: &str, power: &str) -> (tempfile::TempDir, Bench) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::host(dir.path());
    let function = root.sys("devices/pci0000:00/0000:00:01.0");
    fs::create_dir_all(function.join("nvme/nvme0")).unwrap();
    fs::create_dir_all(function.join("power")).unwrap();
    fs::write(function.join("power/runtime_status"), power).unwrap();
    fs::write(function.join("nvme/nvme0/state"), state).unwrap();
    fs::create_dir_all(root.sys("class/nvme")).unwrap();
    let link = root.sys("class/nvme/nvme0");
    std::os::unix::fs::symlink("../../devices/pci0000:00/0000:00:01.0/nvme/nvme0", link).unwrap();
    fs::create_dir_all(&root.dev).unwrap();
    (dir, Bench { root, ..Bench::new() })
}

#[test]
fn only_a_live_controller_that_is_awake_is_asked() {
    for (state, power, why) in [
        ("resetting\n", "active\n", "resetting"),
        ("deleting (no IO)\n", "active\n", "deleting (no IO)"),
        ("live\n", "suspended\n", "suspended"),
    ] {
        let (_dir, bench) = host(state, power);
        let outcome = bench.drives.poll(&bench.poll(), Source::Identify).outcome;
        assert!(matches!(&outcome, Outcome::Withheld(told) if told.contains(why)), "{outcome:?}");
        let outcome = bench.drives.namespace(&bench.poll(), 1).outcome;
        assert!(matches!(&outcome, Outcome::Withheld(told) if told.contains(why)), "{outcome:?}");
    }
}

#[test]
fn a_node_that_is_no_controller_is_an_errno_and_an_absent_one_is_gone() {
    let (_dir, bench) = host("live\n", "active\n");
    assert_eq!(bench.drives.poll(&bench.poll(), Source::Identify).outcome, Outcome::Failed(Fault::Gone));
    let node = bench.root.node("nvme0");
    fs::write(&node, b"").unwrap();
    let enotty = Fault::Io { path: node.display().to_string(), errno: nix::libc::ENOTTY };
    assert_eq!(bench.drives.poll(&bench.poll(), Source::Identify).outcome, Outcome::Failed(enotty.clone()));
    assert_eq!(bench.drives.namespace(&bench.poll(), 1).outcome, Outcome::Failed(enotty));
}

#[test]
fn another_drive_under_the_same_name_is_not_taken_for_this_one() {
    let (_dir, mut bench) = host("live\n", "active\n");
    bench.controller.serial = Some("S1".to_owned());
    fs::write(bench.root.node("nvme0"), b"").unwrap();
    let serial = bench.root.sys("class/nvme/nvme0/serial");
    fs::write(&serial, "S1                  \n").unwrap();
    let asked = bench.drives.poll(&bench.poll(), Source::Identify).outcome;
    assert!(matches!(asked, Outcome::Failed(Fault::Io { .. })), "{asked:?}");
    fs::write(&serial, "S2                  \n").unwrap();
    assert_eq!(bench.drives.poll(&bench.poll(), Source::Identify).outcome, Outcome::Failed(Fault::Gone));
    assert_eq!(bench.drives.namespace(&bench.poll(), 1).outcome, Outcome::Failed(Fault::Gone));
}

#[test]
fn a_node_that_may_not_be_opened_is_denied() {
    if !crate::unprivileged::go_on("nvme::drives::tests::a_node_that_may_not_be_opened_is_denied") {
        return;
    }
    let (_dir, bench) = host("live\n", "active\n");
    let node = bench.root.node("nvme0");
    fs::write(&node, b"").unwrap();
    crate::unprivileged::deny(&node);
    let outcome = bench.drives.poll(&bench.poll(), Source::Identify).outcome;
    let path = node.display().to_string();
    let needs = "read access to the device file".to_owned();
    assert_eq!(outcome, Outcome::Failed(Fault::Denied { path, needs }));
}

#[test]
fn a_controller_that_came_back_is_noticed_once() {
    let drives = Drives::default();
    let id = ControllerId("c".to_owned());
    let seen: Vec<bool> =
        [true, true, false, false, true, true].into_iter().map(|live| drives.note_live(&id, live)).collect();
    assert_eq!(seen, [false, false, false, false, true, false]);
}

#[test]
fn a_captured_controller_without_sysfs_answers_from_its_pages() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench { root: Root::captured(dir.path()), ..Bench::new() };
    let folder = dir.path().join("drives/nvme0");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("identify.bin"), identify("FW1")).unwrap();
    fs::write(folder.join("logpage-0x02.bin"), smart(3)).unwrap();
    let poll = |source| bench.drives.poll(&bench.poll(), source).outcome;
    assert!(matches!(poll(Source::Identify), Outcome::Value(_)));
    assert!(matches!(poll(Source::SmartHealth), Outcome::Value(sample)
        if matches!(sample.as_ref(), Sample::SmartHealth(smart) if smart.error_log_entries == 3)));
    assert_eq!(poll(Source::FirmwareSlots), Outcome::Unsupported("not in the capture".to_owned()));
    assert_eq!(bench.drives.namespace(&bench.poll(), 1).outcome, Outcome::Unsupported("not in the capture".to_owned()));
}
