//! NVMe multipath (A9): the head is the disk, its paths are what counts.

use crate::agent::Agent;
use crate::fixture::Host;
use crate::made_up::{Identify, Smart, folder, link, nvme, pages, queue, small};
use std::path::Path;

/// Subsystem `number`: two controllers `nvmeN` and `nvmeN+1`, the head `nvmeNn1`, a hidden path by each.
pub(crate) fn drive(host: &Host, number: u32) {
    let subsystem = format!("devices/virtual/nvme-subsystem/nvme-subsys{number}");
    let nqn = format!("nqn.2020-01.com.acme:M{number}");
    host.files(
        &subsystem,
        &[("subsysnqn", nqn.as_str()), ("model", "ACME SHARED 3T   "), ("serial", "M9  "), ("firmware_rev", "FW2")],
    );
    host.link(
        &format!("class/nvme-subsystem/nvme-subsys{number}"),
        &format!("../../devices/virtual/nvme-subsystem/nvme-subsys{number}"),
    );
    let head = format!("nvme{number}n1");
    let files = [("nsid", "1"), ("size", "6251233968"), ("dev", "259:7"), ("ro", "0"), ("removable", "0")];
    let folder = host.namespace(&subsystem, &head, &files);
    // A head has neither scheduler nor nr_requests (B2).
    host.files(&format!("{folder}/queue"), &[("logical_block_size", "512"), ("rotational", "0")]);
    for (index, ana) in [(number, "optimized"), (number + 1, "non-optimized")] {
        // Domains other than 0 (C3).
        let port = format!("devices/pci052e:{index}0/052e:{index}0:00.0");
        let address = format!("052e:{index}8:00.0");
        let function = format!("{port}/{address}");
        for part in [&port, &function] {
            link(host, part, ("16.0 GT/s PCIe", "4"), ("16.0 GT/s PCIe", "4"));
        }
        let name = format!("nvme{index}");
        let id = (65 + index).to_string();
        let controller = host.nvme(
            &function,
            &name,
            &[
                ("model", "ACME SHARED 3T   "),
                ("serial", "M9  "),
                ("firmware_rev", "FW2"),
                ("cntlid", id.as_str()),
                ("address", address.as_str()),
                ("subsysnqn", nqn.as_str()),
            ],
        );
        host.link(&format!("{subsystem}/{name}"), &format!("../../../../{controller}"));
        let path = format!("nvme{number}c{index}n1");
        let hidden = host.namespace(&controller, &path, &[("nsid", "1"), ("hidden", "1"), ("ana_state", ana)]);
        queue(host, &hidden, &[("scheduler", "[none] mq-deadline")]);
        pages(host, &name, &Identify::new("M9", "ACME SHARED 3T", "FW2"), &Smart::default());
    }
}

fn line(device: &str, reads: u64) -> String {
    format!("{device} {reads} 0 {} 10 0 0 0 0 0 {reads} {reads} 0 0 0 0 0 0\n", reads * 8)
}

#[test]
fn a9_paths_are_no_disks_and_the_head_counts_what_they_do() {
    let host = small();
    drive(&host, 2);
    // The head counts nothing, as before 6.3.
    let table = |head: u64, first: u64, second: u64| {
        [
            line("259 0 nvme0n1", 5),
            line("259 7 nvme2n1", head),
            line("0 0 nvme2c2n1", first),
            line("0 0 nvme2c3n1", second),
        ]
        .concat()
    };
    host.proc("diskstats", table(0, 100, 40));
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let reads = |figures: &crate::figures::Figures| {
        figures.find("storscope_disk_reads_completed_total", &[("device", "nvme2n1")])
    };
    let first = agent.wait_figures("counters", |figures| reads(figures).is_some());
    let before = reads(&first).unwrap();
    host.proc("diskstats", table(0, 130, 45));
    agent.wait_figures("what the paths did", |figures| reads(figures) == Some(before + 35.0));
    // From 6.3 on it may count the same reads again.
    host.proc("diskstats", table(35, 160, 50));
    let figures = agent.wait_figures("no read twice", |figures| reads(figures) == Some(before + 70.0));

    let devices = figures.labels("storscope_device_info", "device");
    assert_eq!(devices, ["nvme0n1", "nvme2n1", "sda"]);
    for sample in figures.all() {
        if sample.name != "storscope_nvme_path_info" {
            assert!(!sample.labels.values().any(|value| value.starts_with("nvme2c")), "{sample:?}");
        }
    }
    for (path, controller, ana) in [("nvme2c2n1", "nvme2", "optimized"), ("nvme2c3n1", "nvme3", "non-optimized")] {
        let labels = [("device", "nvme2n1"), ("path", path), ("controller", controller), ("ana_state", ana)];
        assert_eq!(figures.find("storscope_nvme_path_info", &labels), Some(1.0));
    }
    assert_eq!(figures.find("storscope_queue_nr_requests", &[("device", "nvme2n1")]), None);
    assert_eq!(figures.value("storscope_pcie_link_downgraded", &[("controller", "nvme3")]), 0.0);
}

#[test]
fn a_drive_without_path_lines_counts_by_its_own() {
    let host = small();
    nvme(&host, "0000:66:00.0", "nvme1", "S2", 5);
    host.proc("diskstats", line("259 5 nvme1n1", 49));
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let figures = agent.wait_settled();
    assert_eq!(figures.value("storscope_disk_reads_completed_total", &[("device", "nvme1n1")]), 49.0);
    assert_eq!(figures.find("storscope_disk_reads_completed_total", &[("device", "nvme0n1")]), None);
}
