use super::*;
use crate::target::Pace;
use std::fs::File;
use std::path::Path;
use storscope_model::device::DevNum;
use storscope_model::sample::probe::ProbeOp;

const INTERVAL: Duration = Duration::from_secs(4);

struct Bench {
    dir: tempfile::TempDir,
    lane: Lane,
    now: Moment,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let rules =
            Rules { engine: Engine::Pread, limits: Limits::default(), deadline: DEADLINE, idle_after: IDLE_AFTER };
        let now = Moment { boot: BootTime::from_secs(1000), instant: Instant::now() };
        let lane = Lane::new(target(dir.path()), rules, Arc::new(Signal::default()), 1, now);
        let mut bench = Self { dir, lane, now };
        bench.load(100, 0);
        bench.pass(INTERVAL);
        bench
    }

    fn load(&self, completed: u64, in_flight: u64) {
        let line = format!("{completed} 0 0 0 0 0 0 0 {in_flight} 0 0");
        std::fs::write(self.dir.path().join("stat"), line).unwrap();
    }

    fn pass(&mut self, time: Duration) {
        self.now.instant += time;
        self.now.boot = self.now.boot.plus(time);
    }

    fn plan(&self) -> Box<Plan> {
        match self.lane.step(self.now) {
            Step::Open(plan) => plan,
            Step::Wait(_) | Step::Finish => panic!("a burst is due"),
        }
    }

    fn open(&self) -> Burst {
        let plan = self.plan();
        let stat = File::open(&plan.target.stat).unwrap();
        let load = Load::read(&stat).unwrap();
        let file = stat.try_clone().unwrap();
        let opened = Opened { file, stat, load, size: 1 << 30, block: 4096 };
        self.lane.opened(&plan, Ok(opened), self.now).unwrap()
    }

    /// One read of `took`, all of whose bytes are `byte`.
    fn read(&mut self, burst: &mut Burst, outcome: io::Result<usize>, byte: u8, took: Duration) {
        self.lane.next_read(burst, self.now).unwrap();
        self.pass(took);
        let mut buffer = AlignedBuffer::new(4096).unwrap();
        buffer.bytes_mut().fill(byte);
        self.lane.read_done(burst, &outcome, &buffer, took, self.now);
    }

    fn close(&self, burst: &Burst) -> ProbeReport {
        self.lane.closing(burst, self.now);
        self.lane.closed();
        self.lane.take_report().unwrap().report
    }
}

fn target(dir: &Path) -> Target {
    Target {
        key: 5,
        node: dir.join("node"),
        devnum: DevNum { major: 7, minor: 0 },
        stat: dir.join("stat"),
        queue: None,
        runtime_status: Vec::new(),
        logical_block_bytes: 512,
        pace: Pace { burst: 3, interval: INTERVAL },
    }
}

fn classes(report: &ProbeReport) -> Vec<(ProbeOp, bool, u64)> {
    report.classes.iter().map(|class| (class.op, class.busy, class.latencies.count())).collect()
}

const QUICK: Duration = Duration::from_micros(90);

#[test]
fn reads_are_classed_by_data_load_and_idleness() {
    let mut bench = Bench::new();
    let mut burst = bench.open();
    bench.read(&mut burst, Ok(4096), 0, QUICK);
    bench.read(&mut burst, Ok(4096), 0, QUICK);
    bench.load(102, 1);
    bench.read(&mut burst, Ok(4096), 1, QUICK);
    assert_eq!(bench.lane.next_read(&mut burst, bench.now), None, "three reads a burst");
    let report = bench.close(&burst);
    let expected = [(ProbeOp::Read, true, 1), (ProbeOp::ReadZeros, false, 1), (ProbeOp::ReadAfterIdle, false, 1)];
    assert_eq!(classes(&report), expected);
    assert_eq!(report.busy_ns, 270_000);
}

#[test]
fn a_first_read_is_after_idle_only_if_nothing_else_was_done() {
    let mut bench = Bench::new();
    let mut after_idle = |completed: u64, in_flight: u64| {
        bench.pass(INTERVAL * 2);
        bench.load(completed, in_flight);
        let burst = bench.open();
        let after_idle = burst.after_idle;
        bench.close(&burst);
        after_idle
    };
    assert!(after_idle(100, 0), "never read before");
    assert!(after_idle(101, 0), "the own last read, accounted late");
    assert!(!after_idle(103, 0), "others read");
    assert!(!after_idle(103, 2), "others are reading");
}

#[test]
fn the_first_error_ends_the_burst_and_is_no_latency() {
    let mut bench = Bench::new();
    let mut burst = bench.open();
    let error = io::Error::from_raw_os_error(Errno::ENODATA as i32);
    bench.read(&mut burst, Err(error), 0, QUICK);
    assert_eq!(bench.lane.next_read(&mut burst, bench.now), None);
    let failed_at = bench.now.boot;
    let report = bench.close(&burst);
    assert_eq!(report.errors, [(Errno::ENODATA as i32, 1)]);
    assert_eq!(report.last_error, Some((Errno::ENODATA as i32, failed_at)));
    assert_eq!(classes(&report), []);
    assert_eq!(report.busy_ns, 90_000);
    bench.pass(INTERVAL * 2);
    bench.plan();
}

#[test]
fn a_short_read_or_a_vanished_device_is_gone() {
    for outcome in [Ok(512), Err(io::Error::from_raw_os_error(Errno::ENODEV as i32))] {
        let mut bench = Bench::new();
        let mut burst = bench.open();
        bench.read(&mut burst, outcome, 1, QUICK);
        assert_eq!(bench.lane.next_read(&mut burst, bench.now), None);
        assert_eq!(bench.close(&burst).last_skip, Some(SkipReason::Gone));
    }
}

#[test]
fn an_unanswered_read_is_told_at_its_deadline_and_counted_when_it_comes() {
    let mut bench = Bench::new();
    let mut burst = bench.open();
    let since = bench.now.boot;
    bench.lane.next_read(&mut burst, bench.now).unwrap();
    bench.pass(DEADLINE - Duration::from_millis(1));
    bench.lane.watch(bench.now);
    assert!(bench.lane.take_report().is_none());
    bench.pass(Duration::from_millis(1));
    bench.lane.watch(bench.now);
    let told = bench.lane.take_report().unwrap().report;
    assert_eq!((told.outstanding_since, told.last_skip), (Some(since), Some(SkipReason::Outstanding)));
    bench.lane.watch(bench.now);
    assert!(bench.lane.take_report().is_none(), "told once an interval");
    bench.pass(INTERVAL);
    bench.lane.watch(bench.now);
    assert_eq!(bench.lane.take_report().unwrap().report.skipped, [(SkipReason::Outstanding, 2)]);

    let mut buffer = AlignedBuffer::new(4096).unwrap();
    buffer.bytes_mut().fill(1);
    let took = DEADLINE + INTERVAL;
    bench.lane.read_done(&mut burst, &Ok(4096), &buffer, took, bench.now);
    let free = bench.lane.take_report().unwrap().report;
    assert_eq!(free.outstanding_since, None);
    assert_eq!(free.classes[0].latencies.sum_ns(), 14_000_000_000);
}

#[test]
fn a_slow_device_exhausts_its_budget() {
    let mut bench = Bench::new();
    let mut burst = bench.open();
    bench.read(&mut burst, Ok(4096), 1, Duration::from_secs(1));
    assert_eq!(bench.lane.next_read(&mut burst, bench.now), None);
    bench.close(&burst);
    bench.pass(INTERVAL * 2);
    assert!(matches!(bench.lane.step(bench.now), Step::Wait(_)));
    let report = bench.lane.take_report().unwrap().report;
    assert_eq!(report.last_skip, Some(SkipReason::Budget));
}

#[test]
fn a_refused_burst_says_why_and_the_next_one_clears_it() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    let load = Load { completed: 1, in_flight: 128 };
    let refusal = Refusal::Skip(SkipReason::QueueFull, Some(load));
    assert!(bench.lane.opened(&plan, Err(refusal), bench.now).is_none());
    let report = bench.lane.take_report().unwrap().report;
    assert_eq!((report.last_skip, report.in_flight_before), (Some(SkipReason::QueueFull), Some(128)));
    bench.pass(INTERVAL * 2);
    let burst = bench.open();
    let report = bench.close(&burst);
    assert_eq!((report.last_skip, report.in_flight_before), (None, Some(0)));
    assert_eq!(report.skipped, [(SkipReason::QueueFull, 1)]);
}

#[test]
fn a_retired_lane_is_taken_back_until_it_has_finished() {
    let mut bench = Bench::new();
    let target = target(bench.dir.path());
    bench.lane.retire();
    assert!(bench.lane.retarget(&target, bench.now.instant));
    bench.plan();
    bench.lane.retire();
    bench.pass(INTERVAL);
    assert!(matches!(bench.lane.step(bench.now), Step::Finish));
    assert!(bench.lane.is_finished());
    assert!(!bench.lane.retarget(&target, bench.now.instant));
}

#[test]
fn a_shorter_interval_takes_effect_at_once() {
    let mut bench = Bench::new();
    let mut idle = target(bench.dir.path());
    idle.pace.interval = Duration::from_secs(300);
    assert!(bench.lane.retarget(&idle, bench.now.instant));
    let burst = bench.open();
    bench.close(&burst);
    bench.pass(INTERVAL);
    assert!(matches!(bench.lane.step(bench.now), Step::Wait(_)));
    assert!(bench.lane.retarget(&target(bench.dir.path()), bench.now.instant));
    bench.pass(INTERVAL);
    bench.plan();
}
