//! The cost of one `/proc/diskstats`, from bytes and from a file.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use storscope_collect::diskstats;
use storscope_collect::root::Root;

/// Lines as a 6.x kernel prints them, with counters of a host that has been up for months.
fn text(devices: u64) -> String {
    let mut text = String::new();
    for index in 0..devices {
        let _ = writeln!(
            text,
            " 259 {index:7} nvme{index}n1 {} 4 {} 21650 {} 43950 {} 1011053 0 222766 1032546 68851 0 1925173784 11130 127 182",
            471_149_999 + index,
            46_439_733_333_u64 + index,
            1_078_320_777 + index,
            394_516_333_333_u64 + index
        );
    }
    text
}

fn table(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("diskstats");
    let dir = tempfile::tempdir();
    for devices in [24, 1000] {
        let text = text(devices);
        group.throughput(Throughput::Elements(devices));
        group.bench_with_input(BenchmarkId::new("parse", devices), text.as_bytes(), |bencher, bytes| {
            bencher.iter(|| diskstats::parse("diskstats", black_box(bytes)));
        });
        let Ok(dir) = &dir else { continue };
        let root = Root::captured(dir.path());
        let written =
            std::fs::create_dir_all(root.proc("")).and_then(|()| std::fs::write(root.proc("diskstats"), &text));
        if written.is_ok() {
            group.bench_with_input(BenchmarkId::new("read", devices), &root, |bencher, root| {
                bencher.iter(|| diskstats::read(black_box(root)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, table);
criterion_main!(benches);
