//! What one scrape of 1,000 devices allocates after another: scrape 100 takes no more than scrape 1, and nothing of
//! any is kept.
#![allow(unreachable_pub, reason = "the tests' modules")]
#![allow(clippy::expect_used, reason = "a benchmark may panic")]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;
use storscope_export::prometheus::{Format, encode};
use storscope_model::view::View;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Devices.
const DEVICES: usize = 1000;
/// Scrapes that are counted, after one that gives the buffer its size.
const SCRAPES: usize = 100;

fn many() -> View {
    let mut view = fixture::full();
    let template = view.devices[0].clone();
    let numbered = |number: usize| {
        let mut view = template.clone();
        let mut device = (*view.state.device).clone();
        device.name = format!("nvme{number}n1");
        view.state.device = Arc::new(device);
        view
    };
    view.devices = (0..DEVICES).map(numbered).collect();
    view
}

fn main() {
    let view = Arc::new(many());
    let mut out = String::new();
    let mut scrape = || {
        let region = Region::new(ALLOCATOR);
        out.clear();
        for format in [Format::Text, Format::OpenMetrics] {
            encode(&view, format, &mut out).expect("encodes");
        }
        region.change().bytes_allocated
    };
    scrape();
    let all = Region::new(ALLOCATOR);
    let first = scrape();
    let mut last = first;
    for _ in 1..SCRAPES {
        last = scrape();
    }
    let all = all.change();
    let kept = i128::try_from(all.bytes_allocated).unwrap_or(i128::MAX)
        - i128::try_from(all.bytes_deallocated).unwrap_or(i128::MAX);
    println!("scrapes {SCRAPES} allocated_first {first} allocated_last {last} kept {kept}");
}
