//! `/status` as a person sees it.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod fixture;

use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use storscope_export::text::{MAX_ROWS, Options, WIDTH, render};
use storscope_model::finding::{Finding, Severity, Verdict};
use storscope_model::history::windows::samples_needed;
use storscope_model::identity::{DeviceId, Subject};
use storscope_model::sample::Sample;
use storscope_model::sample::probe::{ProbeOp, SkipReason};
use storscope_model::sample::queue::QueueSettings;
use storscope_model::view::{DeviceView, ProbeWindow, View};
use storscope_model::wall_clock::ClockStep;

fn page(view: &View) -> String {
    render(view, &Options::default())
}

fn assert_fits(page: &str) {
    for line in page.lines() {
        assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn the_page_is_as_it_was() {
    let page = page(&fixture::full());
    assert_fits(&page);
    fixture::golden("tests/golden/status.txt", &page);
}

#[test]
fn the_page_of_one_device_has_its_sources() {
    let options = Options { device: Some("nvme3n1".to_owned()), ..Options::default() };
    let page = render(&fixture::full(), &options);
    assert_fits(&page);
    fixture::golden("tests/golden/status-device.txt", &page);
    assert!(!page.contains("nvme2n1"));
    assert!(page.contains("smart_health"));
}

#[test]
fn what_the_analysis_gives_fits() {
    let view = fixture::analysed();
    let page = page(&view);
    assert_fits(&page);
    assert!(page.starts_with("db-17  CRITICAL  "), "{page}");
    for finding in &view.findings {
        let name = finding.device.as_ref().or(finding.controller.as_ref());
        assert!(name.is_none_or(|name| page.contains(name.as_str())), "{finding:?}");
    }
}

#[test]
fn a_controller_without_a_block_device_has_a_row() {
    let mut view = fixture::full();
    view.devices.retain(|device| device.state.device.name != "nvme0n1");
    view.controllers.truncate(1);
    view.controllers[0].devices.clear();
    let page = page(&view);
    assert_fits(&page);
    let row = page.lines().find(|line| line.starts_with("nvme0 ")).expect("a row");
    assert!(row.contains("43C") && row.contains("7%") && row.contains("x4 16.0"), "{row}");
    assert!(
        page.contains("nvme0    no block device; MADEUP 3840, S/N SN-nvme0n1, fw FW1, 3.84 TB, NVMe 1.4.0"),
        "{page}"
    );
}

#[test]
fn a_controller_names_its_devices() {
    let page = render(&fixture::full(), &Options { device: Some("nvme5".to_owned()), ..Options::default() });
    assert!(page.lines().any(|line| line.starts_with("nvme4n1 ")), "{page}");
}

#[test]
fn a_time_too_short_for_the_counters_is_not_shown_as_none() {
    let mut view = fixture::full();
    let none = storscope_model::view::IoRates {
        reads_per_second: 0.4,
        read_await_seconds: Some(0.0),
        write_await_seconds: Some(0.0),
        read_await_resolution_seconds: Some(0.001 / 2.0),
        write_await_resolution_seconds: Some(0.001),
        queue: 0.0,
        utilisation: 0.0,
        ..fixture::rates(1.0)
    };
    view.devices[0].rates = Some(none);
    let page = page(&view);
    assert_fits(&page);
    let row = page.lines().find(|line| line.starts_with("nvme0n1 ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[5..9], ["<0.5ms", "<1ms", "<0.1", "<1%"], "{row}");
    let json: serde_json::Value =
        serde_json::from_str(&storscope_export::json::render(&view).expect("json")).expect("json");
    let rates = &json["devices"][0]["rates"];
    assert_eq!(
        (rates["read_await_seconds"].as_f64(), rates["read_await_resolution_seconds"].as_f64()),
        (Some(0.0), Some(0.0005))
    );
}

#[test]
fn a_clock_that_was_set_is_told_for_a_day() {
    let mut view = fixture::full();
    let mut told = |by_ns: i128, seconds: u64| {
        view.clock_step = Some(ClockStep { by_ns, seen: fixture::ago(seconds) });
        let page = page(&view);
        assert_fits(&page);
        page.lines().find_map(|line| line.strip_prefix("clock     ").map(str::to_owned))
    };
    let forward = told(7_200_000_000_000, 300).expect("a line");
    assert!(forward.starts_with("set 2 h forward 5 min ago: "), "{forward}");
    assert!(told(-90_000_000_000, 40).expect("a line").starts_with("set 90 s back 40 s ago: "));
    assert_eq!(told(7_200_000_000_000, 86_400), None);
}

#[test]
fn an_unknown_device_is_named() {
    let options = Options { device: Some("nope".to_owned()), ..Options::default() };
    assert!(render(&fixture::full(), &options).contains("no drive of the name nope is watched"));
}

#[test]
fn where_nothing_can_be_probed_the_page_says_how_to_try() {
    let mut view = fixture::full();
    view.findings.clear();
    view.closed.clear();
    view.verdict = Verdict::Ok;
    view.headline = "1 drive, nothing wrong".to_owned();
    view.devices.retain(|device| device.state.device.name == "nvme4n1");
    view.controllers.clear();
    let device = &mut view.devices[0];
    device.state.device = Arc::new(storscope_model::device::Device {
        name: "vda".to_owned(),
        ..fixture::device("vda", storscope_model::device::Transport::Virtio)
    });
    device.controllers.clear();
    device.probe =
        storscope_model::view::ProbeView { recent_skips: vec![(SkipReason::Denied, 75)], ..fixture::no_probe(None) };
    let page = page(&view);
    assert_fits(&page);
    fixture::golden("tests/golden/status-unprobed.txt", &page);
    assert!(page.contains("storscope serve --include 'loop[0-9]+'"));
}

#[test]
fn the_trial_is_offered_only_where_nothing_is_wrong() {
    let mut view = fixture::empty();
    view.agent = Arc::new(storscope_model::view::AgentStatus {
        probes_off: Some("off by configuration".to_owned()),
        ..(*view.agent).clone()
    });
    assert!(page(&view).contains("try a loop device"));
    view.findings = vec![fixture::finding("made_up", Severity::Info, "nvme900n1", None, 60, "made up")];
    assert!(page(&view).contains("try a loop device"));
    view.findings = vec![fixture::finding("made_up", Severity::Warning, "nvme900n1", None, 60, "made up")];
    assert!(!page(&view).contains("try a loop device"));
}

#[test]
fn latencies_of_a_device_that_only_fails_are_not_shown_as_current() {
    let mut view = fixture::full();
    let row = |page: &str| page.lines().find(|line| line.starts_with("nvme0n1 ")).expect("a row").to_owned();
    assert!(row(&page(&view)).contains(" 92us "));
    view.devices.iter_mut().filter(|device| device.state.device.name == "nvme0n1").for_each(|device| {
        device.probe.only_fails = true;
    });
    let row = row(&page(&view));
    assert!(!row.contains("92us") && !row.contains("310us"), "{row}");
}

#[test]
fn accounting_that_is_off_is_said_once() {
    let mut snapshot = fixture::snapshot();
    for name in ["nvme0n1", "nvme1n1"] {
        let settings = QueueSettings { iostats: Some(false), ..QueueSettings::default() };
        fixture::tell(&mut snapshot, &fixture::device_subject(name), Sample::Queue(Box::new(settings)));
    }
    let page = page(&fixture::view_of(&snapshot));
    assert_fits(&page);
    assert_eq!(page.matches("I/O accounting is off (queue/iostats is 0): no rates; echo 1 >").count(), 1, "{page}");
    assert!(page.lines().any(|line| line.starts_with("nvme0n1, nvme1n1  I/O accounting is off")), "{page}");
}

#[test]
fn a_utilisation_that_means_nothing_is_marked_and_the_reason_said_once() {
    let mut view = fixture::full();
    assert!(!page(&view).contains("unreliable"));
    for device in view.devices.iter_mut().filter(|device| ["nvme0n1", "nvme3n1"].contains(&&*device.state.device.name))
    {
        device.io_time_reliable = false;
    }
    let page = page(&view);
    assert_fits(&page);
    let row = |name: &str| page.lines().find(|line| line.starts_with(&format!("{name} "))).expect("a row").to_owned();
    assert!(row("nvme0n1").contains(" 22%? ") && row("nvme3n1").contains(" 100%? "), "{page}");
    assert!(row("nvme1n1").contains(" 22% "), "{page}");
    assert_eq!(page.matches("util? is unreliable: kernel 6.18.0 with scheduler none").count(), 1, "{page}");
    assert!(page.lines().any(|line| line.starts_with("nvme0n1, nvme3n1  util? is unreliable")), "{page}");
}

#[test]
fn a_finding_of_the_host_shows_on_the_page_of_a_device_that_it_names() {
    let mut view = fixture::full();
    let host = |title: &str| Finding {
        subject: Subject::Host,
        device: None,
        evidence: vec!["smart_health: denied on nvme3; needs CAP_SYS_ADMIN".to_owned()],
        ..fixture::finding("source_denied", Severity::Warning, "", None, 60, title)
    };
    view.findings = vec![host("SMART is denied on nvme3")];
    let of = |name: &str| render(&view, &Options { device: Some(name.to_owned()), ..Options::default() });
    assert!(of("nvme3n1").contains("SMART is denied"), "by the name of its controller");
    assert!(!of("nvme2n1").contains("SMART is denied"));
    assert!(!of("nvme").contains("SMART is denied"), "a part of a word is no name");
    assert!(page(&view).contains("SMART is denied"));
}

#[test]
fn a_drive_that_is_gone_lends_its_name_to_no_other() {
    let mut view = fixture::full();
    view.findings = vec![Finding {
        subject: Subject::Device(DeviceId("gone".to_owned())),
        evidence: vec!["OLD MODEL, S/N OLD, nvme-pcie".to_owned()],
        ..fixture::finding("device_gone", Severity::Warning, "nvme0n1", None, 60, "drive is gone")
    }];
    let page = page(&view);
    assert!(page.contains("nvme0n1  drive is gone") && page.contains("S/N OLD"), "{page}");
    assert!(!page.contains("S/N SN-nvme0n1"), "{page}");
}

#[test]
fn an_empty_host_is_no_healthy_host() {
    let page = page(&fixture::empty());
    assert_fits(&page);
    assert!(page.starts_with("this host  UNKNOWN  no drive is watched  "));
    assert!(page.contains("nothing was read yet"));
}

fn many(count: usize) -> View {
    let mut view = fixture::full();
    view.findings.clear();
    let template = view.devices[0].clone();
    view.devices = (0..count)
        .map(|number| {
            let mut device = (*template.state.device).clone();
            device.name = format!("nvme{number:03}n1");
            let mut view: DeviceView = template.clone();
            view.state.device = Arc::new(device);
            view
        })
        .collect();
    view.findings = vec![fixture::finding("made_up", Severity::Warning, "nvme900n1", None, 60, "made up")];
    view
}

#[test]
fn rows_are_bounded_and_the_sick_are_among_them() {
    let rows = |page: &str| page.lines().filter(|line| line.starts_with("nvme") && line.contains("22%")).count();
    let view = many(1000);
    let short = page(&view);
    assert_fits(&short);
    assert_eq!(rows(&short), MAX_ROWS);
    assert!(short.lines().any(|line| line.starts_with("nvme900n1")));
    assert!(short.contains("and 936 drives more"));
    assert_eq!(rows(&render(&view, &Options { all: true, ..Options::default() })), 1000);
    assert_eq!(rows(&page(&many(24))), 24);
}

/// Windows of an hour whose quantiles are told as the analysis tells them, one after the other for data and zeros.
fn probed(data: u64, zeros: u64) -> View {
    let window = |op: ProbeOp, count: u64, seconds: f64| ProbeWindow {
        op,
        window: Duration::from_secs(3600),
        count,
        busy_share: 0.0,
        quantiles: [0.5, 0.95, 0.99, 0.999].map(|q| (q, (count >= samples_needed(q)).then_some(seconds))),
    };
    let mut view = fixture::full();
    view.devices.retain(|device| device.state.device.name == "nvme4n1");
    let windows = [window(ProbeOp::Read, data, 0.000_3), window(ProbeOp::ReadZeros, zeros, 0.000_1)];
    view.devices[0].probe.windows = windows.into_iter().filter(|window| window.count > 0).collect();
    view
}

#[test]
fn quantiles_are_of_the_reads_that_are_enough_for_them() {
    let row = |data: u64, zeros: u64| {
        let page = page(&probed(data, zeros));
        let row = page.lines().find(|line| line.starts_with("nvme4n1 ")).expect("a row").to_owned();
        let learning = page.lines().find(|line| line.starts_with("learning")).map(ToOwned::to_owned);
        let times = |text: &str| row.matches(text).count();
        let cells = match (times("300us"), times("100us z"), times("100us")) {
            (0, 0, 0) => "none",
            (1, 0, 0) => "p50 of data",
            (2, 0, 0) => "data",
            (0, 1, 1) => "p50 of zeros",
            (0, 2, 2) => "zeros",
            _ => "mixed",
        };
        let unwrapped = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(unwrapped.contains("; z: only zeros were read"), cells.ends_with("zeros"), "{page}");
        (cells, learning.map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned()))
    };
    let learnt = |reads: &str| Some(reads.to_owned());
    assert_eq!(row(1, 500), ("zeros", None));
    assert_eq!(row(50, 500), ("zeros", None));
    assert_eq!(row(200, 500), ("data", None));
    assert_eq!(row(500, 1), ("data", None));
    assert_eq!(row(0, 200), ("zeros", None));
    assert_eq!(row(1, 150), ("p50 of zeros", learnt("150")));
    assert_eq!(row(50, 150), ("p50 of data", learnt("150")));
    assert_eq!(row(1, 5), ("none", learnt("5")));
    assert_eq!(row(0, 0), ("none", None));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let view = fixture::full();
    let coloured = render(&view, &Options { colour: true, ..Options::default() });
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').expect("a colour ends").1;
    }
    plain.push_str(rest);
    assert_eq!(plain, page(&view));
    assert_ne!(coloured, plain);
}

proptest! {
    #[test]
    fn no_text_from_outside_moves_the_cursor(foreign in any::<String>(), name in any::<String>()) {
        let mut view = fixture::full();
        view.headline = foreign.clone();
        let finding = &mut view.findings[0];
        finding.title = foreign.clone();
        finding.evidence = vec![foreign.clone()];
        finding.carries = vec![foreign.clone()];
        finding.next = foreign.clone();
        finding.device = Some(name.clone());
        view.devices[0].carries = vec![foreign.clone()];
        view.devices[0].probe.not_planned = Some(foreign);
        let mut device = (*view.devices[0].state.device).clone();
        device.name = name;
        view.devices[0].state.device = Arc::new(device);
        let page = page(&view);
        prop_assert!(page.chars().all(|c| c == '\n' || !c.is_control()));
        let turning = ['\u{202e}', '\u{200f}', '\u{2028}'];
        prop_assert!(!page.contains(turning));
    }
}
