use super::*;
use storscope_model::identity::{ControllerId, DeviceId, Subject};
use storscope_model::sample::Source;

const LIMIT: Duration = Duration::from_secs(5);

fn at(seconds: u64) -> BootTime {
    BootTime::from_secs(seconds)
}

fn controller(name: &str) -> Subject {
    Subject::Controller(ControllerId(name.into()))
}

fn device(name: &str) -> Subject {
    Subject::Device(DeviceId(name.into()))
}

fn offer(lanes: &mut Lanes, job: &Job, drive: Option<&Subject>) -> Lane {
    let lane = Lane::of(job, drive.cloned());
    lanes.offer(&lane, job.clone(), LIMIT);
    lane
}

#[test]
fn a_busy_lane_starts_nothing_and_others_go_on() {
    let mut lanes = Lanes::default();
    let smart = Job::new(controller("a"), Source::SmartHealth);
    let errors = Job::new(controller("a"), Source::ErrorLog);
    let link = Job::new(controller("a"), Source::PcieLink);
    let commands = offer(&mut lanes, &smart, None);
    offer(&mut lanes, &errors, None);
    offer(&mut lanes, &link, None);
    assert_eq!(lanes.start(at(1)).unwrap().job, smart);
    assert_eq!(lanes.start(at(1)).unwrap().job, link);
    assert_eq!(lanes.start(at(1)), None);
    let ended = lanes.finish(&commands).unwrap();
    assert_eq!((ended.job, ended.wanted), (smart, true));
    assert_eq!(lanes.start(at(2)).unwrap().job, errors);
}

#[test]
fn a_controller_serves_its_namespaces_one_command_at_a_time() {
    let mut lanes = Lanes::default();
    let drive = controller("a");
    for job in [Job::new(device("n1"), Source::Namespace), Job::new(device("n2"), Source::Namespace)] {
        offer(&mut lanes, &job, Some(&drive));
    }
    let first = lanes.start(at(1)).unwrap();
    assert_eq!(first.lane, Lane::Commands(drive));
    assert_eq!(lanes.start(at(1)), None);
    lanes.finish(&first.lane);
    assert_eq!(lanes.start(at(1)).unwrap().job.subject, device("n2"));
}

#[test]
fn a_job_waits_at_most_once() {
    let mut lanes = Lanes::default();
    let job = Job::host(Source::Diskstats);
    assert!(lanes.offer(&Lane::Host, job.clone(), LIMIT));
    assert!(!lanes.offer(&Lane::Host, job.clone(), LIMIT));
    let started = lanes.start(at(0)).unwrap();
    assert!(lanes.offer(&Lane::Host, job.clone(), LIMIT));
    assert!(!lanes.offer(&Lane::Host, job, LIMIT));
    assert_eq!(lanes.start(at(0)), None);
    lanes.finish(&started.lane);
    assert!(lanes.start(at(0)).is_some());
    lanes.finish(&Lane::Host);
    assert_eq!((lanes.ready(), lanes.start(at(0))), (0, None));
}

#[test]
fn a_stall_is_told_once_for_the_operation_and_once_for_each_that_waits() {
    let mut lanes = Lanes::default();
    let smart = Job::new(controller("a"), Source::SmartHealth);
    let errors = Job::new(controller("a"), Source::ErrorLog);
    let lane = offer(&mut lanes, &smart, None);
    lanes.start(at(10)).unwrap();
    assert!(lanes.newly_stalled(at(15)).is_empty());
    assert!(lanes.next_deadline().unwrap() > at(15));
    let stall = |job: &Job| Stall { job: job.clone(), since: at(10) };
    assert_eq!(lanes.newly_stalled(at(16)), [stall(&smart)]);
    assert!(lanes.newly_stalled(at(17)).is_empty());
    assert_eq!(lanes.next_deadline(), None);
    offer(&mut lanes, &errors, None);
    assert_eq!(lanes.newly_stalled(at(18)), [stall(&errors)]);
    assert!(lanes.newly_stalled(at(99)).is_empty());
    assert!(lanes.only_stalled() && lanes.unfinished(at(99)).is_empty());
    let slots = Job::new(controller("a"), Source::FirmwareSlots);
    offer(&mut lanes, &slots, None);
    assert!(!lanes.only_stalled());
    assert_eq!(lanes.unfinished(at(99)), [stall(&slots)]);
    assert!(lanes.finish(&lane).unwrap().wanted);
    assert_eq!(lanes.start(at(100)).unwrap().job, errors);
}

#[test]
fn a_subject_that_left_gives_no_result_and_keeps_its_lane_while_it_hangs() {
    let mut lanes = Lanes::default();
    let gone = device("d");
    let queue = Job::new(gone.clone(), Source::Queue);
    let lane = offer(&mut lanes, &queue, None);
    lanes.start(at(0)).unwrap();
    offer(&mut lanes, &Job::new(gone.clone(), Source::Power), None);
    lanes.withdraw(|job| job.subject == gone);
    assert!(lanes.newly_stalled(at(60)).is_empty());
    offer(&mut lanes, &queue, None);
    assert_eq!(lanes.start(at(61)), None);
    assert!(!lanes.finish(&lane).unwrap().wanted);
    assert_eq!(lanes.start(at(62)).unwrap().job, queue);
}

#[test]
fn withdrawn_jobs_that_wait_for_a_worker_never_start() {
    let mut lanes = Lanes::default();
    offer(&mut lanes, &Job::new(device("d"), Source::Queue), None);
    offer(&mut lanes, &Job::new(device("e"), Source::Queue), None);
    lanes.withdraw(|job| job.subject == device("d"));
    assert_eq!(lanes.ready(), 1);
    assert_eq!(lanes.start(at(0)).unwrap().job.subject, device("e"));
    assert_eq!(lanes.start(at(0)), None);
}

#[test]
fn hung_devices_leave_room_for_the_host() {
    let mut lanes = Lanes::default();
    for n in 0..MAX_RUNNING {
        offer(&mut lanes, &Job::new(device(&n.to_string()), Source::Queue), None);
    }
    let mut started = 0;
    while lanes.start(at(0)).is_some() {
        started += 1;
    }
    assert_eq!(started, MAX_RUNNING - HOST_RESERVE);
    assert_eq!(lanes.ready(), 0);
    assert_eq!(lanes.held(at(1)), started);
    offer(&mut lanes, &Job::host(Source::Diskstats), None);
    assert_eq!(lanes.ready(), 1);
    assert_eq!(lanes.start(at(1)).unwrap().lane, Lane::Host);
    assert_eq!(lanes.start(at(1)), None);
    lanes.finish(&Lane::Files(device("7")));
    assert!(lanes.start(at(2)).is_some());
}
