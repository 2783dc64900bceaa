//! Counters by identity: paths that come and go, drives that change names or places.

use crate::scenario::{Host, controller_id, device_id, line, nvme_device};
use storscope_model::device::{Device, NvmePath};
use storscope_model::event::Event;
use storscope_model::identity::Subject;
use storscope_model::sample::diskstats::Table;
use storscope_model::sample::{Sample, Source};

fn head(paths: &[&str]) -> Device {
    let mut device = nvme_device(0);
    if let Some(nvme) = &mut device.nvme {
        nvme.paths = paths
            .iter()
            .map(|name| NvmePath { name: (*name).to_owned(), controller: controller_id(0), ana_state: None })
            .collect();
    }
    device
}

fn stats(host: &mut Host, rows: &[(&str, u64)]) {
    let rows = rows.iter().map(|(name, completed)| line(name, *completed)).collect();
    host.read(&Subject::Host, Sample::Diskstats(Table { rows, faults: Vec::new() }));
}

fn reads(host: &mut Host) -> Option<u64> {
    host.view().devices[0].counters.map(|counters| counters.reads.completed)
}

#[test]
fn the_head_counts_what_its_paths_do_on_every_kernel() {
    let mut host = Host::new(0);
    host.tell(Event::DeviceAppeared(Box::new(head(&["nvme0c0n1", "nvme0c1n1"]))));
    for own in [0, 1_000_000] {
        stats(&mut host, &[("nvme0n1", own), ("nvme0c0n1", 34_706_049), ("nvme0c1n1", 162)]);
        assert_eq!(reads(&mut host), Some(34_706_211));
    }
    host.pass(5);
    stats(&mut host, &[("nvme0n1", 0), ("nvme0c0n1", 34_706_059), ("nvme0c1n1", 172)]);
    let view = host.view();
    assert_eq!(view.devices[0].rates.map(|rates| rates.reads_per_second), Some(4.0));
    host.pass(5);
    host.tell(Event::DeviceAppeared(Box::new(head(&["nvme0c1n1"]))));
    stats(&mut host, &[("nvme0n1", 0), ("nvme0c1n1", 175)]);
    let view = host.view();
    assert_eq!(view.devices[0].counters.map(|counters| counters.reads.completed), Some(34_706_234));
    assert_eq!(view.devices[0].rates, None, "the vanished path's last part is missing");
}

#[test]
fn a_drive_without_path_lines_counts_by_its_own() {
    let mut host = Host::new(0);
    host.tell(Event::DeviceAppeared(Box::new(head(&["nvme0c0n1"]))));
    stats(&mut host, &[("nvme0n1", 7)]);
    assert_eq!(reads(&mut host), Some(7));
}

#[test]
fn another_drive_under_the_old_name_inherits_nothing() {
    let mut host = Host::new(1);
    host.diskstats(1_000_000);
    host.view();
    host.tell(Event::Vanished(Subject::Device(device_id(0))));
    let mut other = nvme_device(5);
    other.name = "nvme0n1".to_owned();
    host.tell(Event::DeviceAppeared(Box::new(other)));
    host.pass(5);
    host.diskstats(1_000_500);
    let view = host.view();
    assert_eq!(view.devices[0].rates, None);
    assert!(host.history.device(&device_id(0)).is_some(), "kept for a while");
    host.pass(24 * 3600 + 1);
    host.view();
    assert!(host.history.device(&device_id(0)).is_none());
}

#[test]
fn a_renamed_drive_keeps_its_history_but_not_the_counters_of_its_old_line() {
    let mut host = Host::new(1);
    host.diskstats(500);
    host.view();
    let mut renamed = nvme_device(0);
    renamed.name = "nvme7n1".to_owned();
    host.tell(Event::DeviceAppeared(Box::new(renamed)));
    host.pass(5);
    host.diskstats(900);
    let view = host.view();
    assert_eq!(view.devices[0].rates, None, "a line under a new name counts from anew");
    assert_eq!(host.history.device(&device_id(0)).map(|history| history.counters.resets()), Some(1));
}

#[test]
fn drives_that_come_and_go_do_not_pile_up() {
    let mut host = Host::new(0);
    for n in 0..2000 {
        host.tell(Event::DeviceAppeared(Box::new(nvme_device(n))));
        host.view();
        host.tell(Event::Vanished(Subject::Device(device_id(n))));
        host.pass(1);
    }
    host.view();
    let kept = (0..2000).filter(|n| host.history.device(&device_id(*n)).is_some()).count();
    assert_eq!(kept, storscope_model::history::MAX_VANISHED);
}

#[test]
fn a_device_counts_the_reads_of_its_lines_and_a_missing_line() {
    let mut host = Host::new(1);
    host.diskstats(500);
    host.pass(5);
    host.diskstats(600);
    let empty = Sample::Diskstats(Table::default());
    host.read(&Subject::Host, empty);
    let stats = &host.snapshot.devices[&device_id(0)].stats[&Source::Diskstats];
    assert_eq!((stats.reads, stats.failures.get("parse").copied()), (3, Some(1)));
}
