//! Whatever a drive answers: every decoder returns, and what it accepts it can be asked about.

use proptest::collection::vec;
use proptest::prelude::*;
use storscope_drive::{
    CommandEffects, ErrorLog, Evidence, FirmwareSlots, IdentifyController, IdentifyNamespace, LogPage, OCP_GUID,
    OcpSmart, Opcode, PageError, Plan, SelfTestLog, SmartHealth, Status, SupportedPages, UuidList, celsius, drive_text,
    power_mode_from_sense,
};

/// Bytes of any length up to past the longest page, often with the lengths that pages have.
fn any_page() -> impl Strategy<Value = Vec<u8>> {
    let lengths = prop_oneof![0_usize..5000, Just(512), Just(564), Just(1024), Just(4096), Just(16384),];
    let fill = prop_oneof![Just(0_u8), Just(0xff), any::<u8>()];
    (lengths, fill, vec((any::<u16>(), any::<u8>()), 0..200)).prop_map(|(length, fill, changes)| {
        let mut bytes = vec![fill; length];
        for (at, value) in changes {
            if length > 0 {
                bytes[usize::from(at) % length] = value;
            }
        }
        bytes
    })
}

/// A refusal must print; an acceptance needs at least this many bytes.
fn judged<T>(result: Result<T, PageError>, bytes: &[u8], least: usize) -> Option<T> {
    match result {
        Ok(value) => {
            assert!(bytes.len() >= least);
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if bytes.len() < least {
                assert!(matches!(error, PageError::Short { .. }), "{error}");
            }
            None
        }
    }
}

fn every_decoder(bytes: &[u8]) {
    if let Some(identify) = judged(IdentifyController::decode(bytes), bytes, 4096) {
        assert!((1..=32).contains(&identify.power_states.len()));
        assert!((1..=256).contains(&identify.error_log_entries));
        every_plan(&identify, bytes);
    }
    if let Some(namespace) = judged(IdentifyNamespace::decode(bytes), bytes, 4096) {
        assert!(namespace.format.is_none_or(|format| format.block_bytes.is_power_of_two()));
    }
    if let Some(health) = judged(SmartHealth::decode(bytes), bytes, 512) {
        let _ = (health.bytes_read(), health.bytes_written());
        assert!(health.critical_warning.reasons().count() <= 6);
        assert!(health.sensors.iter().flatten().all(|kelvin| celsius(*kelvin) > -273));
    }
    if let Some(log) = judged(ErrorLog::decode(bytes), bytes, 64) {
        assert!(log.entries.len() <= log.slots);
        assert!(log.entries.iter().all(|entry| entry.error_count != 0));
    }
    if let Some(slots) = judged(FirmwareSlots::decode(bytes), bytes, 512) {
        assert!(slots.active <= 7 && slots.next.is_none_or(|next| (1..=7).contains(&next)));
        let _ = (slots.pending(), slots.revision(slots.active));
    }
    if let Some(log) = judged(SelfTestLog::decode(bytes), bytes, 564) {
        assert!(log.results.len() <= 20 && log.completion_percent < 128);
    }
    if let Some(pages) = judged(SupportedPages::decode(bytes), bytes, 1024) {
        assert!(pages.contains(LogPage::SmartHealth.id()));
    }
    if let Some(effects) = judged(CommandEffects::decode(bytes), bytes, 4096) {
        let either = effects.of(Opcode::Identify).freezes_io() || effects.of(Opcode::GetLogPage).freezes_io();
        assert_eq!(effects.asking_freezes_io(), either);
    }
    judged(UuidList::decode(bytes), bytes, 4096);
    judged(OcpSmart::decode(bytes), bytes, 512);
    let _ = power_mode_from_sense(bytes);
    let text = drive_text(bytes);
    assert!(!text.chars().any(char::is_control));
}

/// However a controller describes itself, what it is asked stays within the page and the limits.
fn every_plan(identify: &IdentifyController, bytes: &[u8]) {
    let supported = bytes.get(..1024).and_then(|bytes| SupportedPages::decode(bytes).ok());
    let uuids = UuidList::decode(bytes).ok();
    for (supported, uuids) in [(None, None), (supported.as_ref(), uuids.as_ref())] {
        let plan = Plan::new(&Evidence { identify, supported, uuids });
        for (page, verdict) in plan.verdicts() {
            let commands = plan.commands(page);
            assert_eq!(verdict.is_ok(), commands.is_ok());
            let mut expected = 0;
            for command in commands.unwrap_or_default() {
                assert_eq!(command.offset(), expected);
                assert!((4..=16384).contains(&command.length()));
                expected += command.length() as u64;
            }
            assert!(expected <= 16384);
        }
    }
}

proptest! {
    #[test]
    fn no_decoder_panics(bytes in any_page()) {
        every_decoder(&bytes);
    }

    #[test]
    fn random_bytes_of_random_length(bytes in vec(any::<u8>(), 0..5000)) {
        every_decoder(&bytes);
    }

    #[test]
    fn an_ocp_page_of_any_content_is_decoded(bytes in vec(any::<u8>(), 496)) {
        let page = [bytes.as_slice(), &OCP_GUID].concat();
        prop_assert!(OcpSmart::decode(&page).is_ok());
    }

    #[test]
    fn every_status_prints_and_masks(raw in any::<u16>()) {
        let status = Status::from_ioctl(raw);
        prop_assert!(status.code() <= 0x7ff);
        let digits = format!("{:03x}h", status.code());
        prop_assert!(status.to_string().contains(&digits));
        let _ = (status.status_type(), status.more(), status.do_not_retry(), status.is_refusal());
    }
}
