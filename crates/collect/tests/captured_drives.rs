//! Real controllers' pages through a whole round: `drives/NAME/` of a captured host in, samples out.
//!
//! The pages are not part of this repository. They are looked for in `$STORSCOPE_REALDATA`, else beside the checkout.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use storscope_collect::collector::{CollectorSettings, collect_once};
use storscope_collect::root::Root;
use storscope_model::event::{Event, Outcome};
use storscope_model::identity::Subject;
use storscope_model::sample::nvme::{ErrorLog, FirmwareSlots, Identify, OcpSmart, SelfTestLog, SmartHealth};
use storscope_model::sample::{Sample, Source};

fn folder(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/realdata");
    let folder = std::env::var_os("STORSCOPE_REALDATA").map_or_else(beside, PathBuf::from).join("nvme").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no captured drives in {}", folder.display());
    None
}

#[derive(Debug, Default)]
struct Drive {
    identify: Option<Identify>,
    smart: Option<SmartHealth>,
    errors: Option<ErrorLog>,
    firmware: Option<FirmwareSlots>,
    self_test: Option<SelfTestLog>,
    ocp: Option<OcpSmart>,
    unsupported: BTreeMap<&'static str, String>,
}

/// Everything that one round tells of the controllers in `name`, by kernel name.
fn replay(name: &str) -> Option<BTreeMap<String, Drive>> {
    let source = folder(name)?;
    let dir = tempfile::tempdir().unwrap();
    for controller in ["nvme0", "nvme1"] {
        let to = dir.path().join("drives").join(controller);
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(source.join(controller)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    let events = collect_once(Root::captured(dir.path()), CollectorSettings::default()).unwrap();
    let mut names = BTreeMap::new();
    let mut drives: BTreeMap<String, Drive> = BTreeMap::new();
    for event in events {
        match event {
            Event::ControllerAppeared(controller) => {
                names.insert(Subject::Controller(controller.id.clone()), controller.name.clone());
            }
            Event::Read { subject: subject @ Subject::Controller(_), source, outcome, .. } => {
                let drive = drives.entry(names[&subject].clone()).or_default();
                match outcome {
                    Outcome::Value(sample) => keep(drive, *sample),
                    Outcome::Unsupported(why) => {
                        drive.unsupported.insert(source.as_str(), why);
                    }
                    other => panic!("{} {source:?}: {other:?}", names[&subject]),
                }
            }
            _ => {}
        }
    }
    assert_eq!(drives.len(), 2, "drives with the same scrubbed serial are two drives");
    Some(drives)
}

fn keep(drive: &mut Drive, sample: Sample) {
    match sample {
        Sample::Identify(page) => drive.identify = Some(*page),
        Sample::SmartHealth(page) => drive.smart = Some(*page),
        Sample::ErrorLog(page) => drive.errors = Some(page),
        Sample::FirmwareSlots(page) => drive.firmware = Some(page),
        Sample::SelfTest(page) => drive.self_test = Some(page),
        Sample::OcpSmart(page) => drive.ocp = Some(*page),
        Sample::DriveCommands(_) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_worn_drive_shows_its_wear_and_its_warning() {
    let Some(drives) = replay("samsung-worn-degraded") else { return };
    let drive = &drives["nvme0"];
    let smart = drive.smart.as_ref().unwrap();
    assert_eq!((smart.critical_warning, smart.percentage_used, smart.available_spare_percent), (4, 133, 100));
    assert_eq!(smart.temperature_c, Some(49));
    assert_eq!(smart.sensors_c[..3], [Some(49), Some(70), None]);
    assert_eq!((smart.power_on_hours, smart.busy_minutes, smart.unsafe_shutdowns), (53872, 87145, 1));
    let errors: Vec<(u64, u16)> =
        drive.errors.as_ref().unwrap().entries.iter().map(|entry| (entry.count, entry.status)).collect();
    assert_eq!(errors, [(70, 0x109), (69, 0x109), (68, 0x002)]);
    let identify = drive.identify.as_ref().unwrap();
    assert_eq!((identify.model.as_str(), identify.firmware.as_str()), ("SAMSUNG MZVLB512HAJQ-00000", "EXA7301Q"));
    assert_eq!((identify.warning_temperature_c, identify.critical_temperature_c), (Some(81), Some(82)));
    assert_eq!(drives["nvme1"].smart.as_ref().unwrap().percentage_used, 135);
    // NVMe 1.2: its C0h is not asked for, let alone taken for OCP's.
    assert!(drive.ocp.is_none() && drive.unsupported.contains_key(Source::OcpSmart.as_str()));
}

#[test]
fn two_models_in_one_host_are_asked_each_in_its_way() {
    let Some(drives) = replay("samsung-datacenter") else { return };
    let (first, second) = (&drives["nvme0"], &drives["nvme1"]);
    let smart = first.smart.as_ref().unwrap();
    assert_eq!((smart.temperature_c, smart.percentage_used, smart.power_on_hours), (Some(41), 2, 25493));
    assert_eq!((smart.data_units_read, smart.data_units_written), (373_879_469, 752_324_304));
    assert_eq!((smart.host_reads, smart.host_writes), (14_276_093_260, 52_300_463_145));
    let ocp = first.ocp.as_ref().unwrap();
    assert_eq!((ocp.version, ocp.media_written_bytes), (2, Some(195_459_011_571_712)));
    assert_eq!(
        (ocp.erase_count_max, ocp.erase_count_min, ocp.capacitor_health_percent),
        (Some(244), Some(63), Some(160))
    );
    let firmware = first.firmware.as_ref().unwrap();
    assert_eq!((firmware.active, firmware.next), (2, None));
    assert_eq!(firmware.revisions[..2], [Some("GDC5602Q".to_owned()), Some("GDC5902Q".to_owned())]);

    let smart = second.smart.as_ref().unwrap();
    assert_eq!((smart.temperature_c, smart.error_log_entries, smart.unsafe_shutdowns), (Some(43), 178, 31));
    assert_eq!(smart.sensors_c[..3], [Some(43), Some(47), Some(55)]);
    assert_eq!(second.errors.as_ref().unwrap().entries.len(), 1);
    assert!(second.ocp.is_none());
}

#[test]
fn fields_that_are_not_implemented_and_unused_results_are_left_out() {
    let Some(drives) = replay("kioxia-kcd8") else { return };
    for drive in drives.values() {
        let ocp = drive.ocp.as_ref().unwrap();
        assert_eq!((ocp.version, ocp.bad_system_blocks), (3, (None, None)));
        let self_test = drive.self_test.as_ref().unwrap();
        assert_eq!((self_test.current, self_test.results.len()), (0, 0));
        assert_eq!(drive.smart.as_ref().unwrap().sensors_c, [None; 8]);
    }
    assert_eq!(drives["nvme1"].ocp.as_ref().unwrap().refreshes, Some(3_619_096));
}

#[test]
fn a_vendors_own_page_is_not_taken_for_ocp() {
    let Some(drives) = replay("intel-p4510") else { return };
    for drive in drives.values() {
        assert!(drive.ocp.is_none());
        assert_eq!(drive.smart.as_ref().unwrap().temperature_c, Some(37));
        assert_eq!(drive.identify.as_ref().unwrap().total_capacity_bytes, 1_000_204_886_016);
    }
}

#[test]
fn a_full_error_log_arrives_whole() {
    let Some(drives) = replay("samsung-errorlog-full") else { return };
    for drive in drives.values() {
        let errors = &drive.errors.as_ref().unwrap().entries;
        assert_eq!(errors.len(), 64);
        assert_eq!((errors[0].count, errors[63].count), (181, 118));
        assert_eq!(errors.iter().filter(|entry| entry.status == 0x109).count(), 3);
    }
}

#[test]
fn a_client_drive_has_one_sensor_and_no_ocp_page() {
    let Some(drives) = replay("micron-3500") else { return };
    let smart = drives["nvme1"].smart.as_ref().unwrap();
    assert_eq!(
        (smart.temperature_c, smart.percentage_used, smart.available_spare_threshold_percent),
        (Some(47), 47, 5)
    );
    assert_eq!(drives["nvme0"].identify.as_ref().unwrap().version, Some((2, 0, 0)));
    assert!(drives["nvme0"].ocp.is_none());
}
