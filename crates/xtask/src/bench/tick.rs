//! Part c: one tick of the analysis: counters taken in, rates, windows, findings, view and plan.

use super::criterion::{run, time};
use super::figure::Figure;
use std::path::Path;

/// Devices and most milliseconds.
const GOALS: [(u16, f64); 2] = [(24, 1.0), (1000, 20.0)];

/// Runs the benchmarks of the tick and of reading the counters; their wall time on one thread is at least their CPU
/// time.
///
/// # Errors
/// When a benchmark does not run.
pub(super) fn measure(diskstats: &Path, tick: &Path) -> anyhow::Result<Vec<Figure>> {
    let reads = run(diskstats)?;
    let ticks = run(tick)?;
    let mut figures = Vec::new();
    for (devices, limit) in GOALS {
        let read = time(&reads, &format!("/read/{devices}"))? / 1e6;
        let tick = time(&ticks, &format!("tick/{devices}"))? / 1e6;
        let reported = time(&ticks, &format!("tick with a report of every device/{devices}"))? / 1e6;
        figures.push(Figure::stated(format!("read and parse diskstats, {devices} devices"), format!("{read:.3} ms")));
        figures.push(Figure::at_most(format!("one tick, {devices} devices"), read + tick, limit, "ms"));
        let what = format!("one tick with a probe report of each, {devices} devices");
        figures.push(Figure::stated(what, format!("{:.2} ms", read + reported)));
    }
    Ok(figures)
}
