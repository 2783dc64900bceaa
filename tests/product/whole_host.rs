//! A made-up database server with everything in it: its directory in, the bytes of every output out.

use crate::agent::{Agent, run, storscope, told};
use crate::fixture::Host;
use crate::golden::compare;
use crate::json_schema::Validator;
use crate::made_up::{self, Identify, PORT, SATA, Smart, VIRTUAL, diskstats, folder, link, pages, queue, sata};
use crate::multipath;
use regex::Regex;
use serde_json::Value;

/// The host: a healthy NVMe drive under LUKS and LVM; one with a narrow link and a failing medium; one reached over
/// two paths; a mirror of two SATA disks; a sleeping one; a volume of an old RAID adapter.
pub(crate) fn db_17() -> Host {
    let host = made_up::small();
    let first = format!("{PORT}/0000:65:00.0/nvme/nvme0/nvme0n1");
    host.partition(&first, "nvme0n1p1", "1", "259:1");
    let second = host.partition(&first, "nvme0n1p2", "2", "259:2");
    host.folder(&format!("{second}/holders/dm-0"));
    sick_drive(&host);
    multipath::drive(&host, 2);
    mirror(&host);
    let asleep = sata(&host, 3, "sdc", "D3", true);
    host.files(&asleep, &[("power/runtime_status", "suspended")]);
    let old = host.block(&format!("{SATA}/cciss0/block"), "cciss!c0d0", &[("dev", "104:0"), ("size", "143305920")]);
    queue(&host, &old, &[("rotational", "1")]);
    for (name, number, label, uuid, slave) in [
        ("dm-0", "254:0", "crypt0", "CRYPT-LUKS2-0a-crypt0", Some("nvme0n1p2")),
        ("dm-1", "254:1", "vg0-root", "LVM-0123", Some("dm-0")),
        ("dm-2", "254:2", "vg0-my--swap", "LVM-0124", Some("dm-0")),
    ] {
        host.block(VIRTUAL, name, &[("dev", number), ("size", "1000"), ("dm/name", label), ("dm/uuid", uuid)]);
        if let Some(slave) = slave {
            host.folder(&format!("{VIRTUAL}/{name}/slaves/{slave}"));
        }
    }
    host.proc("self/mountinfo", MOUNTS);
    host.proc("swaps", "Filename Type Size Used Priority\n/dev/dm-2 partition 8 0 -2\n");
    let names = [
        "259 0 nvme0n1",
        "259 1 nvme0n1p1",
        "259 2 nvme0n1p2",
        "259 5 nvme1n1",
        "259 7 nvme2n1",
        "0 0 nvme2c2n1",
        "0 0 nvme2c3n1",
        "8 0 sda",
        "8 16 sdb",
        "8 32 sdc",
        "104 0 cciss/c0d0",
        "9 0 md0",
        "254 0 dm-0",
    ];
    host.proc("diskstats", diskstats(&names));
    for (resource, some) in
        [("io", "avg10=4.20 avg60=3.10 avg300=1.00 total=123456789"), ("cpu", FLAT), ("memory", FLAT)]
    {
        host.proc(&format!("pressure/{resource}"), format!("some {some}\nfull {FLAT}\n"));
    }
    host.proc("meminfo", "MemTotal:       65536000 kB\nMemFree: 1000 kB\nMemAvailable:   32768000 kB\n");
    host
}

const FLAT: &str = "avg10=0.00 avg60=0.00 avg300=0.00 total=1000";

const MOUNTS: &str = "\
21 0 254:1 / / rw shared:1 - ext4 /dev/mapper/vg0-root rw
22 21 259:1 / /boot/efi rw - vfat /dev/nvme0n1p1 rw
23 21 259:5 / /var/lib/postgresql rw - xfs /dev/nvme1n1 rw
24 21 9:0 / /srv/backup\\040old rw - ext4 /dev/md0 rw
25 21 0:4 net:[4026533460] net:[4026533460] rw - nsfs nsfs rw
26 21 0:50 / /mnt/nas rw - nfs4 nas:/export rw
";

/// NVMe drive `nvme1`: half its lanes at half speed, errors on the port, a medium that fails.
fn sick_drive(host: &Host) {
    let function = "devices/pci0000:60/0000:60:03.0/0000:66:00.0";
    link(host, "devices/pci0000:60/0000:60:03.0", ("8.0 GT/s PCIe", "2"), ("16.0 GT/s PCIe", "8"));
    link(host, function, ("8.0 GT/s PCIe", "2"), ("16.0 GT/s PCIe", "4"));
    host.file(
        "devices/pci0000:60/0000:60:03.0/aer_dev_correctable",
        "RxErr 4211\nBadTLP 17\nBadDLLP 0\nTOTAL_ERR_COR 4228\n",
    );
    host.file(&format!("{function}/aer_dev_fatal"), "Undefined 0\nTOTAL_ERR_FATAL 0\n");
    host.files(function, &[("numa_node", "1"), ("power/runtime_status", "active"), ("power_state", "D0")]);
    host.file("bus/pci/slots/14/address", "0000:66:00\n");
    let controller = host.nvme(
        function,
        "nvme1",
        &[
            ("model", "ACME FAST 1920G                         "),
            ("serial", "S2                  "),
            ("firmware_rev", "FW1     "),
            ("cntlid", "1"),
            ("address", "0000:66:00.0"),
        ],
    );
    let namespace = host.namespace(
        &controller,
        "nvme1n1",
        &[("size", "3750748848"), ("dev", "259:5"), ("ro", "0"), ("removable", "0")],
    );
    queue(host, &namespace, &[("scheduler", "[none] mq-deadline kyber bfq"), ("rotational", "0")]);
    let smart = Smart {
        warning: 0b0101,
        kelvin: 273 + 86,
        spare: 7,
        used: 104,
        media_errors: 31,
        error_entries: 40,
        ..Smart::default()
    };
    pages(host, "nvme1", &Identify::new("S2", "ACME FAST 1920G", "FW1"), &smart);
    let mut log = vec![0; 512];
    // Error count, then status with the phase bit: unrecovered read error (281h), namespace 1.
    log[0..8].copy_from_slice(&40_u64.to_le_bytes());
    log[12..14].copy_from_slice(&(0x281_u16 << 1).to_le_bytes());
    log[24..28].copy_from_slice(&1_u32.to_le_bytes());
    host.top("drives/nvme1/logpage-0x01.bin", log);
}

/// `md0` over partitions of `sda` and `sdb`, with one half missing.
fn mirror(host: &Host) {
    sata(host, 2, "sdb", "D2", true);
    for (port, disk, number) in [(1, "sda", "8:1"), (2, "sdb", "8:17")] {
        let zero = port - 1;
        let parent = format!("{SATA}/ata{port}/host{zero}/target{zero}:0:0/{zero}:0:0:0/block/{disk}");
        let partition = host.partition(&parent, &format!("{disk}1"), "1", number);
        host.folder(&format!("{partition}/holders/md0"));
    }
    host.block(
        VIRTUAL,
        "md0",
        &[
            ("dev", "9:0"),
            ("size", "1000"),
            ("md/level", "raid1"),
            ("md/raid_disks", "2"),
            ("md/degraded", "1"),
            ("md/array_state", "clean"),
        ],
    );
}

/// `text` with what differs from run to run replaced.
fn steady(text: &str) -> String {
    let rules = [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "TIME"),
        (r"since \d\d:\d\d( \(\d+ s\))?", "since TIME"),
        (r"fresher than \d+ s", "fresher than AGE"),
        (r"agent .*?all", "agent COST; all"),
        (r"storscope \d[^ \n]*", "storscope VERSION"),
    ];
    rules.iter().fold(text.to_owned(), |text, (pattern, steady)| {
        Regex::new(pattern).unwrap().replace_all(&text, *steady).into_owned()
    })
}

#[test]
fn status_as_text() {
    let host = db_17();
    let output = storscope().current_dir(folder(&host)).args(["status", "--root", "."]).output().unwrap();
    let (code, text, error) = told(&output);
    assert_eq!((code, error), (Some(2), ""));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    compare("db-17.status.txt", &steady(text));
}

/// Times, ages and the agent's cost, which differ from run to run, become words.
fn settle(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if name == "agent" && field.is_object() {
                    *field = Value::from("AGENT");
                } else {
                    settle(field, name);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settle(item, name)),
        Value::String(text) if Regex::new(r"^\d{4}-\d\d-\d\dT").unwrap().is_match(text) => *value = Value::from("TIME"),
        Value::Number(_) if name == "age_seconds" || name.ends_with("duration_seconds") => *value = Value::from("AGE"),
        _ => {}
    }
}

#[test]
fn status_as_json() {
    let host = db_17();
    let output = storscope().current_dir(folder(&host)).args(["status", "--json", "--root", "."]).output().unwrap();
    let (code, text, error) = told(&output);
    assert_eq!((code, error), (Some(2), ""));
    let mut status: Value = serde_json::from_str(text).unwrap();
    let schema: Value = serde_json::from_str(&storscope_export::schema::status_schema()).unwrap();
    assert_eq!(Validator::new(schema.clone()).check(&schema, &status, "status"), Ok(()));
    settle(&mut status, "");
    compare("db-17.status.json", &format!("{}\n", serde_json::to_string_pretty(&status).unwrap()));
}

/// Series whose values are times, ages, costs or counts of reads.
fn steady_metrics(text: &str) -> String {
    let moving = Regex::new(
        r"^(storscope_(agent_|source_(age|read_duration)_seconds|source_reads_total|drive_command\w*|boot_time|build_info|\w*timestamp_seconds|cpu_)[^ ]*(?:\{.*\})?) [^ ]+$",
    )
    .unwrap();
    let version = Regex::new(r#"version="[^"]*""#).unwrap();
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.starts_with("storscope_agent_http_requests_total{")) {
        let line = moving.replace(line, "$1 MOVES");
        out.push_str(&version.replace(&line, r#"version="V""#));
        out.push('\n');
    }
    out
}

#[test]
fn metrics_in_both_formats() {
    let host = db_17();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("storscope.toml");
    std::fs::write(&file, "[periods]\ntick = \"1s\"\n").unwrap();
    let mut command = storscope();
    command.current_dir(folder(&host)).args(["serve", "--root", ".", "--listen", "127.0.0.1:0", "--config"]).arg(file);
    let agent = Agent::start(&mut command, &["--listen"]);
    agent.wait_settled();
    let twice = |figures: &crate::figures::Figures| {
        figures.exact("storscope_source_reads_total", &[("source", "diskstats")]) >= Some(3.0)
    };
    agent.wait_figures("rates", twice);
    compare("db-17.metrics.txt", &steady_metrics(&agent.text("/metrics")));
    let open = crate::exchange::request(agent.address(), "GET", "/metrics", "Accept: application/openmetrics-text\r\n");
    open_metrics(open.text());
    compare("db-17.openmetrics.txt", &steady_metrics(open.text()));
    let page = steady(&agent.text("/status"));
    assert!(page.contains("/var/lib/postgresql"), "{page}");
    let carried = agent.json()["devices"].to_string();
    assert!(carried.contains("/srv/backup old") && !carried.contains("net:["), "{carried}");
    // The status of the agent and that of the command say the same of what does not move.
    let output = run(&["status", "--root", folder(&host)]);
    let command = steady(std::str::from_utf8(&output.stdout).unwrap());
    let findings = |page: &str| {
        page.lines()
            .filter(|line| line.starts_with("CRITICAL") || line.starts_with("WARNING"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(findings(&page), findings(&command));
    assert!(findings(&page).len() >= 4, "{page}");
}

/// The order of an OpenMetrics 1.0 text: each family once, its metadata first, its samples together, then the end.
fn open_metrics(text: &str) {
    let mut seen = std::collections::BTreeSet::new();
    let mut family = (String::new(), String::new());
    let body = text.strip_suffix("# EOF\n").expect("an end");
    for line in body.lines() {
        let mut words = line.split(' ');
        if words.next() == Some("#") {
            let (keyword, name) = (words.next().unwrap(), words.next().unwrap());
            assert!(["TYPE", "HELP", "UNIT"].contains(&keyword), "{line}");
            if name != family.0 {
                assert!(seen.insert(name.to_owned()), "{name} comes twice");
                family = (name.to_owned(), String::new());
            }
            if keyword == "TYPE" {
                words.next().unwrap().clone_into(&mut family.1);
            }
            if keyword == "UNIT" {
                assert!(name.ends_with(&format!("_{}", words.next().unwrap())), "{line}");
            }
            continue;
        }
        let name = line.split(['{', ' ']).next().unwrap();
        let suffix = name.strip_prefix(family.0.as_str()).unwrap_or_else(|| panic!("{line} in {family:?}"));
        let allowed: &[&str] = match family.1.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("type {other}"),
        };
        assert!(allowed.contains(&suffix), "{line}");
    }
    assert!(seen.len() > 100, "{}", seen.len());
}
