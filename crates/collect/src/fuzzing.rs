//! The parsers of kernel files by name, for the fuzzer: what each makes of any bytes is thrown away.

use crate::discovery::block::parse_devnum;
use crate::former::Stat;
use crate::stack::{mountinfo, swaps};
use crate::{aer, agent, controller_state, cpu, diskstats, pressure, uevent};
use storscope_model::sample::pcie::Severity;

/// A name, and what takes any bytes.
pub type Parser = (&'static str, fn(&[u8]));

/// Each parser, given the whole content of its file or message.
pub const PARSERS: [Parser; 11] = [
    ("aer", |bytes| {
        aer::parse("aer", &String::from_utf8_lossy(bytes), Severity::Fatal, &mut Vec::new(), &mut Vec::new());
    }),
    ("agent", |bytes| {
        let _ = (agent::parse_named_stat(bytes), agent::parse_statm(bytes), agent::parse_limits(bytes));
    }),
    ("controller_state", |bytes| drop(controller_state::parse(bytes))),
    ("cpu", |bytes| {
        let _ = (cpu::parse("stat", bytes), cpu::load1(bytes));
    }),
    ("devnum", |bytes| {
        let _ = parse_devnum(&String::from_utf8_lossy(bytes));
    }),
    ("diskstats", |bytes| drop(diskstats::parse("diskstats", bytes))),
    ("former", |bytes| drop(Stat::parse(1, bytes))),
    ("mountinfo", |bytes| drop(mountinfo::parse("mountinfo", bytes))),
    ("pressure", |bytes| drop(pressure::parse("io", bytes))),
    ("swaps", |bytes| drop(swaps::parse(bytes))),
    ("uevent", |bytes| drop(uevent::parse(bytes))),
];
