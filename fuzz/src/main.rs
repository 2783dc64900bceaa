//! Decoders and parsers under libFuzzer, one at a time: `STORSCOPE_FUZZ` names it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use storscope_collect::fuzzing::PARSERS;
use storscope_drive::{
    CommandEffects, ErrorLog, FirmwareSlots, IdentifyController, IdentifyNamespace, OCP_GUID, OcpSmart, SelfTestLog,
    SmartHealth, SupportedPages, UuidList, drive_text, power_mode_from_sense,
};
use storscope_export::{json, prometheus, text};
use storscope_model::analysis::analyse;
use storscope_model::codec;
use storscope_model::event::Event;
use storscope_model::history::History;
use storscope_model::limits::Limits;
use storscope_model::memory::Memory;
use storscope_model::request::Request;
use storscope_model::snapshot::Snapshot;
use storscope_model::time::{BootTime, ClockSync};
use storscope_model::view::AgentStatus;

type Target = (&'static str, fn(&[u8]));

/// Those beside the collector's parsers.
const DECODERS: [Target; 15] = [
    ("identify_controller", |bytes| page::<4096, _>(bytes, |page| drop(IdentifyController::decode(page)))),
    ("identify_namespace", |bytes| page::<4096, _>(bytes, |page| drop(IdentifyNamespace::decode(page)))),
    ("smart_health", |bytes| page::<512, _>(bytes, |page| drop(SmartHealth::decode(page)))),
    ("error_log", |bytes| page::<1024, _>(bytes, |page| drop(ErrorLog::decode(page)))),
    ("firmware_slots", |bytes| page::<512, _>(bytes, |page| drop(FirmwareSlots::decode(page)))),
    ("self_test", |bytes| page::<564, _>(bytes, |page| drop(SelfTestLog::decode(page)))),
    ("supported_pages", |bytes| page::<1024, _>(bytes, |page| drop(SupportedPages::decode(page)))),
    ("effects", |bytes| page::<4096, _>(bytes, |page| drop(CommandEffects::decode(page)))),
    ("ocp_smart", ocp_smart),
    ("uuid_list", |bytes| page::<4096, _>(bytes, |page| drop(UuidList::decode(page)))),
    ("ata_sense", |bytes| {
        let _ = power_mode_from_sense(bytes);
    }),
    ("drive_text", |bytes| drop(drive_text(bytes))),
    ("request", |bytes| drop(codec::decode::<Request>(bytes))),
    ("event", event),
    ("events_to_pages", events_to_pages),
];

/// The input as it is, and as a page of `LENGTH` bytes: most inputs have the length of no page.
fn page<const LENGTH: usize, F: Fn(&[u8])>(bytes: &[u8], decode: F) {
    decode(bytes);
    let mut page = [0; LENGTH];
    let known = bytes.len().min(LENGTH);
    page[..known].copy_from_slice(&bytes[..known]);
    decode(&page);
}

/// With the GUID that the page is known by.
fn ocp_smart(bytes: &[u8]) {
    page::<512, _>(bytes, |page| {
        let mut page = page.to_vec();
        if let Some(guid) = page.get_mut(496..512) {
            guid.copy_from_slice(&OCP_GUID);
        }
        drop(OcpSmart::decode(&page));
    });
}

/// What is decoded is encoded to the same again.
fn event(bytes: &[u8]) {
    if let Ok(event) = codec::decode::<Event>(bytes) {
        let frame = codec::encode(&event).expect("a decoded event can be encoded");
        let again = codec::decode::<Event>(&frame[codec::HEADER..]).expect("an encoded event can be decoded");
        assert_eq!(format!("{event:?}"), format!("{again:?}"));
    }
}

/// Frames after one another, each of a length in its first two bytes, through the analysis into every output.
fn events_to_pages(mut bytes: &[u8]) {
    let mut snapshot = Snapshot::default();
    let now = BootTime::from_secs(100_000);
    while let [low, high, rest @ ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (frame, behind) = rest.split_at(length);
        if let Ok(event) = codec::decode::<Event>(frame) {
            snapshot.apply(event, now);
        }
        bytes = behind;
    }
    let mut history = History::restore(&Memory::default(), &ClockSync::default());
    let agent = AgentStatus::default().into();
    let view = analyse(&mut history, &snapshot, &agent, &Limits::default(), now);
    let mut out = String::new();
    for format in [prometheus::Format::Text, prometheus::Format::OpenMetrics] {
        prometheus::encode(&view.clone().into(), format, &mut out).expect("a view can be encoded");
    }
    text::render(&view, &text::Options::default());
    json::render(&view).expect("a view can be told as JSON");
}

fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    let run = TARGET.get_or_init(|| {
        let name = std::env::var("STORSCOPE_FUZZ").unwrap_or_default();
        let all = DECODERS.iter().chain(&PARSERS);
        let found = all.clone().find(|(target, _)| *target == name).map(|(_, run)| *run);
        found.unwrap_or_else(|| {
            let names: Vec<&str> = all.map(|(target, _)| *target).collect();
            panic!("STORSCOPE_FUZZ={name:?}; there are {}", names.join(" "))
        })
    });
    run(bytes);
});
