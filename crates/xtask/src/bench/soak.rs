//! Part g: a week of a host in a minute; what is kept must not grow.

use super::criterion::output;
use super::figure::Figure;
use anyhow::{Context, ensure};
use std::path::Path;

/// Most times what was allocated at the end of the second day, when every window is full.
const GROWTH: f64 = 1.15;

/// Runs the week.
///
/// # Errors
/// When it does not run.
#[allow(clippy::cast_precision_loss, reason = "bytes of a process fit")]
pub(super) fn measure(program: &Path) -> anyhow::Result<Vec<Figure>> {
    let text = output(program, &[])?;
    let column = |name: &str| -> anyhow::Result<Vec<u64>> {
        let value = |line: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != name).skip(1);
            words.next().and_then(|word| word.parse().ok())
        };
        text.lines().map(|line| value(line).with_context(|| format!("no {name} in {line}"))).collect()
    };
    let (allocated, state, drives) = (column("allocated")?, column("state")?, column("drives")?);
    ensure!(allocated.len() > 2, "no days in {text}");
    let after = &allocated[1..];
    let most = after.iter().copied().max().unwrap_or_default() as f64;
    let spell = |all: &[u64]| all.iter().map(|bytes| (bytes / 1000).to_string()).collect::<Vec<_>>().join(", ");
    Ok(vec![
        Figure::stated("drives that were there in a week", drives.last().copied().unwrap_or_default().to_string()),
        Figure::stated("kB allocated at the end of each day", spell(&allocated)),
        Figure::stated("kB of state at the end of each day", spell(&state)),
        Figure::at_most("most after the first day / end of the second day", most / after[0] as f64, GROWTH, ""),
    ])
}
