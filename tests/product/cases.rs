//! Inputs of real hosts that misled other tools, end to end: sections A to E, G, H and I of the field cases. A test
//! begins with the number of its case.

use crate::agent::{Agent, run, storscope};
use crate::figures::Figures;
use crate::fixture::Host;
use crate::made_up::{FULL, Identify, PORT, SATA, Smart, VIRTUAL, folder, link, nvme, pages, queue, sata, small};
use serde_json::Value;
use std::path::Path;

/// What an agent that replays `host` serves once everything was read.
fn served(host: &Host) -> (Figures, Value, String) {
    let agent = Agent::replay(Path::new(folder(host)), &[]);
    let figures = agent.wait_settled();
    (figures, agent.json(), agent.text("/status"))
}

fn one<'v>(status: &'v Value, list: &str, name: &str) -> &'v Value {
    let all = status[list].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// State and reason of a source.
fn source(of: &Value, name: &str) -> (String, String) {
    let all = of["sources"].as_array().unwrap();
    let Some(found) = all.iter().find(|source| source["source"] == name) else {
        return ("not asked".to_owned(), String::new());
    };
    (found["state"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap_or_default().to_owned())
}

const COUNTERS: [&str; 3] = [
    "storscope_disk_reads_completed_total",
    "storscope_disk_discards_completed_total",
    "storscope_disk_flush_requests_total",
];

#[test]
fn a1_a2_a3_lines_of_every_length_and_a10_partitions_that_do_not_add_up() {
    let host = small();
    for (port, name) in [(2, "sdb"), (3, "sdc"), (4, "sdd")] {
        sata(&host, port, name, &format!("D{port}"), true);
    }
    host.proc(
        "diskstats",
        "8 0 sda 104019 78482 4430926 29796 33788 15625 2499633 8927 0 35594 12302 0 0 0 0 2303 1625\n\
         8 1 sda1 200000 0 1 0 0 0 0 0 1 999999 0\n\
         8 16 sdb 50300 93278 1377416 885804 110483 174077 2027818 2201276 0 1726664 2959017 7 0 0 0\n\
         8 32 sdc 12 0 96 3 0 0 0 0 0 3 3\n\
         8 48 sdd 9 0 72 3 0 0 0 0 0 3 3 1 0 8 1 4 5 77 88 99\n\
         259 0 nvme0n1 1 0 8 0 0 0 0 0 0 0 0\n",
    );
    let (figures, ..) = served(&host);
    for (device, expected) in [
        ("sda", [Some(104_019.0), Some(0.0), Some(2303.0)]),
        ("sdb", [Some(50_300.0), Some(7.0), None]),
        ("sdc", [Some(12.0), None, None]),
        ("sdd", [Some(9.0), Some(1.0), Some(4.0)]),
    ] {
        assert_eq!(COUNTERS.map(|name| figures.find(name, &[("device", device)])), expected, "{device}");
    }
    assert_eq!(figures.value("storscope_disk_read_bytes_total", &[("device", "sdc")]), 96.0 * 512.0);
    assert!(!figures.labels("storscope_disk_io_now", "device").contains(&"sda1"));
}

fn write_line(reads: u64, writes: u64, write_ms: u64, busy_ms: u64) -> String {
    format!("8 0 sda {reads} 0 {} 5 {writes} 0 {} {write_ms} 0 {busy_ms} {write_ms}\n", reads * 8, writes * 8)
}

#[test]
fn a4_a5_milliseconds_wrap_at_32_bits_on_every_host() {
    let host = small();
    host.proc("diskstats", write_line(10, 1000, 4_294_617_635, 4_294_967_000));
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let time = |figures: &Figures| figures.find("storscope_disk_write_time_seconds_total", &[("device", "sda")]);
    let before = time(&agent.wait_figures("counters", |figures| time(figures).is_some())).unwrap();
    host.proc("diskstats", write_line(10, 2000, 1_024_485, 500));
    let figures = agent.wait_figures("more", |figures| time(figures) != Some(before));
    let gained = time(&figures).unwrap() - before;
    assert!((gained - 1374.146).abs() < 0.001, "{gained}");
    assert_eq!(figures.value("storscope_disk_writes_completed_total", &[("device", "sda")]), 2000.0);
}

/// Rates of `sda` in the status.
fn rates(status: &Value) -> Option<Value> {
    status["devices"].as_array()?.iter().find(|one| one["name"] == "sda").map(|one| one["rates"].clone())
}

#[test]
fn a6_a_step_back_is_no_rate_and_no_wrap() {
    let host = small();
    host.proc("diskstats", write_line(1000, 100, 10, 10));
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let rated =
        |wanted: bool| crate::agent::wait("rates", || rates(&agent.json()).filter(|rates| rates.is_null() != wanted));
    assert_eq!(rated(true)["reads_per_second"], 0.0);
    // One read less than before.
    host.proc("diskstats", write_line(999, 150, 20, 20));
    rated(false);
    let page = agent.text("/status");
    let row = page.lines().find(|line| line.starts_with("sda ")).unwrap();
    assert!(row.split_whitespace().nth(1) == Some("-"), "{row}");
    host.proc("diskstats", write_line(1003, 200, 25, 25));
    let again = crate::agent::wait("rates again", || {
        rates(&agent.json()).filter(|rates| rates["reads_per_second"].as_f64().is_some_and(|rate| rate > 0.0))
    });
    assert!(again["reads_per_second"].as_f64().unwrap() < 100.0, "{again}");
}

#[test]
fn a7_utilisation_above_one_is_capped_and_the_counter_is_not() {
    let host = small();
    host.proc("diskstats", write_line(1000, 100, 10, 1000));
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let busy = |figures: &Figures| figures.find("storscope_disk_io_time_seconds_total", &[("device", "sda")]);
    let before = busy(&agent.wait_figures("counters", |figures| busy(figures).is_some())).unwrap();
    // More busy time than passed.
    host.proc("diskstats", write_line(1000, 100, 10, 3_601_000));
    let utilisation = crate::agent::wait("utilisation", || {
        rates(&agent.json())?["utilisation"].as_f64().filter(|utilisation| *utilisation > 0.0)
    });
    assert_eq!(utilisation, 1.0);
    assert_eq!(busy(&agent.figures()).unwrap() - before, 3600.0);
    assert_eq!(agent.figures().findings(), Vec::<String>::new());
}

/// What an agent says of `nvme0n1` and `sda`, both without I/O of their own times and both always busy by `io_ticks`.
fn always_busy(kernel: &str, scheduler: &str) -> (Value, Figures, String) {
    let host = small();
    host.proc("sys/kernel/osrelease", format!("{kernel}\n"));
    queue(&host, &format!("{PORT}/0000:65:00.0/nvme/nvme0/nvme0n1"), &[("scheduler", scheduler)]);
    let table = |busy: u64, read: u64| {
        let line = |device: &str| format!("{device} {read} 0 {} {read} 0 0 0 0 0 {busy} {busy}\n", read * 8);
        [line("259 0 nvme0n1"), line("8 0 sda")].concat()
    };
    host.proc("diskstats", table(1_000_000, 5));
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    agent.wait_settled();
    host.proc("diskstats", table(1_600_000, 6));
    let status = crate::agent::wait("rates", || {
        Some(agent.json()).filter(|status| {
            let rates = &one(status, "devices", "nvme0n1")["rates"];
            rates["utilisation"].as_f64().is_some_and(|utilisation| utilisation > 0.0)
        })
    });
    (status, agent.figures(), agent.text("/status"))
}

#[test]
fn a8_idle_and_always_busy_is_said_to_mean_nothing() {
    let (status, figures, page) = always_busy("4.19.0-5-amd64", "[none] mq-deadline");
    let (nvme, sda) = (one(&status, "devices", "nvme0n1"), one(&status, "devices", "sda"));
    assert_eq!((&nvme["io_time_reliable"], &sda["io_time_reliable"]), (&Value::Bool(false), &Value::Bool(true)));
    let queue = |device: &Value| device["rates"]["queue"].as_f64().unwrap();
    // One read of a millisecond, and ten minutes of time in the queue.
    assert!(queue(nvme) < 0.1 && queue(sda) > 1.0, "{nvme:#} {sda:#}");
    let reliable = |device: &str| figures.value("storscope_disk_io_time_reliable", &[("device", device)]);
    assert_eq!((reliable("nvme0n1"), reliable("sda")), (0.0, 1.0));
    assert_eq!(figures.findings(), Vec::<String>::new());
    assert!(page.contains("nvme0n1  util? is unreliable: kernel 4.19.0-5-amd64 with scheduler none counts"), "{page}");
}

#[test]
fn a8_other_kernels_and_schedulers_are_believed() {
    for (kernel, scheduler) in
        [("4.19.0-5-amd64", "[mq-deadline] none"), ("5.0.0", "[none] mq-deadline"), ("?", "none")]
    {
        let (status, figures, page) = always_busy(kernel, scheduler);
        let nvme = one(&status, "devices", "nvme0n1");
        assert_eq!(nvme["io_time_reliable"], true, "{kernel} {scheduler}");
        assert!(nvme["rates"]["queue"].as_f64().unwrap() > 1.0, "{nvme:#}");
        assert_eq!(figures.value("storscope_disk_io_time_reliable", &[("device", "nvme0n1")]), 1.0);
        assert!(!page.contains("util?"), "{page}");
    }
}

#[test]
fn a11_a_number_used_twice_is_two_devices() {
    let host = small();
    sata(&host, 2, "sdb", "D2", true);
    sata(&host, 3, "sdc", "D3", true);
    host.proc(
        "diskstats",
        "1 0 ram0 0 0 0 0 0 0 0 0 0 0 0\n7 0 loop0 5 0 40 1 0 0 0 0 0 1 1\n11 0 sr0 0 0 0 0 0 0 0 0 0 0 0\n\
         8 0 sdb 11 0 88 1 0 0 0 0 0 1 1\n8 0 sdc 22 0 176 1 0 0 0 0 0 1 1\n\
         179 0 mmcblk0 3 0 24 1 0 0 0 0 0 1 1\n2 0 fd0 0 0 0 0 0 0 0 0 0 0 0\n",
    );
    let (figures, ..) = served(&host);
    let reads = |device: &str| figures.find("storscope_disk_reads_completed_total", &[("device", device)]);
    assert_eq!((reads("sdb"), reads("sdc"), reads("loop0"), reads("sda")), (Some(11.0), Some(22.0), None, None));
}

#[test]
fn a13_a_line_of_nuls_is_counted_and_never_quoted_whole() {
    let host = small();
    let mut table = b"8 0 sda 7 0 56 1 0 0 0 0 0 1 1\n".to_vec();
    table.extend(vec![0; 20_000]);
    table.extend(b"\n259 0 nvme0n1 8 0 64 1 0 0 0 0 0 1 1\n8 1 sda1 half a li");
    host.proc("diskstats", table);
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let figures = agent.wait_settled();
    assert_eq!(figures.value("storscope_disk_reads_completed_total", &[("device", "sda")]), 7.0);
    assert_eq!(figures.value("storscope_disk_reads_completed_total", &[("device", "nvme0n1")]), 8.0);
    let faults = figures.exact("storscope_source_partial_faults", &[("source", "diskstats")]);
    assert_eq!(faults, Some(2.0));
    for text in [agent.text("/status"), agent.text("/status.json"), agent.end().join("\n")] {
        assert!(
            text.lines().all(|line| line.len() < 100_000) && !text.contains('\0') && !text.contains(&"\\0".repeat(200))
        );
    }
}

#[test]
fn b1_scheduler_spellings() {
    let host = Host::new();
    let spellings = [
        ("none", Some("none")),
        ("[mq-deadline] none", Some("mq-deadline")),
        ("[none] mq-deadline ", Some("none")),
        ("noop deadline [cfq] ", Some("cfq")),
        ("none mq-deadline kyber [bfq] ", Some("bfq")),
        ("", None),
    ];
    for (index, (spelling, _)) in spellings.iter().enumerate() {
        let name = format!("vd{}", char::from(b'a' + u8::try_from(index).unwrap()));
        let parent = format!("devices/pci0000:00/0000:00:0{index}.0/virtio{index}/block");
        let disk = host.block(&parent, &name, &[("dev", &format!("252:{index}")), ("size", "8")]);
        queue(&host, &disk, &[("scheduler", spelling)]);
    }
    let (figures, ..) = served(&host);
    for (index, (_, expected)) in spellings.iter().enumerate() {
        let name = format!("vd{}", char::from(b'a' + u8::try_from(index).unwrap()));
        let series = figures.series("storscope_queue_scheduler_info").iter();
        let found: Vec<&str> =
            series.filter(|one| one.labels["device"] == name).map(|one| one.labels["scheduler"].as_str()).collect();
        assert_eq!(found, expected.iter().copied().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn b2_b3_absent_attributes_are_neither_metrics_nor_errors() {
    let host = Host::new();
    let disk = host.block("devices/pci0000:00/0000:00:05.0/virtio2/block", "vda", &[("dev", "252:0"), ("size", "8")]);
    host.files(&format!("{disk}/queue"), &[("rotational", "0")]);
    let (figures, status, _) = served(&host);
    let queue: Vec<&str> =
        figures.all().map(|one| one.name.as_str()).filter(|name| name.starts_with("storscope_queue_")).collect();
    assert_eq!(queue, ["storscope_queue_rotational"]);
    assert_eq!(source(one(&status, "devices", "vda"), "queue"), ("fresh".to_owned(), String::new()));
    assert_eq!(
        figures.find("storscope_source_partial_faults", &[("device", "vda"), ("source", "queue")]).unwrap_or(0.0),
        0.0
    );
}

#[test]
fn b5_an_offline_disk_is_shown_and_left_alone() {
    let host = small();
    let disk = sata(&host, 2, "sdb", "D2", true);
    host.files(&disk, &[("state", "offline")]);
    let (figures, status, _) = served(&host);
    assert_eq!(figures.value("storscope_queue_device_running", &[("device", "sdb")]), 0.0);
    assert_eq!(figures.value("storscope_queue_device_running", &[("device", "sda")]), 1.0);
    assert_eq!(one(&status, "devices", "sdb")["queue"]["device_state"], "offline");
}

#[test]
fn c1_padding_goes_and_inner_spaces_stay() {
    let host = small();
    let (figures, status, page) = served(&host);
    let info = &figures.series("storscope_controller_info")[0].labels;
    assert_eq!((info["model"].as_str(), info["serial"].as_str()), ("ACME FAST 1920G", "S1"));
    let device = figures.series("storscope_device_info").iter().find(|one| one.labels["device"] == "nvme0n1").unwrap();
    assert_eq!((device.labels["model"].as_str(), device.labels["serial"].as_str()), ("ACME FAST 1920G", "S1"));
    assert_eq!(one(&status, "controllers", "nvme0")["model"], "ACME FAST 1920G");
    assert!(!page.contains("ACME FAST 1920G "), "{page}");
}

#[test]
fn c2_a_drive_that_is_not_on_pci_has_no_link() {
    let host = Host::new();
    let soc = "devices/platform/soc/393cc0000.nvme";
    let files = [("transport", "apple-nvme"), ("model", "APPLE SSD AP0512Z"), ("serial", "A1"), ("cntlid", "0")];
    let controller = host.nvme(soc, "nvme0", &files);
    for number in 1..=3 {
        let nsid = number.to_string();
        let files = [("nsid", nsid.as_str()), ("dev", "259:1"), ("size", "8")];
        let folder = host.namespace(&controller, &format!("nvme0n{number}"), &files);
        queue(&host, &folder, &[]);
    }
    let (figures, status, page) = served(&host);
    assert_eq!(figures.value("storscope_devices", &[]), 3.0);
    assert!(figures.series("storscope_pcie_link_downgraded").is_empty());
    assert_eq!(source(one(&status, "controllers", "nvme0"), "pcie_link").0, "unsupported");
    assert_eq!(figures.findings(), Vec::<String>::new());
    assert!(page.lines().any(|line| line.starts_with("nvme0n1") && line.ends_with(" -")), "{page}");
}

#[test]
fn c4_a_drive_that_comes_back_under_another_name_keeps_its_history() {
    let build = |name: &str| {
        let host = Host::new();
        nvme(&host, "0000:65:00.0", name, "S1", 0);
        let worn = Smart { used: 120, ..Smart::default() };
        pages(&host, name, &Identify::new("S1", "ACME FAST 1920G", "FW1"), &worn);
        host
    };
    let (host, renamed) = (build("nvme0"), build("nvme1"));
    // One link that turns from one to the other: the agent never sees a host half renamed.
    let place = tempfile::tempdir().unwrap();
    let (seen, next) = (place.path().join("seen"), place.path().join("next"));
    std::os::unix::fs::symlink(folder(&host), &seen).unwrap();
    std::os::unix::fs::symlink(folder(&renamed), &next).unwrap();
    // Its pages are not asked between the turn and the scan that sees it: then they would be gone, under its old name.
    let config = place.path().join("storscope.toml");
    std::fs::write(&config, "[periods]\ntick = \"1s\"\nrescan = \"5s\"\nsmart = \"1h\"\n").unwrap();
    let agent = Agent::replay(&seen, &["--config", config.to_str().unwrap()]);
    // After the agent's own start: the wall clock may be set meanwhile, and moves both.
    let since = |figures: &Figures, name: &str| {
        let labels = [("rule", "nvme_wear"), ("controller", name)];
        let since = figures.find("storscope_finding_since_timestamp_seconds", &labels)?;
        Some(since - figures.find("storscope_agent_start_time_seconds", &[])?)
    };
    let first = since(&agent.wait_figures("the finding", |figures| since(figures, "nvme0").is_some()), "nvme0");
    std::fs::rename(&next, &seen).unwrap();
    let figures = agent.wait_figures("the new name", |figures| since(figures, "nvme1").is_some());
    let again = since(&figures, "nvme1");
    assert!((again.unwrap() - first.unwrap()).abs() < 0.001, "{first:?} {again:?}");
    assert!(figures.all().all(|one| one.labels.get("controller").is_none_or(|name| name == "nvme1")));
}

#[test]
fn c7_numbers_never_follow_the_locale() {
    let host = small();
    let text = |locale: &str| {
        let mut command = storscope();
        command.env("LC_ALL", locale).env("LANG", locale).current_dir(folder(&host));
        let agent = Agent::start(command.args(["serve", "--root", ".", "--listen", "127.0.0.1:0"]), &["--listen"]);
        agent.wait_settled();
        let text = agent.text("/metrics");
        text.lines().filter(|line| line.starts_with("storscope_nvme_")).map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = text("C");
    assert!(plain.iter().any(|line| line.ends_with("_ratio{controller=\"nvme0\"} 0.03")), "{plain:#?}");
    assert_eq!(text("de_DE.UTF-8"), plain);
}

/// `small` with what the drive says in its SMART page.
fn drive(smart: &Smart) -> Host {
    let host = small();
    pages(&host, "nvme0", &Identify::new("S1", "ACME FAST 1920G", "FW1"), smart);
    host
}

const NVME0: [(&str, &str); 1] = [("controller", "nvme0")];

#[test]
fn d1_a_page_of_nothing_but_zeros_or_ones_is_unavailable_with_its_reason() {
    for byte in [0x00, 0xff] {
        let host = small();
        host.top("drives/nvme0/logpage-0x02.bin", vec![byte; 512]);
        let (figures, status, page) = served(&host);
        let smart = ["percentage_used_ratio", "available_spare_ratio", "media_errors_total", "critical_warning_raw"];
        for name in smart {
            assert_eq!(figures.find(&format!("storscope_nvme_{name}"), &NVME0), None, "{name} of {byte:02x}");
        }
        assert!(figures.series("storscope_nvme_temperature_celsius").is_empty());
        assert_eq!(figures.value("storscope_source_up", &[("controller", "nvme0"), ("source", "smart_health")]), 0.0);
        let (state, why) = source(one(&status, "controllers", "nvme0"), "smart_health");
        assert!(state == "failed" && why.contains("02h"), "{state} {why}");
        // Its other pages are there.
        assert_eq!(figures.value("storscope_nvme_firmware_active_slot", &NVME0), 1.0);
        assert!(page.contains("smart_health"), "{page}");
        assert!(!figures.findings().iter().any(|finding| finding.contains("critical")), "{:?}", figures.findings());
    }
}

#[test]
fn d2_d3_temperatures_are_what_the_drive_says_below_zero_too() {
    let celsius = |kelvin: u16, sensors: [u16; 8]| {
        let host = drive(&Smart { kelvin, sensors, ..Smart::default() });
        let (figures, ..) = served(&host);
        ["composite", "1", "2", "3"]
            .map(|sensor| figures.find("storscope_nvme_temperature_celsius", &[("sensor", sensor)]))
    };
    let sensors = [322, 0, 263, 0, 0, 0, 0, 0];
    assert_eq!(celsius(313, sensors), [Some(40.0), Some(49.0), None, Some(-10.0)]);
    assert_eq!(celsius(253, [0; 8]), [Some(-20.0), None, None, None]);
    assert_eq!(celsius(0, [0; 8]), [None; 4]);
}

#[test]
fn d4_d5_counters_keep_their_digits_and_a_data_unit_is_512000_bytes() {
    let host = drive(&Smart { units_written: 32_381_395_004, ..Smart::default() });
    let (figures, status, _) = served(&host);
    assert_eq!(figures.value("storscope_nvme_data_written_bytes_total", &NVME0), 16_579_274_242_048_000.0);
    assert_eq!(one(&status, "controllers", "nvme0")["smart"]["data_written_bytes"], "16579274242048000");
    let host = drive(&Smart { units_written: 1 << 100, ..Smart::default() });
    let (_, status, _) = served(&host);
    let smart = &one(&status, "controllers", "nvme0")["smart"];
    assert_eq!(smart["data_written_bytes"], ((1_u128 << 100) * 512_000).to_string());
}

#[test]
fn d6_used_above_100_is_exported_as_it_is_and_d8_log_entries_are_no_fault() {
    for used in [100, 184, 222, 255] {
        let host = drive(&Smart { used, error_entries: 14_644, ..Smart::default() });
        let (figures, ..) = served(&host);
        assert_eq!(figures.value("storscope_nvme_percentage_used_ratio", &NVME0), f64::from(used) / 100.0);
        assert_eq!(figures.value("storscope_nvme_error_log_entries_total", &NVME0), 14_644.0);
        assert_eq!(figures.findings(), ["nvme_wear nvme0n1"], "{used}");
        assert_eq!(figures.value("storscope_findings", &[("severity", "critical")]), 0.0);
    }
    let host = drive(&Smart { error_entries: 8382, ..Smart::default() });
    assert_eq!(served(&host).0.findings(), Vec::<String>::new());
}

#[test]
fn d7_a_failed_backup_is_critical_although_all_else_is_perfect() {
    let host = drive(&Smart { warning: 0b1_0000, used: 0, ..Smart::default() });
    let (figures, _, page) = served(&host);
    for (flag, set) in [("volatile_memory_backup_failed", 1.0), ("reliability_degraded", 0.0), ("available_spare", 0.0)]
    {
        let labels = [("controller", "nvme0"), ("flag", flag)];
        assert_eq!(figures.value("storscope_nvme_critical_warning", &labels), set, "{flag}");
    }
    assert_eq!(figures.findings(), ["nvme_critical_warning nvme0n1"]);
    assert!(page.contains("CRITICAL  nvme0n1") && page.contains("backup"), "{page}");
}

#[test]
fn d9_an_old_drive_is_asked_only_what_it_has() {
    let host = small();
    let old = Identify::new("S1", "ACME FAST 1920G", "FW1").version(0);
    pages(&host, "nvme0", &old, &Smart::default());
    host.top("drives/nvme0/logpage-0xc0.bin", vec![0; 512]);
    host.top("drives/nvme0/logpage-0x06.bin", vec![0; 564]);
    let (figures, status, _) = served(&host);
    let asked = figures.labels("storscope_drive_commands_total", "command");
    assert!(!asked.iter().any(|command| command.contains("ocp") || command.contains("self_test")), "{asked:?}");
    let outcomes = figures.labels("storscope_drive_commands_total", "outcome");
    assert_eq!(outcomes, ["ok"]);
    assert_eq!(one(&status, "controllers", "nvme0")["ocp"], Value::Null);
    assert_eq!(figures.value("storscope_nvme_percentage_used_ratio", &NVME0), 0.03);
}

#[test]
fn e1_a_controller_in_any_other_state_than_live_is_not_asked() {
    for state in
        ["new", "resetting", "connecting", "deleting", "deleting (no IO)", "dead", "unknown state", "live again"]
    {
        let host = small();
        host.files(&format!("{PORT}/0000:65:00.0/nvme/nvme0"), &[("state", state)]);
        let (figures, status, page) = served(&host);
        assert_eq!(figures.value("storscope_nvme_controller_live", &NVME0), 0.0, "{state}");
        assert!(figures.series("storscope_drive_commands_total").is_empty(), "{state}");
        assert_eq!(figures.find("storscope_nvme_percentage_used_ratio", &NVME0), None, "{state}");
        let (smart, _) = source(one(&status, "controllers", "nvme0"), "smart_health");
        assert_ne!(smart, "fresh", "{state}");
        assert_eq!(figures.value("storscope_disk_reads_completed_total", &[("device", "nvme0n1")]), 1000.0);
        assert_eq!(figures.findings(), ["controller_not_live nvme0n1"], "{state}");
        let word = if state == "dead" { "CRITICAL" } else { "WARNING" };
        assert!(page.contains(word) && page.contains(state), "{state}: {page}");
    }
}

#[test]
fn e2_e4_what_must_not_be_read_is_not_read_and_a_pipe_holds_nothing_up() {
    let host = small();
    let namespace = host.root.sys(&format!("{PORT}/0000:65:00.0/nvme/nvme0/nvme0n1"));
    for name in ["nuse", "queue/nr_requests", "queue/wbt_lat_usec"] {
        let file = namespace.join(name);
        let _ = std::fs::remove_file(&file);
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    }
    let (figures, ..) = served(&host);
    assert_eq!(figures.value("storscope_queue_logical_block_bytes", &[("device", "nvme0n1")]), 512.0);
    assert_eq!(figures.value("storscope_queue_nr_requests", &[("device", "sda")]), 1023.0);
}

#[test]
fn g1_g2_g5_unknown_is_no_number_and_every_spelling_is_read() {
    for (speed, width, rate, lanes) in [
        ("8 GT/s", "4", Some(8e9), Some(4.0)),
        ("8.0 GT/s PCIe", "4", Some(8e9), Some(4.0)),
        ("2.5 GT/s", "1", Some(2.5e9), Some(1.0)),
        ("64.0 GT/s PCIe", "2", Some(64e9), Some(2.0)),
        ("Unknown", "255", None, None),
        ("Unknown speed", "0", None, None),
        ("66 MHz PCI-X 266", "4", None, Some(4.0)),
        ("", "", None, None),
    ] {
        let host = small();
        let function = format!("{PORT}/0000:65:00.0");
        link(&host, &function, (speed, width), (speed, width));
        link(&host, PORT, (speed, width), (speed, width));
        let (figures, ..) = served(&host);
        let found = ["speed_transfers_per_second", "width_lanes"]
            .map(|name| figures.find(&format!("storscope_pcie_link_{name}"), &NVME0));
        assert_eq!(found, [rate, lanes], "{speed:?} {width:?}");
        assert_eq!(figures.findings(), Vec::<String>::new(), "{speed:?} {width:?}");
        let known = rate.is_some() && lanes.is_some();
        assert_eq!(figures.find("storscope_pcie_link_downgraded", &NVME0), known.then_some(0.0), "{speed:?} {width:?}");
    }
}

#[test]
fn g4_limited_by_the_slot_is_no_downgrade() {
    let host = small();
    link(&host, &format!("{PORT}/0000:65:00.0"), ("8.0 GT/s PCIe", "4"), FULL);
    link(&host, PORT, ("8.0 GT/s PCIe", "4"), ("8.0 GT/s PCIe", "8"));
    let (figures, status, page) = served(&host);
    assert_eq!(figures.value("storscope_pcie_link_downgraded", &NVME0), 0.0);
    assert_eq!(figures.value("storscope_pcie_link_slot_limited", &NVME0), 1.0);
    assert_eq!(figures.value("storscope_pcie_link_expected_speed_transfers_per_second", &NVME0), 8e9);
    assert_eq!(figures.findings(), Vec::<String>::new());
    assert_eq!(status["verdict"], "ok");
    assert!(page.starts_with("db-17  OK"), "{page}");
    // One lane at generation 2 for a drive of generation 3, as on a small board.
    let host = small();
    link(&host, &format!("{PORT}/0000:65:00.0"), ("5.0 GT/s PCIe", "1"), ("8.0 GT/s PCIe", "4"));
    link(&host, PORT, ("5.0 GT/s PCIe", "1"), ("5.0 GT/s PCIe", "1"));
    assert_eq!(served(&host).0.findings(), Vec::<String>::new());
}

#[test]
fn h5_h6_h7_h8_what_a_disk_carries_is_named_as_people_do() {
    let host = small();
    let old = host.block(&format!("{SATA}/cciss0/block"), "cciss!c0d0", &[("dev", "104:0"), ("size", "8000")]);
    queue(&host, &old, &[("rotational", "1")]);
    host.partition(&old, "cciss!c0d0p6", "6", "104:6");
    let lvm = host.block(
        VIRTUAL,
        "dm-0",
        &[("dev", "254:0"), ("size", "8"), ("dm/name", "ubuntu--image--new-root"), ("dm/uuid", "LVM-x")],
    );
    host.folder(&format!("{lvm}/slaves/nvme0n1"));
    let plain = host.block(
        VIRTUAL,
        "dm-1",
        &[("dev", "254:1"), ("size", "8"), ("dm/name", "vg_foo.4059-lv_foo.4059"), ("dm/uuid", "mpath-1")],
    );
    host.folder(&format!("{plain}/slaves/sda"));
    host.proc(
        "self/mountinfo",
        "1 0 104:6 / /srv/two\\040words\\011tab rw - ext4 /dev/cciss/c0d0p6 rw\n\
         2 0 254:0 / / rw - ext4 /dev/mapper/ubuntu--image--new-root rw\n\
         3 0 0:4 net:[4026533460] net:[4026533460] rw - nsfs nsfs rw\n\
         4 0 254:1 / /data rw - xfs /dev/mapper/x rw\n",
    );
    host.proc(
        "diskstats",
        "104 0 cciss/c0d0 5 0 40 1 0 0 0 0 0 1 1\n104 6 cciss/c0d0p6 5 0 40 1 0 0 0 0 0 1 1\n\
         259 0 nvme0n1 1 0 8 1 0 0 0 0 0 1 1\n8 0 sda 1 0 8 1 0 0 0 0 0 1 1\n",
    );
    let (figures, status, page) = served(&host);
    assert_eq!(figures.value("storscope_disk_reads_completed_total", &[("device", "cciss/c0d0")]), 5.0);
    assert!(page.lines().any(|line| line.starts_with("cciss/c0d0 ")), "{page}");
    let carries = |name: &str| one(&status, "devices", name)["carries"].to_string();
    assert!(
        carries("cciss/c0d0").contains("/srv/two words\\\\ttab")
            || carries("cciss/c0d0").contains("/srv/two words\\ttab"),
        "{}",
        carries("cciss/c0d0")
    );
    assert!(carries("nvme0n1").contains("ubuntu-image-new/root"), "{}", carries("nvme0n1"));
    assert!(carries("sda").contains("vg_foo.4059-lv_foo.4059"), "{}", carries("sda"));
    assert!(!status.to_string().contains("net:["));
    let output = run(&["status", "--root", folder(&host), "--device", "cciss/c0d0"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    assert_eq!(agent.get("/status?device=cciss%2Fc0d0").status, 200);
    assert_eq!(agent.get("/status?device=cciss/c0d0").status, 200);
}

#[test]
fn i1_i2_what_the_kernel_does_not_have_is_no_failure() {
    let host = Host::new();
    let disk = host.block("devices/pci0000:00/0000:00:05.0/virtio2/block", "vda", &[("dev", "252:0"), ("size", "8")]);
    queue(&host, &disk, &[]);
    host.proc("diskstats", "252 0 vda 5 0 40 1 0 0 0 0 0 1 1\n");
    host.proc("stat", "cpu  1 0 1 8 0 0 0 0 0 0\ncpu0 1 0 1 8 0 0 0 0 0 0\nbtime 1700000000\n");
    host.proc("loadavg", "0.10 0.20 0.30 1/100 1234\n");
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let figures = agent.wait_settled();
    assert!(figures.series("storscope_pressure_io_waiting_seconds_total").is_empty());
    assert_eq!(source(&agent.json()["host"], "pressure").0, "unsupported");
    assert_eq!(figures.value("storscope_controllers", &[]), 0.0);
    assert_eq!(figures.exact("storscope_source_up", &[("source", "discovery")]), Some(1.0));
    let log = agent.end();
    assert!(!log.iter().any(|line| line.contains("WARN") || line.contains("ERROR")), "{log:#?}");
}
