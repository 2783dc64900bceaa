//! The four diskstats samples of sysstat's own tests, where they are at hand.

use crate::scenario::{Host, nvme_device};
use std::path::PathBuf;
use storscope_model::event::Event;
use storscope_model::identity::{DeviceId, Subject};
use storscope_model::sample::Sample;
use storscope_model::sample::diskstats::{Direction, DiskCounters, Row, Table};

fn folder() -> PathBuf {
    let near = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/realdata");
    std::env::var_os("STORSCOPE_REALDATA").map_or(near, PathBuf::from).join("diskstats/sysstat")
}

/// Enough of a parser for these files, whose lines are known to be whole.
fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = (*words.get(2)?).to_owned();
        let n: Vec<u64> = words.get(3..)?.iter().map_while(|word| word.parse().ok()).collect();
        let direction = |at: usize| {
            Some(Direction {
                completed: *n.get(at)?,
                merged: *n.get(at + 1)?,
                sectors: *n.get(at + 2)?,
                time_ms: *n.get(at + 3)?,
            })
        };
        Some(Row {
            name,
            major: 0,
            minor: 0,
            counters: DiskCounters {
                reads: direction(0)?,
                writes: direction(4)?,
                in_flight: *n.get(8)?,
                io_time_ms: *n.get(9)?,
                weighted_time_ms: *n.get(10)?,
                discards: direction(11),
                flushes: None,
            },
        })
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn counters_that_go_forward_give_rates_and_those_that_go_back_none() {
    let folder = folder();
    let files: Vec<String> = (1..=4)
        .filter_map(|n| std::fs::read_to_string(folder.join(format!("root{n}")).join("proc").join("diskstats")).ok())
        .collect();
    if files.len() != 4 {
        eprintln!("skipped: no sysstat samples at {}", folder.display());
        return;
    }
    let mut host = Host::new(0);
    for name in ["sda", "sdb"] {
        let mut device = nvme_device(0);
        device.id = DeviceId(name.to_owned());
        device.name = name.to_owned();
        device.nvme = None;
        host.tell(Event::DeviceAppeared(Box::new(device)));
    }
    let mut said = Vec::new();
    for file in &files {
        host.read(&Subject::Host, Sample::Diskstats(Table { rows: rows(file), faults: Vec::new() }));
        let view = host.view();
        said.push([0, 1].map(|n| view.devices[n].rates.map(|rates| rates.reads_per_second)));
        host.pass(10);
    }
    assert_eq!(said[0], [None, None], "first sight");
    assert_eq!(said[1], [Some(0.0), Some(0.0)], "nothing moved");
    assert_eq!(said[2], [Some(10.0), None], "sda +100 reads in the 10 s chosen here, sdb fell");
    assert_eq!(said[3], [None, None], "sda fell, sdb is gone");
}
