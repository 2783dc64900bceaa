//! The fallback engine: pread(2), a thread a device.
//!
//! A thread whose device hangs sits in the kernel and is never joined.

use crate::buffer::AlignedBuffer;
use crate::clock::Moment;
use crate::device;
use crate::engine::Engine;
use crate::lane::{Lane, Nudge, Plan, Step};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Stack of a thread: a step needs a few kilobytes.
const STACK: usize = 128 << 10;

pub(crate) struct Pread;

impl Engine for Pread {
    fn drive(&self, lane: Arc<Lane>) -> io::Result<()> {
        thread::Builder::new().name("probe-pread".into()).stack_size(STACK).spawn(move || attend(&lane)).map(drop)
    }
}

fn attend(lane: &Lane) {
    lane.set_nudge(Nudge::Thread(thread::current()));
    loop {
        match lane.step(Moment::now()) {
            Step::Finish => return,
            Step::Wait(until) => {
                thread::park_timeout(until.saturating_duration_since(Instant::now()));
            }
            Step::Open(plan) => run(lane, &plan),
        }
    }
}

fn run(lane: &Lane, plan: &Plan) {
    let outcome = device::prepare(&plan.target, plan.before);
    let Some(mut burst) = lane.opened(plan, outcome, Moment::now()) else {
        return;
    };
    if let Some(mut buffer) = AlignedBuffer::new(burst.block()) {
        while let Some(offset) = lane.next_read(&mut burst, Moment::now()) {
            let began = Instant::now();
            let outcome = burst.file().read_at(buffer.bytes_mut(), offset);
            let took = began.elapsed();
            lane.read_done(&mut burst, &outcome, &buffer, took, Moment::now());
        }
    }
    lane.closing(&burst, Moment::now());
    drop(burst.into_opened());
    lane.closed();
}
