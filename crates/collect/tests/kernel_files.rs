//! Kernel files of real machines give the values that their descriptions state.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod realdata;
mod ttar;

use storscope_collect::root::Root;
use storscope_collect::{aer, controller_state, cpu, diskstats, host_info, pcie, power, pressure, queue};
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_model::sample::Sample;
use storscope_model::sample::diskstats::{Row, Table};
use storscope_model::sample::pcie::Link;

/// One of the archived trees, unpacked, with the root in `folder` of it.
fn tree(name: &str, folder: &str) -> Option<(tempfile::TempDir, Root)> {
    let dir = realdata::sysfs(name)?;
    let root = Root::captured(&dir.path().join(folder));
    Some((dir, root))
}

/// The procfs fixture archive, unpacked.
fn fixtures() -> Option<(tempfile::TempDir, Root)> {
    let archive = std::fs::read(realdata::path("procfs/fixtures.ttar")?).unwrap();
    let dir = tempfile::tempdir().unwrap();
    ttar::unpack(&archive, dir.path()).unwrap();
    let root = Root::captured(&dir.path().join("fixtures"));
    Some((dir, root))
}

fn table(path: &str) -> Option<Table> {
    let file = realdata::path("diskstats")?.join(path);
    Some(diskstats::parse(path, &std::fs::read(file).unwrap()))
}

fn row<'a>(table: &'a Table, name: &str) -> &'a Row {
    table.rows.iter().find(|row| row.name == name).unwrap()
}

#[test]
fn a_server_before_discards() {
    let Some(table) = table("cadvisor/diskstats") else { return };
    assert_eq!((table.rows.len(), table.faults.len()), (54, 0));
    assert!(table.rows.iter().all(|row| row.counters.discards.is_none() && row.counters.flushes.is_none()));
    let dm = row(&table, "dm-1").counters;
    assert_eq!((dm.writes.time_ms, dm.weighted_time_ms), (1_975_572_544, 3_695_556_828));
}

#[test]
fn several_lengths_in_one_file() {
    for (path, lines, flushes) in [
        ("sysstat/root1/proc/diskstats", 22, 0),
        ("sysstat/root2/proc/diskstats", 21, 0),
        ("sysstat/root3/proc/diskstats", 21, 1),
        ("sysstat/root4/proc/diskstats", 21, 1),
    ] {
        let Some(table) = table(path) else { return };
        assert_eq!((table.rows.len(), table.faults.len()), (lines, 0), "{path}");
        assert_eq!(table.rows.iter().filter(|row| row.counters.flushes.is_some()).count(), flushes, "{path}");
        let short: Vec<_> = table.rows.iter().filter(|row| row.counters.discards.is_none()).collect();
        let expected: &[&str] = if path.contains("root4") { &[] } else { &["sds"] };
        assert_eq!(short.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), expected, "{path}");
    }
    let Some(third) = table("sysstat/root3/proc/diskstats") else { return };
    assert_eq!(row(&third, "sda1").counters.in_flight, 100);
    let flushes = row(&third, "sdc").counters.flushes.unwrap();
    assert_eq!((flushes.completed, flushes.time_ms), (32, 2145));
    assert_eq!(row(&third, "sdq").counters.discards.unwrap().sectors, 364_610);
}

#[test]
fn a_desktop_of_2018() {
    let Some((_dir, root)) = tree("simple-nvme", "simple-nvme") else { return };
    let function = root.sys("devices/pci0000:00/0000:00:01.0/0000:01:00.0");
    let nvme = queue::read(&root, &function.join("nvme/nvme0/nvme0n1")).unwrap();
    assert_eq!(nvme.faults, []);
    assert_eq!((nvme.scheduler.as_deref(), nvme.nr_requests), (Some("none"), Some(1023)));
    assert_eq!((nvme.write_cache.as_deref(), nvme.device_state), (Some("write back"), None));
    assert_eq!((nvme.max_sectors_bytes, nvme.wbt_lat_usec), (Some(1_310_720), Some(2000)));
    assert_eq!((nvme.fua, nvme.dma_alignment, nvme.io_timeout_ms, nvme.stable_writes), (None, None, None, None));
    assert_eq!(nvme.inflight, Some((0, 0)));
    let disk = root.sys("devices/pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0/1:0:0:0/block/sdb");
    let sdb = queue::read(&root, &disk).unwrap();
    assert_eq!((sdb.scheduler.as_deref(), sdb.rotational), (Some("cfq"), Some(true)));
    assert_eq!(sdb.device_state.as_deref(), Some("running"));
    assert!(controller_state::read(&function.join("nvme/nvme0")).unwrap().is_live());
    assert!(matches!(pcie::read(&root, &function), Outcome::Unsupported(_)));
    assert!(matches!(aer::read(&root, &function), Outcome::Unsupported(_)));
}

#[test]
fn a_desktop_of_2025() {
    let Some((_dir, root)) = tree("multi-devs-bcachefs", "multi-devs-bcachefs") else { return };
    let nvme0n1 = root.sys("devices/pci0000:00/0000:00:1c.4/0000:05:00.0/nvme/nvme0/nvme0n1");
    assert_eq!(queue::read(&root, &nvme0n1).unwrap().scheduler.as_deref(), Some("none"));
    let disk = root.sys("devices/pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0/1:0:0:0/block/sdb");
    let sdb = queue::read(&root, &disk).unwrap();
    assert_eq!((sdb.scheduler.as_deref(), sdb.nr_requests), (Some("bfq"), Some(64)));
    assert_eq!((sdb.rotational, sdb.dma_alignment, sdb.io_timeout_ms), (Some(true), Some(511), Some(30_000)));
    assert_eq!((sdb.wbt_lat_usec, sdb.faults.len()), (Some(0), 0));
    let power = power::read(&root, &disk).unwrap();
    assert_eq!((power.device.as_deref(), power.suspended), (Some("unsupported"), false));
}

#[test]
fn multipath_heads_and_other_pci_domains() {
    let Some((_dir, root)) = tree("tree-pcie", "") else { return };
    let head = queue::read(&root, &root.sys("devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1")).unwrap();
    assert_eq!((head.scheduler, head.nr_requests, head.faults.len()), (None, None, 0));
    assert_eq!(head.write_cache.as_deref(), Some("write through"));
    let controller = root.sys("devices/pci052e:78/052e:78:00.0/nvme/nvme1");
    let path = queue::read(&root, &controller.join("nvme1c1n1")).unwrap();
    assert!(path.scheduler.is_some() && path.nr_requests.is_some());
    assert!(controller_state::read(&controller).unwrap().is_live());
    let functions = pcie::functions(&root, &controller);
    assert_eq!(functions.into_iter().filter_map(pcie::address).collect::<Vec<_>>(), ["052e:78:00.0"]);
    assert!(matches!(pcie::read(&root, &controller), Outcome::Unsupported(_)));
}

/// The sample of an outcome that must have one.
fn value(outcome: Outcome) -> Sample {
    match outcome {
        Outcome::Value(sample) => *sample,
        other => panic!("{other:?}"),
    }
}

#[test]
fn counters_of_three_lengths_and_numbers_used_twice() {
    let Some((_dir, root)) = fixtures() else { return };
    let table = diskstats::read(&root).unwrap();
    assert_eq!((table.rows.len(), table.faults.len()), (52, 0));
    let groups = |discards: bool, flushes: bool| {
        let has = |row: &&Row| row.counters.discards.is_some() == discards && row.counters.flushes.is_some() == flushes;
        table.rows.iter().filter(has).count()
    };
    assert_eq!((groups(false, false), groups(true, false), groups(true, true)), (46, 3, 3));
    let (sda, sdb, sdc) = (row(&table, "sda"), row(&table, "sdb"), row(&table, "sdc"));
    assert_eq!((sda.counters.reads.sectors, sda.counters.discards), (1_003_346_126, None));
    assert_eq!((sdb.major, sdb.minor), (sdc.major, sdc.minor));
    assert_eq!(sdb.counters.discards.unwrap().sectors, 1_925_173_784);
    assert_eq!(sdc.counters.flushes.unwrap().completed, 127);
    assert_eq!(row(&table, "vda").counters.weighted_time_ms, 2_077_872_228);
}

#[test]
fn queue_and_state_of_the_fixture() {
    let Some((_dir, root)) = fixtures() else { return };
    let sda = queue::read(&root, &root.sys("block/sda")).unwrap();
    assert_eq!((sda.scheduler.as_deref(), sda.schedulers.len()), (Some("bfq"), 4));
    assert_eq!((sda.nr_requests, sda.read_ahead_bytes), (Some(64), Some(131_072)));
    assert_eq!((sda.max_sectors_bytes, sda.max_hw_sectors_bytes), (Some(1_310_720), Some(33_553_408)));
    assert_eq!((sda.wbt_lat_usec, sda.rotational, sda.fua), (Some(75_000), Some(true), Some(false)));
    assert_eq!((sda.dma_alignment, sda.stable_writes, sda.faults.len()), (None, None, 0));
    for (name, state) in [("sdb", "running"), ("sdc", "offline"), ("sdd", "running"), ("sde", "running")] {
        let settings = queue::read(&root, &root.sys("block").join(name)).unwrap();
        assert_eq!(settings.device_state.as_deref(), Some(state), "{name}");
    }
}

#[test]
fn link_errors_and_power_of_the_fixture() {
    let Some((_dir, root)) = fixtures() else { return };
    let link = |mega_transfers, width| Link { mega_transfers: Some(mega_transfers), width: Some(width) };
    let drive = root.sys("devices/pci0000:00/0000:00:02.1/0000:01:00.0");
    for (device, expected) in [
        (
            drive.clone(),
            [("0000:01:00.0", link(8000, 4), link(8000, 4)), ("0000:00:02.1", link(8000, 4), link(8000, 8))],
        ),
        (
            root.sys("devices/pci0000:00/0000:00:03.0/0000:03:00.0"),
            [("0000:03:00.0", link(8000, 8), link(8000, 8)), ("0000:00:03.0", link(8000, 8), link(8000, 16))],
        ),
    ] {
        let Sample::PcieLink(found) = value(pcie::read(&root, &device)) else { panic!("not a link") };
        let hops: Vec<_> = found.hops.iter().map(|hop| (hop.address.as_str(), hop.current, hop.maximum)).collect();
        assert_eq!((hops.as_slice(), found.faults.len()), (expected.as_slice(), 0));
    }
    let Sample::PcieAer(errors) = value(aer::read(&root, &drive)) else { panic!("no counters") };
    assert_eq!((errors.functions[0].address.as_str(), errors.functions[0].counters.len()), ("0000:01:00.0", 44));
    assert!(errors.functions[0].counters.iter().all(|counter| counter.count == 0));
    let power = power::read(&root, &drive.join("nvme/nvme0")).unwrap();
    assert_eq!((power.device.as_deref(), power.suspended), (Some("active"), false));
    assert_eq!(power.pci_power_state.as_deref(), Some("D0"));
}

#[test]
fn host_files_of_the_fixture() {
    let Some((_dir, root)) = fixtures() else { return };
    let Sample::Pressure(pressure) = value(pressure::read(&root)) else { panic!("no pressure") };
    assert_eq!(pressure.io.full.unwrap().total_us, 25);
    assert!((pressure.io.full.unwrap().avg60 - 0.03).abs() < 1e-9);
    assert_eq!((pressure.cpu.some.unwrap().total_us, pressure.cpu.full), (15, None));
    let cpu = cpu::read(&root).unwrap();
    assert_eq!((cpu.total_ticks, cpu.idle_ticks, cpu.iowait_ticks), (9_400_890, 8_979_004, 3552));
    assert_eq!((cpu.running, cpu.blocked, cpu.load1), (Some(2), Some(1), Some(0.02)));
    let info = host_info::read(&root).unwrap();
    assert_eq!((info.cpus, info.boot_time_unix), (Some(8), Some(1_418_183_276)));
    assert_eq!((info.memory_bytes, info.faults.len()), (Some(15_666_184 * 1024), 0));
}

#[test]
fn this_host_reads_without_a_fault() {
    let root = Root::live();
    let table = diskstats::read(&root).unwrap();
    assert_eq!(table.faults, []);
    let cpu = cpu::read(&root).unwrap();
    assert_eq!(cpu.faults, []);
    assert!(cpu.total_ticks >= cpu.idle_ticks && cpu.running.is_some() && cpu.load1.is_some(), "{cpu:?}");
    assert!(!matches!(pressure::read(&root), Outcome::Failed(_)));
    for row in &table.rows {
        let Some(device) = root.resolve(&root.block(&row.name)).filter(|device| device.is_dir()) else { continue };
        match (queue::read(&root, &device), power::read(&root, &device)) {
            // A device may leave while the test runs.
            (Err(Fault::Gone), _) | (_, Err(Fault::Gone)) => {}
            (queue, power) => {
                assert_eq!(queue.unwrap().faults, [], "{}", row.name);
                assert_eq!(power.unwrap().faults, [], "{}", row.name);
            }
        }
    }
}
