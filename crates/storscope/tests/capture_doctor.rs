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
fn what_was_captured_on_demand_is_shown_by_the_command_that_is_told() {
    let host = host("1");
    let folder = host.path().join("sys/devices/virtual/block/loop0");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("size"), "524288\n").unwrap();
    symlink("../../devices/virtual/block/loop0", host.path().join("sys/class/block/loop0")).unwrap();
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("it's here");
    let (said, errors, status) = storscope(&["capture", "--include", "loop[0-9]+", "--root"], &[host.path(), &dir]);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains(" kB on the disk) in "), "{said}");
    let command = said.lines().find_map(|line| line.strip_prefix("Look at it with: storscope ")).unwrap();
    assert!(command.ends_with(" --include 'loop[0-9]+'"), "{command}");
    let program = assert_cmd::cargo::cargo_bin("storscope");
    let output = Command::new("sh").arg("-c").arg(format!("{} {command} --json", program.display())).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("loop0"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// Every regular file of `folder` becomes a FIFO to which nobody writes.
fn to_fifos(folder: &Path) -> usize {
    let mut made = 0;
    for item in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = item.file_type().unwrap();
        if kind.is_dir() {
            made += to_fifos(&item.path());
        } else if kind.is_file() {
            fs::remove_file(item.path()).unwrap();
            nix::unistd::mkfifo(&item.path(), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
            made += 1;
        }
    }
    made
}

#[test]
fn fifos_in_the_place_of_files_hold_nobody_up() {
    /// Only ends a test that would hang for ever.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
    let host = host("1");
    fs::write(host.path().join("proc/swaps"), "").unwrap();
    fs::write(host.path().join("proc/stat"), "").unwrap();
    let drive = host.path().join("drives/nvme0");
    fs::create_dir_all(&drive).unwrap();
    for page in ["identify.bin", "logpage-0x02.bin"] {
        fs::write(drive.join(page), "").unwrap();
    }
    assert!(to_fifos(host.path()) > 15);
    let out = tempfile::tempdir().unwrap();
    let run = |args: &[&str], paths: &[&Path]| {
        let mut command = Command::cargo_bin("storscope").unwrap();
        let output = command.args(args).args(paths).timeout(PATIENCE).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    for (args, paths) in
        [(["capture", "--root"], vec![host.path(), out.path()]), (["doctor", "--root"], vec![host.path()])]
    {
        let (status, said) = run(&args, &paths);
        assert_eq!(status, Some(0), "{said}");
        // Each of both gives up on what hangs after a time of its own, and says so.
        assert!(!said.contains("no answer") && !said.contains("did not answer"), "{said}");
    }
}

#[test]
fn an_output_that_takes_nothing_is_an_error_and_a_reader_that_left_is_none() {
    let host = host("1");
    let run = |subcommand: &str, redirection: &str| {
        let out = tempfile::tempdir().unwrap();
        let program = assert_cmd::cargo::cargo_bin("storscope");
        let target = if subcommand == "capture" { out.path().display().to_string() } else { String::new() };
        let script =
            format!("exec {} {subcommand} --root {} {target} {redirection}", program.display(), host.path().display());
        let output = std::process::Command::new("sh").arg("-c").arg(script).stdout(stdout()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let full = storscope_collect::root::Root::live().node("full");
    for subcommand in ["doctor", "capture"] {
        let (status, errors) = run(subcommand, &format!("> {}", full.display()));
        assert_eq!(status, Some(1), "{subcommand}: {errors}");
        assert!(errors.starts_with("storscope: ") && !errors.contains("panicked"), "{subcommand}: {errors}");
        let (status, errors) = run(subcommand, "");
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{subcommand}");
        let (status, errors) = run(subcommand, ">&-");
        assert!(!errors.contains("panicked") && status != Some(101), "{subcommand}: {errors}");
    }
}

/// A pipe whose reader has left.
fn stdout() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
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
