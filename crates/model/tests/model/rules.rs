//! Each rule: when it opens, when it does not, what it says, and when it ends.

use crate::scenario::{Host, controller, disk, identify, link, report, smart};
use std::sync::Arc;
use storscope_model::device::Transport;
use storscope_model::event::Event;
use storscope_model::fault::Fault;
use storscope_model::finding::{Severity, Since};
use storscope_model::history::History;
use storscope_model::identity::Subject;
use storscope_model::sample::nvme::{ControllerState, ErrorEntry, ErrorLog, FirmwareSlots, SmartHealth};
use storscope_model::sample::probe::SkipReason;
use storscope_model::sample::queue::QueueSettings;
use storscope_model::sample::stack::{Mount, Node, Stack};
use storscope_model::sample::{Sample, Source};
use storscope_model::time::{BootTime, ClockSync};
use storscope_model::view::AgentStatus;

fn state(word: &str) -> Sample {
    Sample::ControllerState(ControllerState { state: word.to_owned() })
}

fn page(smart: SmartHealth) -> Sample {
    Sample::SmartHealth(Box::new(smart))
}

#[test]
fn a_healthy_host_has_no_finding() {
    let mut host = Host::new(4);
    host.diskstats(10);
    assert_eq!(host.rules(), [""; 0]);
}

#[test]
fn a_narrower_width_is_a_downgrade_after_two_samples() {
    let mut host = Host::new(1);
    host.read(&controller(0), Sample::PcieLink(link(8_000, 2)));
    assert_eq!(host.finding("pcie_link_downgraded"), None, "one sample may be a retraining link");
    let first = host.now;
    host.pass(15);
    host.read(&controller(0), Sample::PcieLink(link(8_000, 2)));
    let finding = host.finding("pcie_link_downgraded").unwrap();
    assert_eq!(finding.title, "PCIe link downgraded to x2 8 GT/s; drive and slot can do x4 16 GT/s");
    assert_eq!(finding.evidence[0], "2.0 of 7.9 GB/s on the way to the root");
    assert_eq!((finding.since, finding.severity), (Since::Boot(first), Severity::Warning));
    assert_eq!((finding.device.as_deref(), finding.controller.as_deref()), (Some("nvme0n1"), Some("nvme0")));
    for _ in 0..2 {
        host.pass(15);
        host.read(&controller(0), Sample::PcieLink(link(16_000, 4)));
        host.view();
    }
    assert_eq!(host.finding("pcie_link_downgraded"), None);
    assert_eq!(host.view().closed[0].ended, Some(host.now));
}

#[test]
fn a_lower_speed_counts_only_while_the_drive_works() {
    let mut host = Host::new(1);
    for n in 0..10 {
        host.pass(15);
        host.diskstats(100);
        host.read(&controller(0), Sample::PcieLink(link(2_500, 4)));
        assert_eq!(host.finding("pcie_link_downgraded"), None, "idle sample {n}");
    }
    for n in 0..3 {
        host.pass(15);
        host.diskstats(200 + n);
        host.view();
        host.read(&controller(0), Sample::PcieLink(link(2_500, 4)));
        host.view();
    }
    assert!(host.finding("pcie_link_downgraded").is_some());
}

#[test]
fn a_captured_host_is_judged_by_what_is_there() {
    let mut host = Host::new(2);
    host.agent = Arc::new(AgentStatus { captured: true, ..AgentStatus::default() });
    host.read(&controller(0), Sample::PcieLink(link(16_000, 1)));
    host.read(&controller(1), state("connecting"));
    assert_eq!(host.rules(), ["controller_not_live", "pcie_link_downgraded"]);
}

#[test]
fn three_changes_in_ten_minutes_flap_and_ten_quiet_minutes_end_it() {
    let mut host = Host::new(1);
    host.view();
    for speed in [8_000, 16_000, 8_000] {
        host.pass(60);
        host.read(&controller(0), Sample::PcieLink(link(speed, 4)));
        host.view();
    }
    let finding = host.finding("pcie_link_flapping").unwrap();
    assert_eq!(finding.title, "PCIe link changed speed or width 3 times in 10 min");
    host.pass(590);
    host.read(&controller(0), Sample::PcieLink(link(8_000, 4)));
    assert!(host.finding("pcie_link_flapping").is_some(), "one change is still within the window");
    host.pass(20);
    host.read(&controller(0), Sample::PcieLink(link(8_000, 4)));
    assert_eq!(host.finding("pcie_link_flapping"), None);
}

#[test]
fn another_state_than_live_has_ten_seconds_and_dead_has_none() {
    let mut host = Host::new(2);
    host.read(&controller(0), state("resetting"));
    host.read(&controller(1), state("dead"));
    let finding = host.finding("controller_not_live").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Critical, "controller is dead, not live"));
    assert_eq!(host.rules().len(), 1);
    host.pass(11);
    host.read(&controller(0), state("resetting"));
    assert_eq!(host.rules().len(), 2);
    host.read(&controller(0), state("live"));
    assert_eq!(host.rules().len(), 1);
}

#[test]
fn critical_warning_bits_are_named_and_temperature_alone_is_a_warning() {
    let mut host = Host::new(1);
    host.read(&controller(0), page(SmartHealth { critical_warning: 0x10, ..smart() }));
    let finding = host.finding("nvme_critical_warning").unwrap();
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(finding.title, "the drive warns: volatile memory backup failed");
    host.read(&controller(0), page(SmartHealth { critical_warning: 0x02, ..smart() }));
    assert_eq!(host.finding("nvme_critical_warning").unwrap().severity, Severity::Warning);
    host.read(&controller(0), page(SmartHealth { critical_warning: 0x0D, ..smart() }));
    let finding = host.finding("nvme_critical_warning").unwrap();
    assert_eq!((finding.severity, finding.evidence.len()), (Severity::Critical, 4));
}

#[test]
fn spare_is_low_only_under_a_sane_threshold() {
    let mut host = Host::new(1);
    let spare = |spare, threshold| {
        page(SmartHealth { available_spare_percent: spare, available_spare_threshold_percent: threshold, ..smart() })
    };
    for (is, threshold, low) in [(0, 0, false), (10, 10, false), (9, 10, true), (50, 255, false), (0, 100, true)] {
        host.read(&controller(0), spare(is, threshold));
        assert_eq!(host.finding("nvme_spare_low").is_some(), low, "{is} of {threshold}");
    }
}

fn mirrored() -> Sample {
    let node = |name: &str, label: Option<&str>, above: &[&str], mounts: Vec<Mount>| Node {
        name: name.to_owned(),
        label: label.map(str::to_owned),
        above: above.iter().map(|name| (*name).to_owned()).collect(),
        mounts,
        swap: false,
    };
    let postgres = Mount { point: "/var/lib/postgresql".to_owned(), fs_type: "ext4".to_owned() };
    Sample::Stack(Stack {
        nodes: vec![
            node("nvme0n1", None, &["md0"], Vec::new()),
            node("nvme1n1", None, &["md0"], Vec::new()),
            node("md0", Some("md0 (raid1, 2 of 2)"), &["dm-0"], Vec::new()),
            node("dm-0", Some("vg0/data"), &[], vec![postgres]),
        ],
        ..Stack::default()
    })
}

#[test]
fn growing_media_errors_say_from_what_to_what_and_what_is_at_stake() {
    let mut host = Host::new(2);
    host.read(&Subject::Host, mirrored());
    for minute in 0..=80_u64 {
        host.pass(60);
        let media_errors = if minute < 60 { 12 } else { 12 + u128::from(minute - 59).min(19) };
        host.read(&controller(1), page(SmartHealth { media_errors, ..smart() }));
        host.read(&Subject::Host, mirrored());
        host.view();
    }
    let entry = ErrorEntry { status: 0x281, ..ErrorEntry::default() };
    host.read(&controller(1), Sample::ErrorLog(ErrorLog { entries: vec![entry; 19] }));
    let finding = host.finding("media_errors_grown").unwrap();
    assert_eq!(
        (finding.severity, finding.title.as_str()),
        (Severity::Critical, "uncorrected media errors are growing")
    );
    assert_eq!(
        finding.evidence,
        ["media errors 12 -> 31 in the last hour", "error log: 19 x unrecovered read error (281h)"]
    );
    assert_eq!(finding.carries, ["md0 (raid1, 2 of 2) > vg0/data > /var/lib/postgresql (ext4)"]);
    assert_eq!(finding.next, "replace the drive; md0 has a good copy on nvme0n1");
    for _ in 0..23 {
        host.pass(3600);
        host.read(&controller(1), page(SmartHealth { media_errors: 31, ..smart() }));
        host.view();
    }
    let finding = host.finding("media_errors_grown").unwrap();
    assert_eq!(finding.title, "uncorrected media errors grew");
    host.pass(3600);
    host.read(&controller(1), page(SmartHealth { media_errors: 31, ..smart() }));
    assert_eq!(host.finding("media_errors_grown"), None, "a day after the newest growth");
}

#[test]
fn old_media_errors_and_error_log_entries_are_no_finding() {
    let mut host = Host::new(1);
    let worn = SmartHealth { media_errors: 900, error_log_entries: 14_644, ..smart() };
    for _ in 0..5 {
        host.read(&controller(0), page(SmartHealth { error_log_entries: worn.error_log_entries + 1, ..worn.clone() }));
        host.read(
            &controller(0),
            Sample::ErrorLog(ErrorLog {
                entries: vec![ErrorEntry { status: 0x002, count: 14_644, ..ErrorEntry::default() }],
            }),
        );
        assert_eq!(host.rules(), [""; 0]);
        host.pass(5);
    }
}

#[test]
fn temperature_follows_the_drives_own_thresholds_with_two_kelvin_to_spare() {
    let mut host = Host::new(1);
    let mut at = |celsius| {
        host.read(&controller(0), page(SmartHealth { temperature_c: Some(celsius), ..smart() }));
        host.finding("nvme_temperature").map(|finding| finding.severity)
    };
    let warning = Some(Severity::Warning);
    let critical = Some(Severity::Critical);
    let said = [69, 70, 69, 68, 67, 80, 79, 78, 69, 67].map(&mut at);
    assert_eq!(said, [None, warning, warning, warning, None, critical, critical, critical, warning, None]);
    let mut silent = identify();
    silent.warning_temperature_c = None;
    silent.critical_temperature_c = None;
    host.read(&controller(0), Sample::Identify(Box::new(silent)));
    host.read(&controller(0), page(SmartHealth { temperature_c: Some(99), ..smart() }));
    assert_eq!(host.finding("nvme_temperature"), None, "a drive without thresholds is not judged");
}

#[test]
fn wear_past_one_hundred_is_a_warning_as_it_is() {
    let mut host = Host::new(1);
    host.read(&controller(0), page(SmartHealth { percentage_used: 222, ..smart() }));
    let finding = host.finding("nvme_wear").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Warning, "rated endurance is used up: 222 %"));
    assert!(finding.next.starts_with("no failure in itself"));
}

#[test]
fn an_open_finding_outlasts_the_silence_of_its_source() {
    let mut host = Host::new(1);
    host.read(&controller(0), page(SmartHealth { percentage_used: 100, ..smart() }));
    assert!(host.finding("nvme_wear").is_some());
    host.pass(600);
    let finding = host.finding("nvme_wear").unwrap();
    assert_eq!(finding.evidence.last().map(String::as_str), Some("as last seen 0 s ago: its source gives nothing now"));
    let view = host.view();
    assert!(view.controllers[0].state.smart.fresh().is_none());
    host.tell(Event::Vanished(controller(0)));
    assert_eq!(host.finding("nvme_wear"), None);
}

#[test]
fn failed_reads_are_told_by_errno_and_none_that_succeeds_is_critical() {
    let mut host = Host::new(1);
    let mut some = report(500);
    some.errors = vec![(61, 2)];
    host.read(&disk(0), Sample::Probe(Box::new(some.clone())));
    let finding = host.finding("probe_errors").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Warning, "reads fail: ENODATA"));
    assert_eq!(finding.evidence[0], "2 x ENODATA (medium error, write fault or locked range) in the last hour");
    host.pass(400);
    some.errors = vec![(5, 2), (61, 2)];
    host.read(&disk(0), Sample::Probe(Box::new(some)));
    let finding = host.finding("probe_errors").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Critical, "no read succeeds: EIO, ENODATA"));
    host.pass(4000);
    assert_eq!(host.finding("probe_errors"), None, "an hour without errors");
}

#[test]
fn a_dead_disk_is_critical_after_half_a_minute_and_says_when_it_last_answered() {
    let mut host = Host::new(1);
    host.read(&disk(0), Sample::Probe(Box::new(report(152))));
    host.view();
    let mut dead = report(152);
    for n in 1..=9_u64 {
        host.pass(4);
        dead.errors = vec![(5, n)];
        host.read(&disk(0), Sample::Probe(Box::new(dead.clone())));
        let finding = host.finding("probe_errors").unwrap();
        let critical = n == 9;
        assert_eq!(finding.severity == Severity::Critical, critical, "{n} failed");
        assert_eq!(host.view().devices[0].probe.only_fails, n >= 3, "{n} failed");
    }
    let finding = host.finding("probe_errors").unwrap();
    assert_eq!(finding.title, "no read succeeds: EIO");
    assert_eq!(finding.evidence[1], "last success 36 s ago; 152 timed reads succeeded in the hour before");
    assert!(finding.next.contains("286h"), "{}", finding.next);
    dead.classes = report(153).classes;
    dead.busy_ns += 1;
    host.pass(4);
    host.read(&disk(0), Sample::Probe(Box::new(dead)));
    let finding = host.finding("probe_errors").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Warning, "reads fail: EIO"));
    assert_eq!(finding.evidence[1], "153 timed reads succeeded in the same hour");
    assert!(!host.view().devices[0].probe.only_fails);
}

#[test]
fn a_locked_range_is_spoken_of_on_nvme_only() {
    let mut host = Host::new(0);
    host.tell(Event::DeviceAppeared(Box::new(crate::gone::device(0, Transport::Sata))));
    let mut some = report(5);
    some.errors = vec![(5, 1)];
    host.read(&disk(0), Sample::Probe(Box::new(some)));
    assert_eq!(host.finding("probe_errors").unwrap().next, "look at the kernel log and the drive's error log");
}

#[test]
fn counters_that_nobody_counts_are_not_shown_and_are_no_hang() {
    let mut host = Host::new(1);
    let queue = |on| Sample::Queue(Box::new(QueueSettings { iostats: Some(on), ..QueueSettings::default() }));
    for on in [true, false, true] {
        host.pass(5);
        host.read(&disk(0), queue(on));
        host.diskstats(100);
        host.view();
        host.pass(5);
        host.diskstats(100);
        let view = host.view();
        assert_eq!((view.devices[0].rates.is_some(), view.devices[0].counters.is_some()), (on, on));
        assert_eq!(view.devices[0].state.queue.fresh().and_then(|queue| queue.iostats), Some(on));
    }
    host.read(&disk(0), queue(false));
    let mut full = report(10);
    full.last_skip = Some(SkipReason::QueueFull);
    for n in 1..=10_u64 {
        host.pass(5);
        full.skipped = vec![(SkipReason::QueueFull, n)];
        host.read(&disk(0), Sample::Probe(Box::new(full.clone())));
        host.diskstats(100);
        host.view();
    }
    assert_eq!(host.finding("device_stalled"), None);
    let mut stuck = report(10);
    stuck.outstanding_since = Some(host.now);
    host.read(&disk(0), Sample::Probe(Box::new(stuck)));
    assert_eq!(host.finding("device_stalled").unwrap().evidence, [""; 0], "nothing is in flight by no count");
}

#[test]
fn an_outstanding_read_is_a_stall_and_critical_after_half_a_minute() {
    let mut host = Host::new(1);
    host.diskstats(100);
    let mut stuck = report(10);
    stuck.outstanding_since = Some(host.now);
    host.pass(10);
    host.read(&disk(0), Sample::Probe(Box::new(stuck)));
    let finding = host.finding("device_stalled").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Warning, "a read has not come back for 10 s"));
    host.pass(25);
    assert_eq!(host.finding("device_stalled").unwrap().severity, Severity::Critical);
    host.read(&disk(0), Sample::Probe(Box::new(report(11))));
    assert_eq!(host.finding("device_stalled"), None);
}

#[test]
fn a_full_queue_is_a_hang_only_when_nothing_completes() {
    for completes in [true, false] {
        let mut host = Host::new(1);
        host.diskstats(100);
        host.view();
        let mut full = report(10);
        full.last_skip = Some(SkipReason::QueueFull);
        for n in 1..=10_u64 {
            host.pass(5);
            full.skipped = vec![(SkipReason::QueueFull, n)];
            host.read(&disk(0), Sample::Probe(Box::new(full.clone())));
            host.diskstats(if completes { 100 + n } else { 100 });
            host.view();
        }
        let finding = host.finding("device_stalled");
        assert_eq!(finding.is_none(), completes);
        if let Some(finding) = finding {
            assert_eq!(finding.severity, Severity::Critical);
            assert_eq!(finding.title, "the queue is full and nothing has completed for 45 s");
        }
    }
}

#[test]
fn a_source_must_fail_three_times_in_a_row() {
    let mut host = Host::new(4);
    let fault = Fault::Io { path: "nvme2".to_owned(), errno: 5 };
    for n in 1..=3 {
        assert_eq!(host.finding("source_failing"), None, "{n}");
        host.pass(5);
        host.fail(&controller(2), Source::SmartHealth, fault.clone());
    }
    let finding = host.finding("source_failing").unwrap();
    assert_eq!((finding.subject, finding.title.as_str()), (controller(2), "no data from smart_health"));
    assert!(finding.evidence[0].contains("3 failures in a row"), "{:?}", finding.evidence);
}

#[test]
fn what_fails_everywhere_is_one_finding_of_the_host() {
    let mut host = Host::new(24);
    for _ in 0..3 {
        host.pass(60);
        for n in 0..24 {
            host.fail(&controller(n), Source::SmartHealth, Fault::Io { path: format!("nvme{n}"), errno: 5 });
        }
    }
    let findings = host.view().findings;
    let [finding] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!((finding.rule, &finding.subject), ("source_failing", &Subject::Host));
    assert!(finding.evidence[0].contains("and 21 more"), "{:?}", finding.evidence);
}

#[test]
fn denied_is_one_finding_that_names_what_would_allow_it() {
    let mut host = Host::new(24);
    for n in 0..24 {
        for source in [Source::SmartHealth, Source::Identify, Source::ErrorLog] {
            let fault = Fault::Denied { path: format!("nvme{n}"), needs: "CAP_SYS_ADMIN".to_owned() };
            host.fail(&controller(n), source, fault);
        }
    }
    let findings = host.view().findings;
    let [finding] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!(finding.rule, "source_denied");
    assert_eq!(finding.title, "identify, SMART, error_log are denied on nvme0, nvme1 and 22 more");
    assert_eq!(finding.evidence.len(), 3);
    assert!(finding.evidence[0].ends_with("and 21 more; needs CAP_SYS_ADMIN"), "{:?}", finding.evidence);
    assert_eq!(finding.next, "storscope doctor says why and what mends it");
}

#[test]
fn probes_that_are_denied_are_information() {
    let mut host = Host::new(1);
    let mut denied = report(0);
    denied.last_skip = Some(SkipReason::Denied);
    host.read(&disk(0), Sample::Probe(Box::new(denied)));
    let finding = host.finding("source_denied").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Info, "probes are denied on nvme0n1"));
    assert_eq!(finding.evidence, ["probe: denied on nvme0n1"], "what would help is not known here");
    assert_eq!(finding.next, "storscope doctor says why and what mends it");
}

#[test]
fn firmware_that_waits_for_a_reset_is_information() {
    let mut host = Host::new(1);
    let mut slots = FirmwareSlots { active: 1, next: Some(2), ..FirmwareSlots::default() };
    slots.revisions[0] = Some("FW1".to_owned());
    slots.revisions[1] = Some("FW2".to_owned());
    host.read(&controller(0), Sample::FirmwareSlots(slots));
    let finding = host.finding("firmware_pending").unwrap();
    assert_eq!(
        (finding.severity, finding.title.as_str()),
        (Severity::Info, "firmware FW2 becomes active at the next reset")
    );
}

#[test]
fn findings_come_worst_first_then_oldest() {
    let mut host = Host::new(3);
    host.read(&controller(0), page(SmartHealth { percentage_used: 100, ..smart() }));
    host.view();
    host.pass(20);
    host.read(&controller(1), page(SmartHealth { percentage_used: 101, ..smart() }));
    host.read(&controller(2), page(SmartHealth { critical_warning: 4, ..smart() }));
    let findings = host.view().findings;
    let order: Vec<&Subject> = findings.iter().map(|finding| &finding.subject).collect();
    assert_eq!(order, [&controller(2), &controller(0), &controller(1)]);
}

#[test]
fn a_finding_and_a_baseline_go_on_over_a_reboot() {
    let mut host = Host::new(1);
    host.read(&controller(0), page(SmartHealth { percentage_used: 100, media_errors: 5, ..smart() }));
    host.view();
    let began = host.snapshot.clock.wall_ns(host.now);
    let memory = host.history.memory(&host.snapshot.clock);

    let mut next = Host::new(0);
    next.snapshot.clock = ClockSync { boot_id: "next".to_owned(), wall_offset_ns: 1_790_000_500_000_000_000 };
    next.history = History::restore(&memory, &next.snapshot.clock);
    next.now = BootTime::from_secs(30);
    next.view();
    assert_eq!(next.history.memory(&next.snapshot.clock).media_errors, memory.media_errors, "unseen, not forgotten");
    next.tell(Event::ControllerAppeared(Box::new(crate::scenario::nvme_controller(0))));
    next.read(&controller(0), page(SmartHealth { percentage_used: 100, media_errors: 7, ..smart() }));
    let wear = next.finding("nvme_wear").unwrap();
    assert_eq!(wear.since, Since::Wall(began));
    let media = next.finding("media_errors_grown").unwrap();
    assert!(media.evidence[0].starts_with("media errors 5 -> 7 in "), "{:?}", media.evidence);
}
