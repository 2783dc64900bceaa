//! Which devices are probed, and how often.

use crate::scenario::{Host, controller, controller_id, disk, nvme_device, report};
use std::time::Duration;
use storscope_model::device::{Device, NvmePath, Transport, Zoned};
use storscope_model::event::{Event, Outcome};
use storscope_model::identity::DeviceId;
use storscope_model::probe_plan::{Plan, ProbePolicy, plan};
use storscope_model::sample::nvme::ControllerState;
use storscope_model::sample::power::{AtaPower, RuntimePower};
use storscope_model::sample::queue::QueueSettings;
use storscope_model::sample::{Sample, Source};

fn planned(host: &mut Host) -> Plan {
    host.view();
    plan(&host.snapshot, &mut host.history, &ProbePolicy::default(), host.now)
}

fn why_not(host: &mut Host) -> Option<String> {
    planned(host).not_probed.into_iter().next().map(|(_, why)| why)
}

fn sata(rotational: bool) -> Device {
    Device { transport: Transport::Sata, rotational: Some(rotational), nvme: None, ..nvme_device(0) }
}

/// A host with one device, awake as far as the kernel knows.
fn with(device: Device) -> Host {
    let mut host = Host::new(0);
    host.tell(Event::DeviceAppeared(Box::new(device)));
    host.healthy();
    host
}

#[test]
fn a_healthy_drive_gets_the_default_burst() {
    let mut host = Host::new(1);
    let plan = planned(&mut host);
    let [target] = &plan.targets[..] else { panic!("{plan:?}") };
    assert_eq!((target.burst, target.interval_ms), (16, 4000));
    assert_eq!(planned(&mut host), plan, "an equal plan need not be sent again");
    assert_eq!(host.view().devices[0].probe.interval, Some(Duration::from_secs(4)));
}

#[test]
fn what_a_read_could_hurt_or_could_hang_on_is_left_alone() {
    let base = nvme_device(0);
    let loop_device = Device { transport: Transport::Loop, nvme: None, ..base.clone() };
    let cases = [
        (Device { size_bytes: Some(0), ..loop_device.clone() }, "it has no size"),
        (Device { size_bytes: None, ..loop_device.clone() }, "it has no size"),
        (Device { devnum: None, ..loop_device.clone() }, "its device number is not known"),
        (Device { logical_block_bytes: None, ..loop_device.clone() }, "its block size is not known"),
        (Device { zoned: Some(Zoned::HostManaged), ..loop_device.clone() }, "it is zoned, host-managed"),
        (Device { removable: Some(true), ..loop_device.clone() }, "its medium is removable"),
        (Device { transport: Transport::Optical, ..loop_device.clone() }, "its medium is removable"),
        (Device { transport: Transport::Zram, ..loop_device.clone() }, "it is memory"),
        (base, "its controller is not known"),
    ];
    for (device, why) in cases {
        assert_eq!(why_not(&mut with(device)).as_deref(), Some(why));
    }
    assert_eq!(why_not(&mut with(loop_device)), None);
}

#[test]
fn a_sleeping_disk_is_never_woken() {
    let rotating = || with(sata(true));
    let unknown = "a rotating disk whose power mode is not known is not woken";
    assert_eq!(why_not(&mut rotating()).as_deref(), Some(unknown));
    let mut host = rotating();
    host.read(&disk(0), Sample::AtaPower(AtaPower { mode: 0xFF }));
    let plan = planned(&mut host);
    assert_eq!((plan.targets[0].burst, plan.targets[0].rotational), (2, true), "small bursts on a rotating disk");
    host.read(&disk(0), Sample::AtaPower(AtaPower { mode: 0x00 }));
    assert_eq!(why_not(&mut host).as_deref(), Some("it sleeps"));
    assert!(host.view().devices[0].asleep);
    let mut host = rotating();
    host.tell(Event::Read {
        subject: disk(0),
        source: Source::AtaPower,
        began: host.now,
        ended: host.now,
        outcome: Outcome::Unsupported("no pass-through".to_owned()),
    });
    assert_eq!(why_not(&mut host).as_deref(), Some(unknown));
    assert_eq!(why_not(&mut with(sata(false))), None, "flash does not spin up");
    let mut host = with(sata(false));
    host.read(&disk(0), Sample::Power(RuntimePower { suspended: true, ..RuntimePower::default() }));
    assert_eq!(why_not(&mut host).as_deref(), Some("it is suspended"));
    host.pass(3600);
    assert_eq!(why_not(&mut host).as_deref(), Some("its power status is not known"));
}

#[test]
fn an_unknown_power_status_is_waited_for() {
    let mut host = Host::new(0);
    host.tell(Event::DeviceAppeared(Box::new(sata(false))));
    assert_eq!(why_not(&mut host).as_deref(), Some("its power status is not known yet"));
}

#[test]
fn a_device_that_is_offline_or_not_live_is_left_alone() {
    let mut host = with(sata(false));
    let offline = QueueSettings { device_state: Some("offline".to_owned()), ..QueueSettings::default() };
    host.read(&disk(0), Sample::Queue(Box::new(offline)));
    assert_eq!(why_not(&mut host).as_deref(), Some("its state is offline"));
    let mut host = Host::new(1);
    host.read(&controller(0), Sample::ControllerState(ControllerState { state: "resetting".to_owned() }));
    assert_eq!(why_not(&mut host).as_deref(), Some("nvme0 is resetting, not live"));
    host.pass(600);
    host.read(&disk(0), Sample::Power(RuntimePower::default()));
    assert_eq!(why_not(&mut host).as_deref(), Some("the state of nvme0 is not known"));
}

#[test]
fn a_multipath_device_needs_one_usable_path_and_paths_are_never_probed() {
    let mut host = Host::new(2);
    let mut head = nvme_device(0);
    let path = |n: usize, ana: &str| NvmePath {
        name: format!("nvme0c{n}n1"),
        controller: controller_id(n),
        ana_state: Some(ana.to_owned()),
    };
    for (states, usable) in [
        (["inaccessible", "inaccessible"], false),
        (["inaccessible", "non-optimized"], true),
        (["optimized", "change"], true),
    ] {
        if let Some(nvme) = &mut head.nvme {
            nvme.controllers = vec![controller_id(0), controller_id(1)];
            nvme.paths = vec![path(0, states[0]), path(1, states[1])];
        }
        host.tell(Event::DeviceAppeared(Box::new(head.clone())));
        let plan = planned(&mut host);
        assert_eq!(plan.targets.iter().any(|target| target.id == head.id), usable, "{states:?}");
    }
    let hidden = Device { id: DeviceId("hidden".to_owned()), name: "nvme0c0n1".to_owned(), ..nvme_device(1) };
    host.tell(Event::DeviceAppeared(Box::new(hidden)));
    host.healthy();
    let plan = planned(&mut host);
    assert_eq!(plan.not_probed, [(DeviceId("hidden".to_owned()), "it is a path of a multipath device".to_owned())]);
}

#[test]
fn nothing_is_probed_when_probes_are_off() {
    let mut host = Host::new(3);
    host.view();
    let policy = ProbePolicy { off: Some("a captured host".to_owned()), ..ProbePolicy::default() };
    let plan = plan(&host.snapshot, &mut host.history, &policy, host.now);
    assert!(plan.targets.is_empty());
    assert_eq!(plan.not_probed.len(), 3);
    assert_eq!(host.view().devices[0].probe.not_planned.as_deref(), Some("a captured host"));
}

#[test]
fn an_outstanding_read_stays_in_the_plan_for_the_prober_to_take_up() {
    let mut host = Host::new(1);
    let mut stuck = report(5);
    stuck.outstanding_since = Some(host.now);
    host.read(&disk(0), Sample::Probe(Box::new(stuck)));
    assert_eq!(planned(&mut host).targets.len(), 1);
}

/// The interval after each step of five seconds in which the device did `foreign` I/O and our probes 16 reads.
fn run(host: &mut Host, total: &mut (u64, u64), steps: u64, foreign: u64) -> u64 {
    let mut interval = 0;
    for _ in 0..steps {
        host.pass(5);
        host.healthy();
        total.0 += foreign + 16;
        total.1 += 16;
        host.diskstats(total.0);
        host.read(&disk(0), Sample::Probe(Box::new(report(total.1))));
        interval = planned(host).targets[0].interval_ms;
    }
    interval
}

#[test]
fn an_idle_device_is_probed_ever_less_and_one_that_works_again_at_once_as_before() {
    let mut host = Host::new(1);
    let mut total = (0, 0);
    assert_eq!(run(&mut host, &mut total, 5, 100), 4000);
    assert_eq!(run(&mut host, &mut total, 11, 0), 4000, "not a minute yet");
    assert_eq!(run(&mut host, &mut total, 2, 0), 8000, "our own reads are no work");
    assert_eq!(run(&mut host, &mut total, 12, 0), 16_000);
    assert_eq!(run(&mut host, &mut total, 24, 0), 32_000);
    assert_eq!(run(&mut host, &mut total, 12 * 60 * 4, 0), 1_024_000);
    assert_eq!(run(&mut host, &mut total, 12 * 60 * 5, 0), 3_600_000, "an hour at most");
    assert_eq!(run(&mut host, &mut total, 1, 100), 4000);
}

#[test]
fn without_counters_nothing_is_called_idle() {
    let mut host = Host::new(1);
    for _ in 0..100 {
        host.pass(5);
        host.healthy();
        assert_eq!(planned(&mut host).targets[0].interval_ms, 4000);
    }
}

#[test]
fn the_burst_has_a_limit() {
    let mut host = Host::new(1);
    host.view();
    let policy = ProbePolicy { burst: 5000, interval: Duration::ZERO, ..ProbePolicy::default() };
    let plan = plan(&host.snapshot, &mut host.history, &policy, host.now);
    assert_eq!((plan.targets[0].burst, plan.targets[0].interval_ms), (64, 1000));
}
