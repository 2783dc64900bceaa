use super::*;
use storscope_model::identity::{ControllerId, DeviceId};
use storscope_model::sample::Source;

const MINUTE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> BootTime {
    BootTime::from_secs(seconds)
}

fn smart(name: &str) -> Job {
    Job::new(Subject::Controller(ControllerId(name.into())), Source::SmartHealth)
}

fn link(name: &str) -> Job {
    Job::new(Subject::Controller(ControllerId(name.into())), Source::PcieLink)
}

fn plan(schedule: &mut Schedule, job: &Job, period: Duration, now: BootTime) {
    schedule.plan(Plan { job: job.clone(), lane: Lane::of(job, None), period }, now);
}

/// Takes the job that is due at `now` and ends it at once.
fn turn(schedule: &mut Schedule, job: &Job, ending: Ending, now: BootTime) -> BootTime {
    assert_eq!(schedule.take_due(now).map(|(_, job)| job).as_ref(), Some(job));
    schedule.ended(job, ending, now, now);
    schedule.next_due().unwrap()
}

#[test]
fn what_is_new_is_due_at_once_and_then_once_a_period() {
    let mut schedule = Schedule::default();
    let job = smart("a");
    plan(&mut schedule, &job, MINUTE, at(100));
    let second = turn(&mut schedule, &job, Ending::Good, at(100));
    assert!(second > at(130) && second <= at(190), "{second:?}");
    assert_eq!(schedule.take_due(at(130)), None);
    let third = turn(&mut schedule, &job, Ending::Good, second);
    assert_eq!(third, second.plus(MINUTE));
}

#[test]
fn a_thousand_devices_spread_over_the_period() {
    let mut schedule = Schedule::default();
    let mut buckets = [0_u32; 12];
    for n in 0..1000 {
        let job = smart(&format!("MODEL_SERIAL{n:04}_1"));
        plan(&mut schedule, &job, MINUTE, at(0));
        let due = turn(&mut schedule, &job, Ending::Good, at(0));
        buckets[usize::try_from(due.0 / 5_000_000_000 % 12).unwrap()] += 1;
        schedule.retire(&job);
    }
    assert!(buckets.iter().all(|count| (40..=130).contains(count)), "{buckets:?}");
}

#[test]
fn host_wide_sources_share_one_wake_up() {
    let mut schedule = Schedule::default();
    let tick = Duration::from_secs(5);
    let mut dues = Vec::new();
    for source in [Source::Diskstats, Source::Pressure, Source::Cpu, Source::Agent] {
        let job = Job::host(source);
        plan(&mut schedule, &job, tick, at(7));
        dues.push(turn(&mut schedule, &job, Ending::Good, at(7)));
        schedule.retire(&job);
    }
    assert!(dues.iter().all(|due| *due == at(10)), "{dues:?}");
}

#[test]
fn failures_double_the_pause_up_to_the_cap_and_success_ends_that() {
    let mut schedule = Schedule::default();
    let job = smart("a");
    plan(&mut schedule, &job, MINUTE, at(0));
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let due = turn(&mut schedule, &job, Ending::Failed, now);
        pauses.push(due.since(now));
        now = due;
    }
    for (n, pause) in (0_u32..).zip(&pauses) {
        let full = (MINUTE * 2_u32.pow(n)).min(COMMAND_BACKOFF);
        assert!(*pause <= full && *pause >= full * 7 / 8, "{n}: {pause:?} of {full:?}");
    }
    let due = turn(&mut schedule, &job, Ending::Good, now);
    assert!(due.since(now) <= MINUTE * 3 / 2);
    let due2 = turn(&mut schedule, &job, Ending::Failed, due);
    assert!(due2.since(due) <= MINUTE);
}

#[test]
fn files_and_refused_opens_pause_ten_minutes_at_most() {
    for (job, ending) in [(link("a"), Ending::Failed), (smart("a"), Ending::Refused)] {
        let mut schedule = Schedule::default();
        plan(&mut schedule, &job, MINUTE, at(0));
        let mut now = at(0);
        let mut longest = Duration::ZERO;
        for _ in 0..30 {
            let due = turn(&mut schedule, &job, ending, now);
            longest = longest.max(due.since(now));
            now = due;
        }
        assert!(longest <= FILES_BACKOFF && longest > FILES_BACKOFF / 2, "{longest:?}");
    }
}

#[test]
fn devices_that_could_not_be_listed_are_looked_for_each_period() {
    for ending in [Ending::Failed, Ending::Refused] {
        let job = Job::host(Source::Discovery);
        let mut schedule = Schedule::default();
        plan(&mut schedule, &job, MINUTE, at(0));
        let mut now = at(0);
        for _ in 0..10 {
            let due = turn(&mut schedule, &job, ending, now);
            assert!(due.since(now) <= MINUTE);
            now = due;
        }
    }
}

#[test]
fn pauses_of_drives_that_fail_together_differ() {
    let pauses: BTreeSet<Duration> =
        (0..50).map(|n| backoff(&smart(&n.to_string()), MINUTE, 3, COMMAND_BACKOFF)).collect();
    assert!(pauses.len() > 40);
}

#[test]
fn a_refused_page_is_parked_until_it_is_planned_anew() {
    let mut schedule = Schedule::default();
    let job = smart("a");
    plan(&mut schedule, &job, MINUTE, at(0));
    schedule.take_due(at(0)).unwrap();
    schedule.ended(&job, Ending::Unsupported, at(0), at(0));
    assert_eq!(schedule.next_due(), None);
    schedule.hasten(&job, at(10));
    assert_eq!(schedule.next_due(), None);
    assert!(schedule.knows(&job));
    plan(&mut schedule, &job, MINUTE, at(20));
    assert_eq!(schedule.next_due(), Some(at(20)));
}

#[test]
fn absent_files_are_looked_at_again_later() {
    let mut schedule = Schedule::default();
    let job = link("a");
    plan(&mut schedule, &job, MINUTE, at(0));
    assert_eq!(turn(&mut schedule, &job, Ending::Unsupported, at(0)), at(0).plus(FILES_BACKOFF));
}

#[test]
fn a_storm_of_wishes_is_one_early_read() {
    let mut schedule = Schedule::default();
    let scan = Job::host(Source::Discovery);
    plan(&mut schedule, &scan, MINUTE, at(0));
    schedule.take_due(at(0)).unwrap();
    for _ in 0..100 {
        schedule.hasten(&scan, at(1));
    }
    assert_eq!(schedule.take_due(at(1)), None);
    schedule.ended(&scan, Ending::Good, at(0), at(2));
    let gap = Duration::from_secs(2) * HASTEN_SHARE;
    assert_eq!(schedule.next_due(), Some(at(2).plus(gap)));
    turn(&mut schedule, &scan, Ending::Good, at(10));
    schedule.hasten(&scan, at(10));
    assert_eq!(schedule.next_due(), Some(at(10).plus(HASTEN_GAP)));
    schedule.hasten(&scan, at(30));
    assert_eq!(schedule.next_due(), Some(at(10).plus(HASTEN_GAP)));
}

#[test]
fn a_new_period_takes_effect_and_what_left_is_forgotten() {
    let mut schedule = Schedule::default();
    let job = smart("a");
    plan(&mut schedule, &job, MINUTE * 60, at(0));
    turn(&mut schedule, &job, Ending::Good, at(0));
    plan(&mut schedule, &job, MINUTE, at(10));
    assert!(schedule.next_due().unwrap() <= at(10).plus(MINUTE * 3 / 2));
    plan(&mut schedule, &link("a"), MINUTE, at(10));
    let queue = Job::new(Subject::Device(DeviceId("d".into())), Source::Queue);
    plan(&mut schedule, &queue, MINUTE, at(10));
    schedule.remove(&job.subject);
    assert!(!schedule.knows(&job) && !schedule.knows(&link("a")));
    assert_eq!(schedule.take_due(at(99_999)).map(|(_, job)| job), Some(queue));
    assert_eq!(schedule.take_due(at(99_999)), None);
}

#[test]
fn a_schedule_of_one_round_empties() {
    let mut schedule = Schedule::once();
    let job = smart("a");
    plan(&mut schedule, &job, MINUTE, at(0));
    schedule.take_due(at(0)).unwrap();
    assert!(schedule.knows(&job));
    schedule.ended(&job, Ending::Failed, at(0), at(1));
    assert!(!schedule.knows(&job));
    assert_eq!(schedule.next_due(), None);
}

#[test]
fn the_ends_of_time_do_not_overflow() {
    let job = smart("a");
    assert!(next_slot(&job, MINUTE, BootTime(u64::MAX)) >= BootTime(u64::MAX - nanos(MINUTE)));
    assert!(backoff(&job, Duration::MAX, u32::MAX, Duration::MAX).as_secs() > 0);
    assert!(backoff(&job, Duration::ZERO, 1, Duration::ZERO) <= Duration::from_nanos(1));
}
