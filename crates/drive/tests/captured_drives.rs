//! Pages of real drives against the tables of values that came with them.
//!
//! The pages are not part of this repository. They are looked for in `$STORSCOPE_REALDATA`, else beside the checkout.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking, like the tests")]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use storscope_drive::{
    AdminChannel, ErrorLog, GetLog, LogPage, Normalised, OcpSmart, PageError, Query, QueryError, Refusals, Replay,
    SmartHealth, Survey, celsius,
};

const CONTROLLERS: usize = 12;

fn captures() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/realdata");
    let root = std::env::var_os("STORSCOPE_REALDATA").map_or_else(beside, PathBuf::from);
    let folder = root.join("nvme");
    if folder.join("README.md").is_file() {
        return Some(folder);
    }
    eprintln!("skipped: no captured drives in {}", folder.display());
    None
}

/// A table of the README: for each row its cells by the name of the column.
type Table = Vec<BTreeMap<String, String>>;

/// The tables under a heading that begins with `heading`.
fn tables(folder: &Path, heading: &str) -> Vec<Table> {
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    let section = text
        .split("\n## ")
        .find(|section| section.starts_with(heading))
        .unwrap_or_else(|| panic!("no section {heading}"));
    let mut tables = Vec::new();
    let mut header: Vec<String> = Vec::new();
    for line in section.lines() {
        if !line.starts_with('|') {
            header.clear();
            continue;
        }
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        if header.is_empty() {
            header = cells;
            tables.push(Table::new());
        } else if !cells.iter().all(|cell| cell.chars().all(|letter| letter == '-')) {
            assert_eq!(header.len(), cells.len(), "{line}");
            let row = header.iter().cloned().zip(cells).collect();
            tables.last_mut().unwrap().push(row);
        }
    }
    tables
}

/// Every cell of each row but the name equals what `decode` makes of the controller that the row names.
fn compare(folder: &Path, table: &Table, mut decode: impl FnMut(&str, &Path) -> Vec<(&'static str, String)>) {
    assert_eq!(table.len(), CONTROLLERS);
    for row in table {
        let name = &row["folder / ctrl"];
        let decoded = decode(name, &folder.join(name.replace(' ', "/")));
        assert_eq!(decoded.len() + 1, row.len(), "{name}: a column is not compared");
        for (column, value) in decoded {
            assert_eq!(row[column], value, "{name}: {column}");
        }
    }
}

fn ask<T>(drive: &Path, question: impl FnOnce(&mut Query<'_>) -> Result<T, QueryError>) -> T {
    let mut replay = Replay::new(drive);
    let mut refusals = Refusals::default();
    let survey = Survey::take(&mut replay, &mut refusals).unwrap();
    question(&mut Query::new(&mut replay, &survey, &mut refusals)).unwrap()
}

fn with_celsius(kelvin: u16, between: [&str; 2]) -> String {
    format!("{kelvin}{}{}{}", between[0], celsius(kelvin), between[1])
}

#[test]
fn identify_controller_has_every_value_of_the_table() {
    let Some(folder) = captures() else { return };
    compare(&folder, &tables(&folder, "Expected values: Identify Controller")[0], |_, drive| {
        let survey = Survey::take(&mut Replay::new(drive), &mut Refusals::default()).unwrap();
        let id = survey.identify;
        assert_eq!(id.serial, "SCRUBBED");
        assert_eq!(id.subsystem_nqn, "");
        let threshold = |kelvin: Option<u16>| with_celsius(kelvin.unwrap(), [" (", " °C)"]);
        vec![
            ("MN", id.model),
            ("FR", id.firmware),
            ("VID", format!("{:04x}", id.vendor_id)),
            ("VER", format!("{:06x} ({})", id.version.0, id.version)),
            ("LPA", format!("{:02x}h", id.log_page_attributes)),
            ("ELPE", (id.error_log_entries - 1).to_string()),
            ("WCTEMP", threshold(id.warning_temperature)),
            ("CCTEMP", threshold(id.critical_temperature)),
            ("NN", id.max_namespace_id.to_string()),
            ("NPSS", (id.power_states.len() - 1).to_string()),
            ("TNVMCAP", id.total_capacity.unwrap().to_string()),
        ]
    });
}

fn sensors(health: &SmartHealth) -> String {
    let listed: Vec<String> = health
        .sensors
        .iter()
        .enumerate()
        .filter_map(|(index, kelvin)| kelvin.map(|kelvin| format!("{}: {kelvin}", index + 1)))
        .collect();
    if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
}

#[test]
fn smart_health_has_every_value_of_the_tables() {
    let Some(folder) = captures() else { return };
    let tables = tables(&folder, "Expected values: SMART / Health (02h)");
    compare(&folder, &tables[0], |_, drive| {
        let health = ask(drive, |query| query.smart_health());
        let zeros = [
            health.warning_minutes,
            health.critical_minutes,
            health.tmt1_transitions,
            health.tmt2_transitions,
            health.tmt1_seconds,
            health.tmt2_seconds,
        ];
        assert_eq!(zeros, [0; 6]);
        vec![
            ("cw", health.critical_warning.0.to_string()),
            ("T", with_celsius(health.composite_temperature.unwrap(), [" K = ", " °C"])),
            ("spare", health.available_spare.to_string()),
            ("thr", health.available_spare_threshold.to_string()),
            ("used", health.percentage_used.to_string()),
            ("sensors K", sensors(&health)),
            ("power cycles", health.power_cycles.to_string()),
            ("power-on h", health.power_on_hours.to_string()),
            ("unsafe shutdowns", health.unsafe_shutdowns.to_string()),
            ("media err", health.media_errors.to_string()),
            ("error-log entries", health.error_log_entries.to_string()),
            ("busy min", health.busy_minutes.to_string()),
        ]
    });
    compare(&folder, &tables[1], |_, drive| {
        let health = ask(drive, |query| query.smart_health());
        vec![
            ("units read", health.data_units_read.to_string()),
            ("bytes read", health.bytes_read().unwrap().to_string()),
            ("units written", health.data_units_written.to_string()),
            ("bytes written", health.bytes_written().unwrap().to_string()),
            ("host reads", health.host_reads.to_string()),
            ("host writes", health.host_writes.to_string()),
        ]
    });
}

/// Runs of entries that differ in their count alone, in the words of the table.
fn errors_in_words(log: &ErrorLog) -> String {
    let words: Vec<String> = log
        .entries
        .chunk_by(|left, right| {
            (left.status, left.nsid, left.parameter_location) == (right.status, right.nsid, right.parameter_location)
        })
        .map(|run| {
            let first = run[0];
            assert_eq!(first.queue_id, 0);
            let counts = match run {
                [only] => format!("count {}", only.error_count),
                [.., last] => format!("counts {}…{} ({})", first.error_count, last.error_count, run.len()),
                [] => String::new(),
            };
            format!(
                "{:03x}h (raw {:04x}h), NSID {:x}h, location {:04x}h: {counts}",
                first.status.code(),
                first.status.raw() << 1,
                first.nsid,
                first.parameter_location
            )
        })
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join("; ") }
}

#[test]
fn error_logs_have_every_value_of_the_table() {
    let Some(folder) = captures() else { return };
    compare(&folder, &tables(&folder, "Expected values: Error Information (01h)")[0], |_, drive| {
        let log = ask(drive, |query| query.error_log());
        vec![
            ("entries in file", log.slots.to_string()),
            ("non-empty", log.entries.len().to_string()),
            ("status of the non-empty ones", errors_in_words(&log)),
        ]
    });
}

#[test]
fn firmware_slots_have_every_value_of_the_table() {
    let Some(folder) = captures() else { return };
    compare(&folder, &tables(&folder, "Expected values: Firmware Slot (03h)")[0], |_, drive| {
        let slots = ask(drive, |query| query.firmware_slots());
        assert_eq!(slots.pending(), None);
        let in_use: Vec<String> =
            (1..=7).filter_map(|slot| slots.revision(slot).map(|revision| format!("{slot}: {revision}"))).collect();
        vec![
            ("AFI", format!("{:02x}h", slots.next.unwrap_or(0) << 4 | slots.active)),
            ("slots in use", in_use.join(", ")),
        ]
    });
}

/// Page C0h as captured, also of drives that would not be asked for it.
fn vendor_page(drive: &Path) -> Option<Result<OcpSmart, PageError>> {
    let whole = GetLog::new(LogPage::OcpSmart, NonZeroU16::new(128).unwrap());
    let page = Replay::new(drive).get_log(whole).ok()?;
    Some(OcpSmart::decode(page.as_bytes()))
}

#[test]
fn only_ocps_guid_makes_an_ocp_page() {
    let Some(folder) = captures() else { return };
    compare(&folder, &tables(&folder, "Expected values: C0h")[0], |_, drive| {
        let (guid, is_ocp) = match vendor_page(drive) {
            None => ("no file".to_owned(), "–"),
            Some(Ok(_)) => ("c5af1028eabff2a49c4f6f7cc914d5af".to_owned(), "yes"),
            Some(Err(PageError::Foreign { guid, .. })) => (format!("{guid:032x}"), "no"),
            Some(Err(other)) => (other.to_string(), "no"),
        };
        vec![("bytes 496–511 as stored", guid), ("is OCP", is_ocp.to_owned())]
    });
}

fn told<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "all ones: not implemented".to_owned(), |value| value.to_string())
}

/// What each row of the OCP table is called, and what was decoded for it, in the table's order.
#[allow(clippy::cast_precision_loss, reason = "the description has as many digits as a float holds")]
fn ocp_in_words(ocp: &OcpSmart, health: &SmartHealth) -> Vec<(&'static str, String)> {
    let ratio = ocp.media_bytes_written.unwrap() as f64 / health.bytes_written().unwrap() as f64;
    let normal = |pair: Normalised| told(pair.normalised);
    vec![
        ("log page version", ocp.version.to_string()),
        ("physical media units written", told(ocp.media_bytes_written)),
        ("… divided by host bytes written", format!("{ratio:.3}")),
        ("physical media units read", told(ocp.media_bytes_read)),
        ("bad user NAND blocks raw", told(ocp.bad_user_blocks.raw)),
        ("… normalized, 38", normal(ocp.bad_user_blocks)),
        ("bad system NAND blocks raw", told(ocp.bad_system_blocks.raw)),
        ("… normalized, 46", normal(ocp.bad_system_blocks)),
        ("XOR recovery count", told(ocp.xor_recoveries)),
        ("uncorrectable read errors", told(ocp.uncorrectable_reads)),
        ("soft ECC errors", told(ocp.soft_ecc_errors)),
        ("refresh counts", told(ocp.refreshes)),
        ("user data erase count max", told(ocp.max_erase_count)),
        ("… min, 92", told(ocp.min_erase_count)),
        ("thermal throttling events", ocp.throttle_events.to_string()),
        ("PCIe correctable errors", told(ocp.pcie_correctable_errors)),
        ("incomplete shutdowns", told(ocp.incomplete_shutdowns)),
        ("percent free blocks", told(ocp.free_blocks_percent)),
        ("capacitor health", told(ocp.capacitor_health_percent)),
        ("unaligned I/O", told(ocp.unaligned_io)),
        ("security version", told(ocp.security_version)),
        ("total NUSE", told(ocp.namespace_use)),
        ("PLP start count", told(ocp.plp_starts)),
        ("endurance estimate", told(ocp.endurance_estimate)),
        ("PCIe link retraining", told(ocp.link_retrains)),
    ]
}

#[test]
fn ocp_pages_have_every_value_of_the_table() {
    let Some(folder) = captures() else { return };
    let table = &tables(&folder, "Expected values: C0h")[1];
    let drives: Vec<&String> = table[0].keys().filter(|column| column.contains(" nvme")).collect();
    assert_eq!(drives.len(), 3);
    for name in drives {
        let drive = folder.join(name.replace(' ', "/"));
        let ocp = ask(&drive, |query| query.ocp_smart());
        let decoded = ocp_in_words(&ocp, &ask(&drive, |query| query.smart_health()));
        assert_eq!(decoded.len(), table.len(), "a row is not compared");
        for (row, (label, value)) in table.iter().zip(decoded) {
            assert!(row["field, bytes"].starts_with(label), "{} is not {label}", row["field, bytes"]);
            assert_eq!(row[name], value, "{name}: {label}");
        }
        let major = ocp.specification.map(|version| version.major);
        assert_eq!(major, name.starts_with("kioxia").then_some(2), "{name}");
    }
}

#[test]
fn an_unused_self_test_history_is_empty() {
    let Some(folder) = captures() else { return };
    for controller in ["nvme0", "nvme1"] {
        let log = ask(&folder.join("kioxia-kcd8").join(controller), |query| query.self_test());
        assert_eq!((log.running, log.completion_percent, log.results.len()), (None, 0, 0));
    }
}

#[test]
fn drives_are_asked_only_what_they_can_answer() {
    let Some(folder) = captures() else { return };
    let pages = |name: &str| -> Vec<u8> {
        let drive = folder.join(name);
        let survey = Survey::take(&mut Replay::new(&drive), &mut Refusals::default()).unwrap();
        let allowed = survey.plan.verdicts().filter(|(_, verdict)| verdict.is_ok());
        allowed.map(|(page, _)| page.id()).collect()
    };
    assert_eq!(pages("intel-p4510/nvme0"), [0x01, 0x02, 0x03, 0x05]);
    assert_eq!(pages("samsung-worn-degraded/nvme0"), [0x01, 0x02, 0x03, 0x05, 0x06]);
    assert_eq!(pages("samsung-datacenter/nvme0"), [0x01, 0x02, 0x03, 0x05, 0x06, 0xc0]);
    assert_eq!(pages("micron-3500/nvme0"), [0x00, 0x01, 0x02, 0x03, 0x05, 0x06, 0xc0]);
}
