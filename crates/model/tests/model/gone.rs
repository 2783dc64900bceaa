//! Devices that vanish: the host does not turn green.

use crate::scenario::{Host, controller, disk, nvme_controller, nvme_device, report};
use std::sync::Arc;
use storscope_model::device::{Device, Transport};
use storscope_model::event::Event;
use storscope_model::finding::{Severity, Since, Verdict};
use storscope_model::history::{History, MAX_VANISHED};
use storscope_model::identity::DeviceId;
use storscope_model::identity::Subject;
use storscope_model::sample::Sample;
use storscope_model::sample::host::Discovery;
use storscope_model::sample::nvme::ControllerState;
use storscope_model::sample::stack::{Mount, Node, Stack};
use storscope_model::view::AgentStatus;

/// A drive that is no NVMe drive.
pub(crate) fn device(n: usize, transport: Transport) -> Device {
    Device { name: format!("sd{n}"), transport, nvme: None, pci_address: None, ..nvme_device(n) }
}

fn host_with(device: Device) -> Host {
    let mut host = Host::new(0);
    host.tell(Event::DeviceAppeared(Box::new(device)));
    host.view();
    host
}

fn fail_reads(host: &mut Host, n: usize) {
    let mut failing = report(5);
    failing.errors = vec![(5, 2)];
    host.read(&disk(n), Sample::Probe(Box::new(failing)));
    assert!(host.finding("probe_errors").is_some());
}

#[test]
fn a_fixed_drive_that_vanishes_is_a_warning_until_it_is_back() {
    let mut host = host_with(device(7, Transport::Sata));
    host.pass(60);
    host.view();
    host.pass(5);
    host.tell(Event::Vanished(disk(7)));
    let vanished = host.now;
    let finding = host.finding("device_gone").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Warning, "drive is gone"));
    assert_eq!((finding.subject, finding.device.as_deref()), (disk(7), Some("sd7")));
    assert_eq!(finding.evidence, ["MODEL, S/N SERIAL7, sata"]);
    assert_eq!(finding.since, Since::Boot(vanished));
    let view = host.view();
    assert_eq!((view.verdict, view.headline.as_str()), (Verdict::Degraded, "sd7: drive is gone"));
    assert!(view.devices.iter().all(|device| device.state.device.name != "sd7"), "its own series leave at once");
    host.pass(600);
    assert_eq!(host.finding("device_gone").unwrap().since, Since::Boot(vanished));
    host.tell(Event::DeviceAppeared(Box::new(Device { name: "sd9".to_owned(), ..device(7, Transport::Sata) })));
    assert_eq!(host.finding("device_gone"), None);
    let closed = host.view().closed.remove(0);
    assert_eq!((closed.rule, closed.title.as_str(), closed.ended), ("device_gone", "drive is gone", Some(host.now)));
}

#[test]
fn a_drive_in_trouble_that_vanishes_is_critical_whatever_it_is() {
    let mut host = host_with(device(7, Transport::Usb));
    fail_reads(&mut host, 7);
    host.pass(10);
    host.view();
    host.tell(Event::Vanished(disk(7)));
    let view = host.view();
    let [finding] = &view.findings[..] else { panic!("{:#?}", view.findings) };
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(finding.title, "drive is gone; before that: reads fail: EIO");
    assert_eq!(view.verdict, Verdict::Critical);
    assert_eq!(view.closed[0].title, "reads fail: EIO (the device is gone)");
}

#[test]
fn what_comes_and_goes_is_no_finding() {
    let coming = [Transport::Usb, Transport::Loop, Transport::DeviceMapper, Transport::Nbd, Transport::Mmc];
    for transport in coming {
        let mut host = host_with(device(7, transport));
        host.pass(600);
        host.tell(Event::Vanished(disk(7)));
        assert_eq!(host.finding("device_gone"), None, "{transport:?}");
    }
    let mut removable = host_with(Device { removable: Some(true), ..device(7, Transport::Sata) });
    removable.pass(600);
    removable.tell(Event::Vanished(disk(7)));
    assert_eq!(removable.finding("device_gone"), None);
    let mut new = host_with(device(7, Transport::Virtio));
    new.pass(59);
    new.tell(Event::Vanished(disk(7)));
    assert_eq!(new.finding("device_gone"), None, "there for less than a minute");
}

#[test]
fn a_controller_that_leaves_before_its_namespace_is_one_finding() {
    let mut host = Host::new(2);
    let postgres = Mount { point: "/srv".to_owned(), fs_type: "ext4".to_owned() };
    let node = Node { name: "nvme1n1".to_owned(), label: None, above: Vec::new(), mounts: vec![postgres], swap: false };
    host.read(&Subject::Host, Sample::Stack(Stack { nodes: vec![node], ..Stack::default() }));
    host.read(&controller(1), Sample::ControllerState(ControllerState { state: "dead".to_owned() }));
    host.view();
    host.pass(1);
    host.read(&Subject::Host, Sample::Stack(Stack::default()));
    host.tell(Event::Vanished(controller(1)));
    host.view();
    host.pass(5);
    host.tell(Event::Vanished(disk(1)));
    let view = host.view();
    let [finding] = &view.findings[..] else { panic!("{:#?}", view.findings) };
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(finding.title, "drive is gone; before that: controller is dead, not live");
    assert_eq!(finding.carries, ["/srv (ext4)"]);
    assert_eq!((finding.device.as_deref(), finding.controller.as_deref()), (Some("nvme1n1"), None));
    host.tell(Event::ControllerAppeared(Box::new(nvme_controller(1))));
    host.tell(Event::DeviceAppeared(Box::new(nvme_device(1))));
    assert_eq!(host.finding("device_gone"), None);
}

#[test]
fn reads_that_fail_as_a_drive_is_pulled_are_not_what_ailed_it() {
    let mut host = host_with(device(7, Transport::Sata));
    host.pass(60);
    fail_reads(&mut host, 7);
    host.pass(2);
    host.tell(Event::Vanished(disk(7)));
    let finding = host.finding("device_gone").unwrap();
    assert_eq!((finding.severity, finding.title.as_str()), (Severity::Warning, "drive is gone"));
}

#[test]
fn it_ends_after_a_day_and_is_bounded() {
    let mut host = Host::new(MAX_VANISHED + 40);
    host.view();
    host.pass(100);
    host.view();
    for n in 0..MAX_VANISHED + 40 {
        host.tell(Event::Vanished(disk(n)));
        if n == 39 {
            host.view();
            host.pass(5);
        }
    }
    let view = host.view();
    assert_eq!(view.findings.iter().filter(|finding| finding.rule == "device_gone").count(), MAX_VANISHED);
    assert_eq!(view.headline, format!("{MAX_VANISHED} drives are gone"));
    host.pass(24 * 3600 - 1);
    assert!(host.finding("device_gone").is_some());
    host.pass(1);
    assert_eq!(host.finding("device_gone"), None);
}

#[test]
fn what_another_configuration_does_not_select_is_not_gone() {
    let mut host = host_with(device(7, Transport::Sata));
    host.pass(600);
    fail_reads(&mut host, 7);
    host.agent = Arc::new(AgentStatus { config_reloads: (2, 0), config_loaded: host.now, ..AgentStatus::default() });
    host.pass(5);
    host.tell(Event::Vanished(disk(7)));
    assert_eq!(host.finding("device_gone"), None);
    host.tell(Event::DeviceAppeared(Box::new(device(8, Transport::Sata))));
    host.view();
    host.pass(60);
    host.tell(Event::Vanished(disk(8)));
    assert!(host.finding("device_gone").is_some());
}

#[test]
fn a_place_that_is_taken_again_is_not_gone() {
    let weak = Device { id: DeviceId("weak:pci-0".to_owned()), ..device(7, Transport::Virtio) };
    let subject = Subject::Device(weak.id.clone());
    let mut host = host_with(weak);
    host.pass(100);
    host.view();
    host.tell(Event::Vanished(subject));
    assert!(host.finding("device_gone").is_some());
    host.tell(Event::DeviceAppeared(Box::new(device(7, Transport::Virtio))));
    assert_eq!(host.finding("device_gone"), None);
}

#[test]
fn a_restart_does_not_forget_what_is_gone() {
    let mut host = host_with(device(7, Transport::Sata));
    fail_reads(&mut host, 7);
    host.pass(100);
    host.view();
    host.tell(Event::Vanished(disk(7)));
    let before = host.finding("device_gone").unwrap();
    let memory = host.history.memory(&host.snapshot.clock);
    assert_eq!(memory.gone.len(), 1);
    for back in [false, true] {
        let mut next = Host::new(1);
        next.history = History::restore(&memory, &next.snapshot.clock);
        next.now = host.now;
        next.pass(30);
        assert_eq!(next.finding("device_gone"), None, "nothing was looked for yet");
        if back {
            next.tell(Event::DeviceAppeared(Box::new(device(7, Transport::Sata))));
        }
        next.read(&Subject::Host, Sample::Discovery(Discovery { seen: 1, faults: Vec::new() }));
        let after = next.finding("device_gone");
        assert_eq!(after.as_ref(), (!back).then_some(&before));
        assert_eq!(next.history.memory(&next.snapshot.clock).gone.is_empty(), back);
    }
    let mut late = Host::new(1);
    late.history = History::restore(&memory, &late.snapshot.clock);
    late.now = host.now;
    late.pass(24 * 3600);
    late.view();
    assert!(late.history.memory(&late.snapshot.clock).gone.is_empty(), "a day has passed");
}
