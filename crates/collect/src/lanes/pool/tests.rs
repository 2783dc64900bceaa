use super::super::Lane;
use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use storscope_model::identity::{ControllerId, DeviceId};
use storscope_model::sample::power::AtaPower;
use storscope_model::sample::{Sample, Source};

/// Only ends a test that would hang for ever; nothing is right because of it.
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> BootTime {
        BootTime(self.0.load(Ordering::SeqCst))
    }
}

struct ChannelSink(mpsc::Sender<Event>);

impl EventSink for ChannelSink {
    fn put(&self, event: Event) {
        let _ = self.0.send(event);
    }
}

type Gate = (mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);

/// Jobs with a gate do not return before it opens; `started` says that they are in.
struct Gated {
    gates: BTreeMap<Job, Gate>,
    started: Mutex<mpsc::Sender<Job>>,
    panics: Option<Source>,
}

impl Reader for Gated {
    fn read(&self, job: &Job) -> Done {
        if let Some((_, gate)) = self.gates.get(job) {
            self.started.lock().unwrap().send(job.clone()).unwrap();
            let _ = gate.lock().unwrap().recv();
        }
        assert!(self.panics != Some(job.source), "made to panic");
        Outcome::Value(Box::new(Sample::AtaPower(AtaPower { mode: 0xff }))).into()
    }
}

struct Bench {
    pool: Pool,
    clock: Arc<ManualClock>,
    events: mpsc::Receiver<Event>,
    started: mpsc::Receiver<Job>,
    reader: Arc<Gated>,
}

impl Bench {
    fn new(schedule: Schedule, gated: &[Job], panics: Option<Source>) -> Self {
        let (sink, events) = mpsc::channel();
        let (entered, started) = mpsc::channel();
        let clock = Arc::new(ManualClock(AtomicU64::new(BootTime::from_secs(1000).0)));
        let reader = Arc::new(Gated {
            gates: gated
                .iter()
                .map(|job| {
                    let (open, gate) = mpsc::channel();
                    (job.clone(), (open, Mutex::new(gate)))
                })
                .collect(),
            started: Mutex::new(entered),
            panics,
        });
        let pool = Pool::start(
            schedule,
            Arc::clone(&reader) as Arc<dyn Reader>,
            Arc::new(ChannelSink(sink)),
            Arc::clone(&clock) as Arc<dyn Clock>,
        )
        .unwrap();
        Self { pool, clock, events, started, reader }
    }

    fn plan(&self, jobs: &[Job], period: Duration) {
        let plans =
            jobs.iter().map(|job| Change::Plan(Plan { job: job.clone(), lane: Lane::of(job, None), period })).collect();
        self.pool.change(plans);
    }

    fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap();
        self.clock.0.fetch_add(by, Ordering::SeqCst);
        self.pool.wake();
    }

    fn open(&self, job: &Job) {
        self.reader.gates[job].0.send(()).unwrap();
    }

    fn next(&self) -> Event {
        self.events.recv_timeout(PATIENCE).unwrap()
    }
}

fn drive(n: u32, source: Source) -> Job {
    Job::new(Subject::Controller(ControllerId(format!("c{n}"))), source)
}

fn read_of(event: &Event) -> (Source, bool) {
    match event {
        Event::Read { source, outcome, .. } => (*source, matches!(outcome, Outcome::Value(_))),
        other => panic!("not a read: {other:?}"),
    }
}

#[test]
fn a_job_that_hangs_is_told_once_costs_its_lane_only_and_comes_back() {
    let hung = drive(1, Source::SmartHealth);
    let behind = drive(1, Source::ErrorLog);
    let beside = drive(1, Source::PcieLink);
    let bench = Bench::new(Schedule::default(), std::slice::from_ref(&hung), None);
    bench.plan(std::slice::from_ref(&hung), HOUR);
    assert_eq!(bench.started.recv_timeout(PATIENCE).unwrap(), hung);
    bench.plan(&[behind.clone(), beside, Job::host(Source::Diskstats)], HOUR);
    let mut others = [read_of(&bench.next()), read_of(&bench.next())];
    others.sort();
    assert_eq!(others, [(Source::Diskstats, true), (Source::PcieLink, true)]);

    bench.advance(Duration::from_secs(30));
    let since = BootTime::from_secs(1000);
    for source in [Source::SmartHealth, Source::ErrorLog] {
        let expected = Event::Stalled { subject: hung.subject.clone(), source, since };
        assert_eq!(bench.next(), expected);
    }
    bench.advance(Duration::from_secs(30));
    bench.open(&hung);
    // Next comes the late answer, not another stall; then what waited behind it.
    let late = bench.next();
    assert_eq!(read_of(&late), (Source::SmartHealth, true));
    assert!(matches!(late, Event::Read { began, ended, .. }
        if began == since && ended == BootTime::from_secs(1060)));
    assert_eq!(read_of(&bench.next()), (Source::ErrorLog, true));
}

#[test]
fn hung_drives_take_no_worker_from_the_others() {
    let many = u32::try_from(FREE_WORKERS * 3).unwrap();
    let hung: Vec<Job> = (0..many).map(|n| drive(n, Source::SmartHealth)).collect();
    let bench = Bench::new(Schedule::default(), &hung, None);
    bench.plan(&hung, HOUR);
    for n in 0..hung.len() {
        if n % FREE_WORKERS == 0 && n > 0 {
            bench.advance(Duration::from_secs(1));
        }
        bench.started.recv_timeout(PATIENCE).unwrap();
    }
    bench.advance(Duration::from_secs(1));
    bench.plan(&[Job::host(Source::Diskstats)], HOUR);
    assert_eq!(read_of(&bench.next()), (Source::Diskstats, true));
}

#[test]
fn the_result_of_a_subject_that_left_is_dropped() {
    let gone = Job::new(Subject::Device(DeviceId("d".into())), Source::Queue);
    let bench = Bench::new(Schedule::default(), std::slice::from_ref(&gone), None);
    bench.plan(std::slice::from_ref(&gone), HOUR);
    bench.started.recv_timeout(PATIENCE).unwrap();
    let vanished = Event::Vanished(gone.subject.clone());
    bench.pool.change(vec![Change::Remove(gone.subject.clone()), Change::Announce(vanished.clone())]);
    assert_eq!(bench.next(), vanished);
    // The lane is free again only when the old read returned.
    bench.plan(std::slice::from_ref(&gone), HOUR);
    bench.open(&gone);
    assert_eq!(bench.started.recv_timeout(PATIENCE).unwrap(), gone);
    bench.open(&gone);
    assert_eq!(read_of(&bench.next()), (Source::Queue, true));
    assert!(bench.events.try_recv().is_err());
}

#[test]
fn a_panic_is_a_failure_of_its_source() {
    let bench = Bench::new(Schedule::default(), &[], Some(Source::Stack));
    bench.plan(&[Job::host(Source::Stack)], HOUR);
    assert_eq!(read_of(&bench.next()), (Source::Stack, false));
    bench.plan(&[Job::host(Source::Cpu)], HOUR);
    assert_eq!(read_of(&bench.next()), (Source::Cpu, true));
}

#[test]
fn a_round_ends_without_what_hangs_and_tells_it() {
    let hung = drive(1, Source::SmartHealth);
    let behind = drive(1, Source::ErrorLog);
    let bench = Bench::new(Schedule::once(), std::slice::from_ref(&hung), None);
    bench.plan(std::slice::from_ref(&hung), HOUR);
    bench.started.recv_timeout(PATIENCE).unwrap();
    bench.plan(&[behind, Job::host(Source::Cpu)], HOUR);
    assert_eq!(read_of(&bench.next()), (Source::Cpu, true));
    bench.pool.finish_round(Duration::ZERO);
    let mut sources = Vec::new();
    while let Ok(Event::Stalled { source, .. }) = bench.events.try_recv() {
        sources.push(source);
    }
    assert_eq!(sources, [Source::SmartHealth, Source::ErrorLog]);
    bench.open(&hung);
    assert!(bench.events.recv_timeout(Duration::from_millis(1)).is_err());
}

#[test]
fn a_round_does_not_wait_for_what_is_past_its_deadline() {
    let hung = drive(1, Source::SmartHealth);
    let bench = Bench::new(Schedule::once(), std::slice::from_ref(&hung), None);
    bench.plan(std::slice::from_ref(&hung), HOUR);
    bench.started.recv_timeout(PATIENCE).unwrap();
    bench.advance(Duration::from_secs(30));
    bench.pool.finish_round(Duration::MAX);
    let stalls: Vec<Event> = bench.events.try_iter().collect();
    assert!(matches!(stalls.as_slice(), [Event::Stalled { source: Source::SmartHealth, .. }]), "{stalls:?}");
}

#[test]
fn stopping_does_not_wait_for_what_hangs() {
    let hung = drive(1, Source::SmartHealth);
    let bench = Bench::new(Schedule::default(), std::slice::from_ref(&hung), None);
    bench.plan(std::slice::from_ref(&hung), HOUR);
    bench.started.recv_timeout(PATIENCE).unwrap();
    bench.pool.stop();
    bench.plan(&[Job::host(Source::Cpu)], HOUR);
    bench.open(&hung);
    let Bench { pool, events, reader, .. } = bench;
    drop(reader);
    drop(pool);
    // The channel closes once the last thread let go of the sink; until then nothing may come.
    assert_eq!(events.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}
