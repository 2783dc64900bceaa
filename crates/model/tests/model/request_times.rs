//! What the kernel's counting leaves open of mean times.

use crate::scenario::{Host, controller_id, line, nvme_device};
use storscope_model::device::{Device, NvmePath, Transport};
use storscope_model::event::Event;
use storscope_model::identity::Subject;
use storscope_model::sample::Sample;
use storscope_model::sample::diskstats::Table;
use storscope_model::sample::host::HostInfo;

/// What is left open of the mean of ten reads of `device` on `kernel` that took less than was counted.
fn open(kernel: Option<&str>, device: Device, lines: &[&str]) -> Option<f64> {
    let mut host = Host::new(0);
    host.tell(Event::DeviceAppeared(Box::new(device)));
    let info = HostInfo { kernel: kernel.map(str::to_owned), ..HostInfo::default() };
    host.read(&Subject::Host, Sample::HostInfo(info));
    for reads in [100, 110] {
        host.pass(5);
        let mut rows = vec![line("nvme0n1", reads)];
        rows.extend(lines.iter().map(|name| line(name, if *name == lines[0] { reads } else { 7 })));
        rows.iter_mut().for_each(|row| row.counters.reads.time_ms = 5);
        host.read(&Subject::Host, Sample::Diskstats(Table { rows, faults: Vec::new() }));
        host.view();
    }
    let rates = host.view().devices[0].rates?;
    assert_eq!((rates.read_await_seconds, rates.write_await_resolution_seconds), (Some(0.0), None));
    rates.read_await_resolution_seconds
}

#[test]
fn a_millisecond_is_shared_by_the_requests_where_nanoseconds_are_counted() {
    assert_eq!(open(Some("6.12.0"), nvme_device(0), &[]), Some(0.0001));
    assert_eq!(open(Some("4.19.0-5-amd64"), nvme_device(0), &[]), Some(0.0001));
    assert_eq!(open(None, nvme_device(0), &[]), Some(0.0001));
    let mut head = nvme_device(0);
    let names = ["nvme0c0n1", "nvme0c1n1"];
    let path = |name: &str| NvmePath { name: name.to_owned(), controller: controller_id(0), ana_state: None };
    if let Some(nvme) = &mut head.nvme {
        nvme.paths = names.map(path).to_vec();
    }
    assert_eq!(open(Some("6.12.0"), head, &names), Some(0.0002), "each path has its own line");
}

#[test]
fn a_jiffy_is_open_of_each_request_where_jiffies_are_counted() {
    assert_eq!(open(Some("4.18.0"), nvme_device(0), &[]), Some(0.01));
    assert_eq!(open(Some("3.10.0-1160.el7.x86_64"), nvme_device(0), &[]), Some(0.01));
    let stacked = Device { transport: Transport::DeviceMapper, nvme: None, ..nvme_device(0) };
    assert_eq!(open(Some("6.12.0"), stacked, &[]), Some(0.01));
}
