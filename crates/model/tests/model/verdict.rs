//! The word and the sentence on the host.

use crate::scenario::{Host, controller, smart};
use storscope_model::event::Event;
use storscope_model::finding::Verdict;
use storscope_model::identity::Subject;
use storscope_model::sample::host::Discovery;
use storscope_model::sample::nvme::SmartHealth;
use storscope_model::sample::{Sample, Source};

fn said(host: &mut Host) -> (Verdict, String) {
    let view = host.view();
    (view.verdict, view.headline)
}

#[test]
fn nothing_selected_is_never_ok() {
    let mut host = Host::new(0);
    assert_eq!(said(&mut host), (Verdict::Unknown, "no drive is known: nothing was found yet".to_owned()));
    host.read(&Subject::Host, Sample::Discovery(Discovery { seen: 7, ..Discovery::default() }));
    assert_eq!(said(&mut host), (Verdict::Unknown, "no drive is selected; 7 block devices seen".to_owned()));
}

#[test]
fn ok_takes_something_fresh_of_every_drive() {
    let mut host = Host::new(3);
    host.diskstats(1);
    assert_eq!(said(&mut host), (Verdict::Ok, "3 drives, nothing wrong".to_owned()));
    host.tell(Event::DeviceAppeared(Box::new(crate::scenario::nvme_device(9))));
    assert_eq!(said(&mut host), (Verdict::Unknown, "neither counters nor health are known of nvme9n1".to_owned()));
}

#[test]
fn settings_alone_say_nothing_of_health() {
    let mut host = Host::new(0);
    host.tell(Event::ControllerAppeared(Box::new(crate::scenario::nvme_controller(0))));
    host.tell(Event::DeviceAppeared(Box::new(crate::scenario::nvme_device(0))));
    host.read(&crate::scenario::disk(0), Sample::Queue(Box::default()));
    host.read(&controller(0), Sample::Identify(Box::new(crate::scenario::identify())));
    assert_eq!(said(&mut host).0, Verdict::Unknown);
    host.read(&controller(0), Sample::SmartHealth(Box::new(smart())));
    assert_eq!(said(&mut host).0, Verdict::Ok);
}

#[test]
fn drives_in_need_are_counted() {
    let mut host = Host::new(4);
    host.read(&controller(1), Sample::SmartHealth(Box::new(SmartHealth { percentage_used: 120, ..smart() })));
    assert_eq!(said(&mut host), (Verdict::Degraded, "1 of 4 drives needs attention".to_owned()));
    host.read(&controller(2), Sample::SmartHealth(Box::new(SmartHealth { critical_warning: 8, ..smart() })));
    assert_eq!(said(&mut host), (Verdict::Critical, "2 of 4 drives need attention".to_owned()));
}

#[test]
fn information_leaves_the_verdict_alone() {
    let mut host = Host::new(1);
    host.tell(Event::Stalled { subject: Subject::Host, source: Source::Pressure, since: host.now });
    host.pass(40);
    host.healthy();
    let view = host.view();
    assert_eq!((view.findings.len(), view.verdict), (1, Verdict::Ok));
}

#[test]
fn devices_are_in_the_order_of_their_names() {
    let mut host = Host::new(12);
    let view = host.view();
    let names: Vec<&str> = view.devices.iter().map(|device| device.state.device.name.as_str()).collect();
    assert_eq!((names[2], names[9], names[10]), ("nvme2n1", "nvme9n1", "nvme10n1"));
    assert_eq!(view.devices[3].controllers, ["nvme3"]);
    assert_eq!(view.controllers[3].devices, ["nvme3n1"]);
}

#[test]
fn counters_and_rates_are_there_only_while_fresh() {
    let mut host = Host::new(1);
    host.diskstats(100);
    host.view();
    host.pass(5);
    host.diskstats(600);
    let view = host.view();
    assert_eq!(view.devices[0].counters.map(|counters| counters.reads.completed), Some(600));
    assert_eq!(view.devices[0].rates.map(|rates| rates.reads_per_second), Some(100.0));
    host.pass(60);
    let view = host.view();
    assert_eq!((view.devices[0].counters, view.devices[0].rates), (None, None));
}
