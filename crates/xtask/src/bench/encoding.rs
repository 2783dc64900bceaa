//! Part a: the exposition of 1,000 devices against a hand-written writer of the same samples.

use super::allocation;
use super::criterion::{run, time};
use super::figure::Figure;
use std::path::Path;

/// Most times slower than a hand-written writer.
const LIMIT: f64 = 4.0;

/// Runs the benchmark, then looks at what scrapes allocate.
///
/// # Errors
/// When a benchmark does not run.
pub(super) fn measure(encode: &Path, allocation: &Path) -> anyhow::Result<Vec<Figure>> {
    let times = run(encode)?;
    let by_hand = time(&times, "/by hand")?;
    let mut figures = vec![Figure::stated("hand-written writer", format!("{:.2} ms", by_hand / 1e6))];
    for (name, end) in [("text 0.0.4", "/text 0.0.4"), ("OpenMetrics 1.0", "/openmetrics")] {
        let taken = time(&times, end)?;
        figures.push(Figure::stated(name, format!("{:.2} ms", taken / 1e6)));
        figures.push(Figure::at_most(format!("{name} / hand-written"), taken / by_hand, LIMIT, ""));
    }
    figures.extend(allocation::measure(allocation)?);
    Ok(figures)
}
