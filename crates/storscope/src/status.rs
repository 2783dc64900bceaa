//! `storscope status`: of a running agent, of a captured host, or of this host without an agent.

use crate::cli::StatusArgs;
use crate::config::Config;
use crate::core::Core;
use crate::output::print;
use crate::prober::Adapter;
use crate::{fetch, narrow, settings};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use storscope_collect::clock;
use storscope_collect::collector::collect_once;
use storscope_collect::root::Root;
use storscope_export::{json, text};
use storscope_model::codec;
use storscope_model::event::Event;
use storscope_model::finding::Verdict;
use storscope_model::history::History;
use storscope_model::identity::Subject;
use storscope_model::limits::Limits;
use storscope_model::outbox::Outbox;
use storscope_model::request::Request;
use storscope_model::view::View;

/// Time between the two samples of the counters.
const INTERVAL: Duration = Duration::from_secs(2);

/// When an outstanding read is called stalled.
const DEADLINE: Duration = Duration::from_secs(3);

/// Longest wait for a burst of probes of every device, or to hear that it is outstanding.
const PROBES: Duration = Duration::from_secs(8);

/// Prints the status.
///
/// # Errors
/// When there is no such agent, device or captured host.
pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    match &args.url {
        Some(url) => of_agent(url, args),
        None => of_host(args),
    }
}

fn of_agent(url: &str, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let device = args.device.as_ref().map(|name| format!("device={}", name.replace('/', "%2F")));
    let all = args.all.then(|| "all".to_owned());
    let query = [device, all].into_iter().flatten().collect::<Vec<_>>().join("&");
    let query = if query.is_empty() { query } else { format!("?{query}") };
    let json = fetch::get(url, &format!("/status.json{query}"))?;
    let verdict = verdict_in(&json).with_context(|| url.to_owned())?;
    let printed = if args.json { json } else { fetch::get(url, &format!("/status{query}"))? };
    print(&printed)?;
    Ok(ExitCode::from(verdict.exit_status()))
}

fn verdict_in(json: &str) -> anyhow::Result<Verdict> {
    let value: serde_json::Value = serde_json::from_str(json).context("the answer is not JSON")?;
    let verdict = value.get("verdict").context("the answer has no verdict; is this a storscope?")?;
    serde_json::from_value(verdict.clone()).context("the answer has an unknown verdict")
}

fn of_host(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let mut config = Config { devices: args.select.devices(), ..Config::default() };
    // What hangs must show within this one look: a burst begins within a second, not at a random time of the usual period.
    config.probe.deadline = DEADLINE;
    config.probe.reads_per_second = config.probe.burst;
    let root = args.select.checked_host()?;
    let view = look(&root, &config)?;
    if let Some(name) = args.device.as_ref().filter(|name| !narrow::knows(&view, name)) {
        bail!("no device {name} is watched here; --include adds one that is left out by default");
    }
    if args.json {
        let narrowed = args.device.as_ref().map(|name| narrow::to_device(&view, name));
        let rendered = json::render_pretty(narrowed.as_ref().unwrap_or(&view))?;
        print(&rendered)?;
    } else {
        let options = text::Options {
            colour: std::io::stdout().is_terminal(),
            device: args.device.clone(),
            all: args.all,
            ..text::Options::default()
        };
        print(&text::render(&view, &options))?;
    }
    Ok(ExitCode::from(view.verdict.exit_status()))
}

/// Samples `root` twice, probes once, and works out the view.
fn look(root: &Root, config: &Config) -> anyhow::Result<Arc<View>> {
    let settings = settings::collector(config, &[], Arc::default())?;
    let mut status = settings::agent(config, root.live, clock::now());
    let reports = Arc::new(Mutex::new(Outbox::default()));
    let prober = match status.probes_off {
        None => Some(Adapter::start(root.clone(), config, Arc::clone(&reports) as _)?),
        Some(_) => None,
    };
    status.engine = prober.as_ref().map(Adapter::engine);
    // There is no next time for what fails once.
    let limits = Limits { failures: 1, no_answer: (Duration::ZERO, Duration::ZERO), ..settings::limits(config) };
    let boot_id = clock::boot_id(root);
    let probes = settings::probes(config, root.live);
    let mut core = Core::new(limits, probes, status, History::default());
    let turn = |core: &mut Core, events: Vec<Event>| {
        for event in events {
            // Through the codec, as an agent's events go.
            let carried = codec::encode(&event).and_then(|frame| codec::decode(&frame[codec::HEADER..]));
            match carried {
                Ok(event) => core.apply(event, clock::now()),
                Err(error) => core.refuse(&error),
            }
        }
        core.turn(clock::now(), clock::sync(boot_id.clone()))
    };
    let first = turn(&mut core, collect_once(root.clone(), settings.clone())?);
    let Some(prober) = prober else { return Ok(turn(&mut core, Vec::new()).view) };
    let mut waiting = BTreeSet::new();
    if let Some(Request::ProbeTargets(targets)) = first.request {
        waiting = targets.iter().map(|target| Subject::Device(target.id.clone())).collect();
        prober.request(Request::ProbeTargets(targets));
    }
    let until = Instant::now() + PROBES;
    std::thread::sleep(INTERVAL);
    let mut events = collect_once(root.clone(), settings.clone())?;
    loop {
        let new: Vec<Event> = {
            let mut outbox = reports.lock().unwrap_or_else(PoisonError::into_inner);
            std::iter::from_fn(|| outbox.take()).collect()
        };
        for event in &new {
            if let Some(subject) = event.slot().subject() {
                waiting.remove(subject);
            }
        }
        events.extend(new);
        if waiting.is_empty() || Instant::now() > until {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(turn(&mut core, events).view)
}
