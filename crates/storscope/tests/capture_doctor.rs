//! `storscope capture` and `storscope doctor`, as a person runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use assert_cmd::Command;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const SERIAL: &str = "S64HNE0T517223";

fn storscope(args: &[&str], paths: &[&Path]) -> (String, String, Option<i32>) {
    let mut command = Command::cargo_bin("storscope").unwrap();
    let output = command.args(args).args(paths).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// A host with one NVMe drive.
fn host(iostats: &str) -> tempfile::TempDir {
    let host = tempfile::tempdir().unwrap();
    let controller = host.path().join("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0");
    let files = [
        ("transport", "pcie"),
        ("model", "SAMSUNG MZQL27T6HBLA-00A07"),
        ("serial", SERIAL),
        ("firmware_rev", "GDC5902Q"),
        ("cntlid", "6"),
        ("state", "live"),
        ("nvme0n1/size", "15002931888"),
        ("nvme0n1/dev", "259:0"),
        ("nvme0n1/nsid", "1"),
        ("nvme0n1/queue/iostats", iostats),
        ("nvme0n1/queue/logical_block_size", "512"),
    ];
    for (name, text) in files {
        let place = controller.join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, format!("{text}\n")).unwrap();
    }
    let function = host.path().join("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0");
    let link =
        [("current_link_speed", "16.0 GT/s PCIe"), ("current_link_width", "4"), ("aer_dev_correctable", "RxErr 0")];
    for (name, text) in link {
        fs::write(function.join(name), format!("{text}\n")).unwrap();
    }
    for (class, target) in [("block/nvme0n1", "nvme0/nvme0n1"), ("nvme/nvme0", "nvme0")] {
        let link = host.path().join("sys/class").join(class);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(format!("../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/{target}"), link).unwrap();
    }
    let proc = host.path().join("proc");
    fs::create_dir_all(proc.join("pressure")).unwrap();
    fs::create_dir_all(proc.join("1")).unwrap();
    fs::write(proc.join("diskstats"), "259 0 nvme0n1 1 0 8 1 1 0 8 1 0 2 2\n").unwrap();
    fs::write(proc.join("1/mountinfo"), "22 1 259:0 / / rw - ext4 /dev/nvme0n1 rw\n").unwrap();
    fs::write(proc.join("pressure/io"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n").unwrap();
    host
}

#[test]
fn a_capture_is_a_host_again_without_its_serial_number() {
    let host = host("1");
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("new/capture");
    let (said, errors, status) = storscope(&["capture", "--root"], &[host.path(), &dir]);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("storscope status --root"), "{said}");
    let (text, _, _) = storscope(&["status", "--json", "--root"], &[&dir]);
    assert!(text.contains("SAMSUNG MZQL27T6HBLA-00A07") && text.contains("GDC5902Q"), "{text}");
    assert!(text.contains("nvme0n1") && !text.contains(SERIAL), "{text}");
    let again = storscope(&["capture", "--root"], &[host.path(), &dir]);
    assert_eq!(again.2, Some(1));
    assert!(again.1.contains("is not empty"), "{}", again.1);
}

#[test]
fn serial_numbers_stay_on_demand() {
    let host = host("1");
    let out = tempfile::tempdir().unwrap();
    let (said, _, status) = storscope(&["capture", "--keep-serials", "--root"], &[host.path(), out.path()]);
    assert_eq!(status, Some(0), "{said}");
    let (text, _, _) = storscope(&["status", "--json", "--root"], &[out.path()]);
    assert!(text.contains(SERIAL), "{text}");
}

#[test]
fn the_doctor_names_the_command_that_mends() {
    let host = host("0");
    let (text, errors, status) = storscope(&["doctor", "--root"], &[host.path()]);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{text}");
    assert!(text.contains("0 denied") && text.contains("LACKS"), "{text}");
    assert!(text.contains("echo 1 > ") && text.contains("nvme0n1/queue/iostats"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains("mend:")), "{text}");
}

#[test]
fn the_doctor_of_this_host_tells_denial_by_its_exit_status() {
    let (text, errors, status) = storscope(&["doctor"], &[]);
    assert_eq!(errors, "", "{text}");
    assert!(text.contains("CAP_SYS_ADMIN") && text.contains("io_uring"), "{text}");
    assert_eq!(status, Some(i32::from(text.contains("\nDENIED\n"))), "{text}");
}
