//! The word and the sentence on the host.

use crate::scenario::{Host, controller, disk, identify, line, nvme_controller, nvme_device, smart};
use std::time::Duration;
use storscope_model::event::Event;
use storscope_model::fault::Fault;
use storscope_model::finding::{Finding, Verdict};
use storscope_model::identity::Subject;
use storscope_model::sample::diskstats::Table;
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
    assert_eq!(said(&mut host), (Verdict::Unknown, "starting: drives are looked for".to_owned()));
    host.read(&Subject::Host, Sample::Discovery(Discovery { seen: 7, ..Discovery::default() }));
    assert_eq!(said(&mut host), (Verdict::Unknown, "no drive is selected; 7 block devices seen".to_owned()));
}

#[test]
fn ok_takes_something_fresh_of_every_drive() {
    let mut host = Host::new(3);
    host.diskstats(1);
    assert_eq!(said(&mut host), (Verdict::Ok, "3 drives, nothing wrong".to_owned()));
    host.tell(Event::DeviceAppeared(Box::new(nvme_device(9))));
    assert_eq!(said(&mut host), (Verdict::Unknown, "starting: 1 of 4 drives not yet read: nvme9n1".to_owned()));
    let rows = [0, 1, 2].map(|n| line(&format!("nvme{n}n1"), 2)).to_vec();
    host.read(&Subject::Host, Sample::Diskstats(Table { rows, faults: Vec::new() }));
    host.fail(&disk(9), Source::Queue, Fault::Gone);
    assert_eq!(said(&mut host), (Verdict::Unknown, "neither counters nor health are known of nvme9n1".to_owned()));
}

#[test]
fn the_host_is_not_well_before_its_sources_have_spoken() {
    let mut host = Host::new(0);
    for n in 0..2 {
        host.tell(Event::ControllerAppeared(Box::new(nvme_controller(n))));
        host.tell(Event::DeviceAppeared(Box::new(nvme_device(n))));
    }
    let waiting = |host: &mut Host, whom: &str, after: &str| {
        let headline = format!("starting: {whom}");
        assert_eq!(said(host), (Verdict::Unknown, headline), "{after}");
        assert!(!host.view().ready, "{after}");
    };
    let both = "2 of 2 drives not yet read: nvme0n1, nvme1n1";
    waiting(&mut host, both, "the scan");
    host.read(&Subject::Host, Sample::Discovery(Discovery { seen: 2, ..Discovery::default() }));
    host.diskstats(1);
    waiting(&mut host, both, "the counters");
    for n in 0..2 {
        host.read(&disk(n), Sample::Queue(Box::default()));
    }
    waiting(&mut host, both, "the settings");
    host.read(&controller(0), Sample::Identify(Box::new(identify())));
    waiting(&mut host, both, "Identify");
    host.read(&controller(0), Sample::SmartHealth(Box::new(smart())));
    waiting(&mut host, "1 of 2 drives not yet read: nvme1n1", "one SMART page");
    let denied = Fault::Denied { path: "nvme1".to_owned(), needs: "CAP_SYS_ADMIN".to_owned() };
    host.fail(&controller(1), Source::Identify, denied);
    let view = host.view();
    assert_eq!((view.verdict, view.ready), (Verdict::Degraded, true), "a refusal is an answer: {}", view.headline);
}

#[test]
fn a_drive_that_never_answers_is_waited_for_no_longer_than_its_deadline() {
    let mut host = Host::new(2);
    host.diskstats(1);
    host.read(&Subject::Host, Sample::Discovery(Discovery { seen: 3, ..Discovery::default() }));
    host.tell(Event::ControllerAppeared(Box::new(nvme_controller(2))));
    assert_eq!(said(&mut host), (Verdict::Unknown, "starting: 1 of 3 drives not yet read: nvme2".to_owned()));
    host.pass(10);
    let since = host.now.minus(Duration::from_secs(10));
    host.tell(Event::Stalled { subject: controller(2), source: Source::Identify, since });
    let view = host.view();
    assert_eq!((view.verdict, view.headline.as_str()), (Verdict::Unknown, "no answer yet from nvme2"));
    assert!(view.ready, "one that hangs keeps nobody from the others");
    host.pass(300);
    let findings = host.view().findings;
    let told = |found: &Finding| found.rule == "source_failing" && found.controller.as_deref() == Some("nvme2");
    assert!(findings.iter().any(told), "then a rule says it: {findings:?}");
}

#[test]
fn what_appears_later_is_waited_for_but_the_agent_stays_ready() {
    let mut host = Host::new(2);
    host.diskstats(1);
    host.read(&Subject::Host, Sample::Discovery(Discovery { seen: 2, ..Discovery::default() }));
    assert!(host.view().ready);
    host.tell(Event::ControllerAppeared(Box::new(nvme_controller(2))));
    host.tell(Event::DeviceAppeared(Box::new(nvme_device(2))));
    assert_eq!(said(&mut host), (Verdict::Unknown, "1 of 3 drives not yet read: nvme2n1".to_owned()));
    assert!(host.view().ready);
    host.pass(61);
    assert!(host.view().unread.waiting.is_empty(), "an event that went astray is not waited for");
}

#[test]
fn settings_alone_say_nothing_of_health() {
    let mut host = Host::new(0);
    host.tell(Event::ControllerAppeared(Box::new(nvme_controller(0))));
    host.tell(Event::DeviceAppeared(Box::new(nvme_device(0))));
    host.read(&disk(0), Sample::Queue(Box::default()));
    host.read(&controller(0), Sample::Identify(Box::new(identify())));
    host.diskstats(1);
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
    host.diskstats(1);
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
