//! `cargo xtask bench`: the figures that the agent is held to, measured in one run, as ratios where there is a peer.
//!
//! A part that lacks what it needs says so and counts as not run, never as passed.

mod allocation;
mod criterion;
mod encoding;
mod exporter;
mod figure;
mod host_load;
mod http;
mod latency;
mod loops;
mod programs;
mod scrape;
mod share;
mod soak;
mod thousand;
mod tick;
mod trickle;
mod usage;

use anyhow::bail;
use clap::{Args, ValueEnum};
use figure::{Figure, Verdict};
use programs::Bench;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Parts to run; all of them when none is named.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Seconds over which the share of a core is measured, without probes and with.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(5..=3600))]
    seconds: u16,
    /// Ticks after which resident memory is judged: 720 are an hour at the default period.
    #[arg(long, default_value_t = 720, value_parser = clap::value_parser!(u16).range(10..=7200))]
    ticks: u16,
    /// Pairs of runs in comparisons with a peer.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(3..=100))]
    pairs: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Encoding 1,000 devices against a hand-written writer.
    A,
    /// A scrape over loopback against node_exporter.
    B,
    /// One tick at 24 and at 1,000 devices.
    C,
    /// Share of a core, cost of a probe read, memory.
    D,
    /// Alive with 1,000 loop devices.
    E,
    /// Latency of a probe against fio's.
    F,
    /// A week of ticks, hot-plug and faults.
    G,
}

impl Part {
    fn title(self) -> &'static str {
        match self {
            Self::A => "a  encoding, 1,000 devices",
            Self::B => "b  scrape over loopback, 24 devices",
            Self::C => "c  one tick",
            Self::D => "d  running agent, 24 devices",
            Self::E => "e  running agent, 1,000 devices",
            Self::F => "f  probe against fio, one read at a time",
            Self::G => "g  a week in a minute",
        }
    }

    /// The programs that it runs.
    fn build(self) -> anyhow::Result<Vec<PathBuf>> {
        let benches: &[Bench] = match self {
            Self::A => &[("storscope-export", "encode"), ("storscope-export", "allocation")],
            Self::C => &[("storscope-collect", "diskstats"), ("storscope-model", "tick")],
            Self::G => &[("storscope-export", "soak")],
            Self::B | Self::D | Self::E => return Ok(vec![programs::agent()?]),
            Self::F => return Ok(vec![programs::probe()?]),
        };
        benches.iter().map(|bench| programs::bench(*bench)).collect()
    }

    fn measure(self, programs: &[PathBuf], args: &BenchArgs) -> anyhow::Result<Vec<Figure>> {
        match (self, programs) {
            (Self::A, [encode, allocation]) => encoding::measure(encode, allocation),
            (Self::B, [agent]) => scrape::measure(agent),
            (Self::C, [diskstats, tick]) => tick::measure(diskstats, tick),
            (Self::D, [agent]) => share::measure(agent, Duration::from_secs(args.seconds.into()), args.ticks),
            (Self::E, [agent]) => thousand::measure(agent),
            (Self::F, [probe]) => latency::measure(probe, args.pairs),
            (Self::G, [soak]) => soak::measure(soak),
            (part, programs) => bail!("{part:?} cannot be measured with {programs:?}"),
        }
    }
}

/// Measures, prints the table.
///
/// # Errors
/// When a figure misses its goal or a part failed.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    eprintln!("==> building");
    let built = parts.iter().map(|part| Ok((*part, part.build()?))).collect::<anyhow::Result<Vec<_>>>()?;
    let before = host_load::read();
    let begun = Instant::now();
    let mut table = Vec::new();
    for (part, programs) in built {
        eprintln!("==> {}", part.title());
        let figures = part.measure(&programs, args).unwrap_or_else(|error| vec![Figure::failed(&error)]);
        table.push((part.title(), figures));
    }
    println!("{}", host_load::describe(&before, &host_load::read(), begun.elapsed()));
    print!("{}", figure::table(&table));
    let count = |verdict| table.iter().flat_map(|(_, figures)| figures).filter(|one| one.verdict == verdict).count();
    let (met, missed) = (count(Verdict::Met), count(Verdict::Missed));
    let (failed, not_run) = (count(Verdict::Failed), count(Verdict::NotRun));
    let summary = format!("{met} met, {missed} missed, {not_run} not run, {failed} failed");
    if missed + failed > 0 {
        bail!("{summary}");
    }
    println!("{summary}");
    Ok(())
}
