//! Part f: the latency of a probe against fio's on the same loop device, one read at a time, in alternating pairs.

use super::figure::{Figure, median};
use super::loops::{self, Loops};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most times fio's.
const LIMIT: f64 = 1.15;
/// Size of the device.
const BYTES: usize = 64 << 20;
/// Reads a run.
const READS: u32 = 20_000;
/// Longest run, in seconds.
const SECONDS: &str = "60";

/// Reads a loop device in memory, which leaves nothing but software, and one on disk.
///
/// # Errors
/// When a run fails.
pub(super) fn measure(probe: &Path, pairs: u16) -> anyhow::Result<Vec<Figure>> {
    if let Some(why) = loops::missing().or_else(|| loops::lacks("fio", "--version")) {
        return Ok(vec![Figure::not_run(why)]);
    }
    let mut figures = compared("over a file on disk", &Loops::on_disk(BYTES)?, probe, pairs)?;
    figures.extend(compared(
        "over a file in memory",
        &Loops::in_memory(1, BYTES, loops::Content::Written)?,
        probe,
        pairs,
    )?);
    Ok(figures)
}

fn compared(what: &str, device: &Loops, probe: &Path, pairs: u16) -> anyhow::Result<Vec<Figure>> {
    let (Some(node), Some(stat)) = (device.nodes().pop(), device.first_stat()) else { bail!("no loop device") };
    let (mut ours, mut fios, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (our, fio) = if pair % 2 == 0 {
            let our = probe_p50(probe, &node, &stat)?;
            (our, fio_p50(&node)?)
        } else {
            let fio = fio_p50(&node)?;
            (probe_p50(probe, &node, &stat)?, fio)
        };
        ours.push(our);
        fios.push(fio);
        ratios.push(our / fio);
    }
    let middle = |values| median(values).context("no pair was measured");
    let (our, fio) = (middle(ours)? / 1e3, middle(fios)? / 1e3);
    Ok(vec![
        Figure::stated(format!("p50 {what}: probe / fio"), format!("{our:.2} / {fio:.2} us")),
        Figure::at_most(format!("p50 {what}: median ratio of {pairs} pairs"), middle(ratios)?, LIMIT, ""),
    ])
}

fn probe_p50(program: &Path, node: &Path, stat: &Path) -> anyhow::Result<f64> {
    let mut command = bounded(program);
    let text = output(command.arg(node).arg(stat).args([&READS.to_string(), "io_uring"]))?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "p50_ns").skip(1);
    let p50 = words.next().with_context(|| format!("the probe printed {text}"))?;
    if text.contains("errors") {
        bail!("the probe printed {text}");
    }
    Ok(p50.parse()?)
}

fn fio_p50(node: &Path) -> anyhow::Result<f64> {
    let mut command = bounded(&PathBuf::from("fio"));
    command.args(["--name=probe", "--readonly", "--direct=1", "--rw=randread", "--bs=4k", "--iodepth=1"]);
    command.args(["--ioengine=io_uring", "--lat_percentiles=1", "--clat_percentiles=0", "--output-format=json"]);
    command.args(["--norandommap", &format!("--io_size={}", READS * 4096)]);
    command.arg(format!("--filename={}", node.display()));
    let json: serde_json::Value = serde_json::from_str(&output(&mut command)?)?;
    let p50 = json.pointer("/jobs/0/read/lat_ns/percentile/50.000000").and_then(serde_json::Value::as_f64);
    p50.context("fio gave no p50")
}

fn bounded(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", SECONDS]).arg(program);
    command
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let done = command.output()?;
    if !done.status.success() {
        bail!("{command:?} ended with {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8(done.stdout)?)
}
