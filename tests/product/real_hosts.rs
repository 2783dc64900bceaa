//! Real hosts and drives, which are not part of this repository, through the whole product: nothing fails that is not
//! in the data, and what is known of them shows.

use crate::agent::{Agent, run};
use crate::figures::Figures;
use crate::{realdata, ttar};
use serde_json::Value;
use std::path::Path;

struct Served {
    figures: Figures,
    status: Value,
    page: String,
}

fn serve(root: &Path) -> Served {
    let agent = Agent::replay(root, &[]);
    let figures = agent.wait_settled();
    let served = Served { figures, status: agent.json(), page: agent.text("/status") };
    let log = agent.end();
    let bad = |line: &&String| line.contains("panicked") || line.contains("ERROR") && !line.contains("finding opened");
    assert_eq!(log.iter().find(bad), None, "{log:#?}");
    assert!(served.page.lines().all(|line| line.chars().count() <= 100), "{}", served.page);
    let output = run(&["status", "--root", root.to_str().unwrap()]);
    assert!(output.status.code().is_some_and(|code| code < 4) && output.stderr.is_empty(), "{output:?}");
    served
}

impl Served {
    /// Sources that failed, as `subject source`.
    fn failed(&self) -> Vec<String> {
        let mut all = Vec::new();
        for sample in self.figures.series("storscope_source_up") {
            let of = |label: &str| sample.labels.get(label).map(String::as_str);
            if sample.value == 0.0 {
                let subject = of("device").or_else(|| of("controller")).unwrap_or("host");
                all.push(format!("{subject} {}", of("source").unwrap()));
            }
        }
        all.sort();
        all
    }

    fn of(&self, name: &str, controller: &str) -> f64 {
        self.figures.value(&format!("storscope_nvme_{name}"), &[("controller", controller)])
    }

    fn devices(&self) -> Vec<&str> {
        self.figures.labels("storscope_device_info", "device")
    }

    fn disk(&self, device: &str, name: &str) -> Option<f64> {
        self.figures.find(&format!("storscope_disk_{name}"), &[("device", device)])
    }
}

/// The dump `name` as the drives of a host of which nothing else is known.
fn dump(name: &str) -> Option<Served> {
    let dumps = realdata::path("nvme")?;
    let host = tempfile::tempdir().unwrap();
    for controller in ["nvme0", "nvme1"] {
        let to = host.path().join("drives").join(controller);
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(dumps.join(name).join(controller)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    let served = serve(host.path());
    assert_eq!(served.failed(), [""; 0], "{name}: what a capture lacks has not failed");
    assert_eq!(served.figures.value("storscope_controllers", &[]), 2.0);
    Some(served)
}

/// Columns of a table of facts: temperature in celsius, spare, used, data units written, error-log entries.
type Facts = (&'static str, [(f64, f64, f64, f64, f64); 2]);

const FACTS: [Facts; 6] = [
    ("samsung-datacenter", [(41.0, 1.0, 0.02, 752_324_304.0, 0.0), (43.0, 1.0, 0.09, 1_505_324_058.0, 178.0)]),
    ("intel-p4510", [(37.0, 1.0, 0.01, 59_477_620.0, 0.0), (37.0, 1.0, 0.0, 57_219_207.0, 0.0)]),
    ("micron-3500", [(39.0, 1.0, 0.48, 426_156_071.0, 0.0), (47.0, 1.0, 0.47, 425_139_641.0, 0.0)]),
    ("samsung-worn-degraded", [(49.0, 1.0, 1.33, 1_307_543_765.0, 70.0), (50.0, 1.0, 1.35, 1_306_546_125.0, 70.0)]),
    ("kioxia-kcd8", [(54.0, 1.0, 0.03, 1_183_125_212.0, 0.0), (57.0, 1.0, 0.03, 1_187_059_437.0, 0.0)]),
    ("samsung-errorlog-full", [(32.0, 1.0, 0.82, 3_334_790_369.0, 181.0), (36.0, 1.0, 0.79, 3_294_550_547.0, 181.0)]),
];

#[test]
fn every_dump_shows_what_its_description_states() {
    for (name, facts) in FACTS {
        let Some(served) = dump(name) else { return };
        for (controller, (celsius, spare, used, units, entries)) in ["nvme0", "nvme1"].into_iter().zip(facts) {
            let sensor = [("controller", controller), ("sensor", "composite")];
            assert_eq!(served.figures.value("storscope_nvme_temperature_celsius", &sensor), celsius, "{name}");
            assert_eq!(served.of("available_spare_ratio", controller), spare, "{name}");
            assert_eq!(served.of("percentage_used_ratio", controller), used, "{name}");
            assert_eq!(served.of("data_written_bytes_total", controller), units * 512_000.0, "{name}");
            assert_eq!(served.of("error_log_entries_total", controller), entries, "{name}");
            assert_eq!(served.of("media_errors_total", controller), 0.0, "{name}");
        }
    }
}

#[test]
fn a_worn_drive_is_critical_and_the_page_says_why() {
    let Some(served) = dump("samsung-worn-degraded") else { return };
    for controller in ["nvme0", "nvme1"] {
        for flag in served.figures.labels("storscope_nvme_critical_warning", "flag") {
            let labels = [("controller", controller), ("flag", flag)];
            let set = f64::from(u8::from(flag == "reliability_degraded"));
            assert_eq!(served.figures.value("storscope_nvme_critical_warning", &labels), set, "{flag}");
        }
        assert_eq!(served.of("capacity_bytes", controller), 512_110_190_592.0);
        assert_eq!(
            served.of("power_on_seconds_total", controller) / 3600.0,
            if controller == "nvme0" { 53872.0 } else { 53867.0 }
        );
    }
    let findings =
        ["nvme_critical_warning", "nvme_wear"].map(|rule| ["nvme0", "nvme1"].map(|name| format!("{rule} {name}")));
    assert_eq!(served.figures.findings(), findings.concat());
    assert_eq!(served.status["verdict"], "critical");
    for part in ["133 %", "135 %", "reliability is degraded", "SAMSUNG MZVLB512HAJQ-00000", "EXA7301Q"] {
        assert!(served.page.contains(part), "{part} in {}", served.page);
    }
}

#[test]
fn healthy_dumps_have_no_finding_and_their_own_pages() {
    for (name, ocp) in [
        ("samsung-datacenter", 1),
        ("kioxia-kcd8", 2),
        ("intel-p4510", 0),
        ("micron-3500", 0),
        ("samsung-errorlog-full", 0),
    ] {
        let Some(served) = dump(name) else { return };
        let findings = served.figures.findings();
        assert!(findings.iter().all(|finding| finding.starts_with("source_failing")), "{name}: {findings:?}");
        assert_eq!(served.figures.series("storscope_nvme_ocp_page_version").len(), ocp, "{name}");
        let sensors = served.figures.labels("storscope_nvme_temperature_celsius", "sensor");
        let expected: &[&str] = match name {
            "samsung-datacenter" => &["1", "2", "3", "composite"],
            "micron-3500" => &["1", "composite"],
            "samsung-errorlog-full" => &["1", "2", "composite"],
            _ => &["composite"],
        };
        assert_eq!(sensors, expected, "{name}");
        match name {
            "samsung-datacenter" => {
                assert_eq!(served.of("capacity_bytes", "nvme0"), 1_920_383_410_176.0);
                assert_eq!(served.of("ocp_media_written_bytes_total", "nvme0"), 195_459_011_571_712.0);
                assert_eq!(served.of("firmware_active_slot", "nvme0"), 2.0);
            }
            "kioxia-kcd8" => {
                assert!(served.figures.series("storscope_nvme_ocp_bad_system_blocks").is_empty());
                assert_eq!(served.of("ocp_refreshes_total", "nvme1"), 3_619_096.0);
            }
            "samsung-errorlog-full" => {
                let entries = served.status["controllers"][0]["error_log"].as_array().unwrap();
                assert_eq!((entries.len(), &entries[0]["count"]), (64, &181.into()));
            }
            _ => {}
        }
    }
}

#[test]
fn the_desktop_of_2018() {
    let Some(folder) = realdata::sysfs("simple-nvme") else { return };
    let served = serve(&folder.path().join("simple-nvme"));
    assert_eq!(served.devices(), ["nvme0n1", "sda", "sdb"]);
    assert_eq!(served.failed(), [""; 0], "what a capture lacks has not failed");
    let of = |name: &str, device: &str| served.figures.value(name, &[("device", device)]);
    assert_eq!(of("storscope_queue_nr_requests", "nvme0n1"), 1023.0);
    assert_eq!((of("storscope_queue_rotational", "sda"), of("storscope_queue_rotational", "sdb")), (0.0, 1.0));
    let schedulers = served.figures.labels("storscope_queue_scheduler_info", "scheduler");
    assert_eq!(schedulers, ["cfq", "none"]);
    let info = served.figures.series("storscope_device_info").iter();
    let nvme = info.clone().find(|one| one.labels["device"] == "nvme0n1").unwrap();
    assert_eq!(
        (nvme.labels["model"].as_str(), nvme.labels["transport"].as_str()),
        ("KINGSTON SKC1000240G", "nvme-pcie")
    );
    let kernel = &served.figures.series("storscope_host_info")[0].labels["kernel"];
    assert!(kernel.starts_with("4.16.15"), "{kernel}");
}

#[test]
fn the_desktop_of_2025() {
    let Some(folder) = realdata::sysfs("multi-devs-bcachefs") else { return };
    let served = serve(&folder.path().join("multi-devs-bcachefs"));
    assert_eq!(served.devices(), ["nvme0n1", "sda", "sdb", "sdc"]);
    assert!(
        served.failed().iter().all(|one| one.ends_with(" diskstats") || one == "host cpu"),
        "{:?}",
        served.failed()
    );
    assert_eq!(served.figures.value("storscope_queue_nr_requests", &[("device", "sdb")]), 64.0);
    let devices = served.status["devices"].as_array().unwrap();
    let sdc = devices.iter().find(|one| one["name"] == "sdc").unwrap();
    assert!(sdc["carries"].to_string().contains("/mnt/test"), "{sdc}");
}

#[test]
fn the_power_server_with_two_paths() {
    let Some(folder) = realdata::sysfs("tree-pcie") else { return };
    let served = serve(folder.path());
    assert_eq!(served.devices(), ["nvme0n1", "nvme1n1"]);
    let controllers = served.figures.series("storscope_controller_info").iter();
    let mut addresses: Vec<&str> = controllers.map(|one| one.labels["pci_address"].as_str()).collect();
    addresses.sort_unstable();
    assert_eq!(addresses, ["0214:90:00.0", "052e:78:00.0", "058e:78:00.0"]);
    let paths = served.figures.labels("storscope_nvme_path_info", "path");
    assert_eq!(paths, ["nvme1c1n1", "nvme1c2n1"]);
    assert!(served.figures.series("storscope_pcie_link_downgraded").is_empty());
    assert_eq!(served.figures.find("storscope_queue_nr_requests", &[("device", "nvme1n1")]), None);
    assert!(served.figures.series("storscope_nvme_controller_live").iter().all(|one| one.value == 1.0));
}

#[test]
fn the_fixtures_of_a_library() {
    let Some(archive) = realdata::path("procfs/fixtures.ttar") else { return };
    let folder = tempfile::tempdir().unwrap();
    ttar::unpack(&std::fs::read(archive).unwrap(), folder.path()).unwrap();
    let served = serve(&folder.path().join("fixtures"));
    assert_eq!(served.devices(), ["nvme0n0", "sda", "sdb", "sdc", "sdd", "sde"]);
    assert_eq!(served.disk("sda", "read_bytes_total"), Some(1_003_346_126.0 * 512.0));
    assert_eq!(served.disk("sda", "discarded_bytes_total"), None);
    assert_eq!(served.disk("sdb", "discarded_bytes_total"), Some(1_925_173_784.0 * 512.0));
    assert_eq!(served.disk("sdc", "flush_requests_total"), Some(127.0));
    assert_eq!(served.figures.value("storscope_queue_device_running", &[("device", "sdc")]), 0.0);
    assert_eq!(served.figures.value("storscope_queue_device_running", &[("device", "sdd")]), 1.0);
    let stalled = served.figures.series("storscope_pressure_io_stalled_seconds_total");
    assert!((stalled[0].value - 25e-6).abs() < 1e-12, "{stalled:?}");
    let models = served.figures.labels("storscope_controller_info", "model");
    assert!(models.contains(&"Samsung SSD 970 PRO 512GB"), "{models:?}");
    assert!(served.page.contains("sdc"), "{}", served.page);
}

#[test]
fn the_counters_of_real_servers() {
    let Some(folder) = realdata::path("diskstats") else { return };
    for (sample, lines) in
        [("cadvisor/diskstats", 54), ("sysstat/root1/proc/diskstats", 22), ("sysstat/root3/proc/diskstats", 21)]
    {
        let host = crate::fixture::Host::new();
        let text = std::fs::read_to_string(folder.join(sample)).unwrap();
        let mut names = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let number = format!("{}:{}", words.next().unwrap(), words.next().unwrap());
            let name = words.next().unwrap();
            host.block("devices/virtual/block", name, &[("dev", &number), ("size", "8")]);
            names.push((name.to_owned(), words.next().unwrap().parse::<f64>().unwrap()));
        }
        assert_eq!(names.len(), lines);
        host.proc("diskstats", text);
        let agent = Agent::replay(Path::new(crate::made_up::folder(&host)), &["--only", ".*"]);
        let figures = agent.wait_settled();
        for (name, reads) in &names {
            let found = figures.find("storscope_disk_reads_completed_total", &[("device", name)]);
            assert_eq!(found, Some(*reads), "{sample} {name}");
        }
    }
}

#[test]
fn counters_that_go_forward_and_back() {
    let Some(folder) = realdata::path("diskstats/sysstat") else { return };
    let host = crate::fixture::Host::new();
    for (number, name) in [("8:0", "sda"), ("8:16", "sdb"), ("65:32", "sds")] {
        host.block("devices/virtual/block", name, &[("dev", number), ("size", "8")]);
    }
    let take = |root: u32| {
        let text = std::fs::read(folder.join(format!("root{root}/proc/diskstats"))).unwrap();
        host.proc("diskstats", text);
    };
    take(1);
    let agent = Agent::replay(Path::new(crate::made_up::folder(&host)), &[]);
    agent.wait_settled();
    let reads = |figures: &Figures| figures.exact("storscope_source_reads_total", &[("source", "diskstats")]);
    for root in [2, 3, 4] {
        take(root);
        let before = reads(&agent.figures()).unwrap();
        let figures = agent.wait_figures("the next sample", |figures| reads(figures) > Some(before + 1.0));
        let rates = agent.json()["devices"].to_string();
        assert!(!rates.contains("-0.") && !rates.contains("e+1"), "{rates}");
        for device in agent.json()["devices"].as_array().unwrap() {
            if let Some(rate) = device["rates"]["reads_per_second"].as_f64() {
                assert!((0.0..1e7).contains(&rate), "{device}");
            }
        }
        assert!(figures.series("storscope_disk_reads_completed_total").iter().all(|one| one.value < 1e15));
    }
}
