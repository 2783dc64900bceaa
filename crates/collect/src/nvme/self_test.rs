//! Log page 06h as a sample.

use storscope_drive::{self as drive, SelfTestKind, SelfTestOutcome};
use storscope_model::sample::nvme::{SelfTestLog, SelfTestResult};

/// The sample of a decoded page; unused entries are no results.
pub(super) fn sample(page: &drive::SelfTestLog) -> SelfTestLog {
    SelfTestLog {
        current: page.running.map_or(0, code),
        percent: page.completion_percent,
        results: page.results.iter().map(result).collect(),
    }
}

fn result(result: &drive::SelfTestResult) -> SelfTestResult {
    SelfTestResult {
        code: code(result.kind),
        result: outcome(result.outcome),
        power_on_hours: result.power_on_hours,
        segment: result.segment,
        lba: result.lba,
        nsid: result.nsid,
    }
}

const fn code(kind: SelfTestKind) -> u8 {
    match kind {
        SelfTestKind::Short => 1,
        SelfTestKind::Extended => 2,
        SelfTestKind::Vendor => 14,
        SelfTestKind::Other(code) => code,
    }
}

const fn outcome(outcome: SelfTestOutcome) -> u8 {
    match outcome {
        SelfTestOutcome::Passed => 0,
        SelfTestOutcome::AbortedByCommand => 1,
        SelfTestOutcome::AbortedByReset => 2,
        SelfTestOutcome::AbortedByNamespaceRemoval => 3,
        SelfTestOutcome::AbortedByFormat => 4,
        SelfTestOutcome::Fatal => 5,
        SelfTestOutcome::FailedUnknownSegment => 6,
        SelfTestOutcome::FailedSegment => 7,
        SelfTestOutcome::AbortedUnknown => 8,
        SelfTestOutcome::AbortedBySanitize => 9,
        SelfTestOutcome::Reserved(code) => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_as_the_page_has_them() {
        let mut bytes = [0_u8; 564];
        bytes[0] = 2;
        bytes[1] = 40;
        for n in 0..20_u8 {
            let at = 4 + 28 * usize::from(n);
            bytes[at] = 0xf;
            if n < 15 {
                bytes[at] = if n % 2 == 0 { 0x10 } else { 0xe0 } | n;
                bytes[at + 1] = 5;
                bytes[at + 2] = 0b11;
                bytes[at + 4..at + 12].copy_from_slice(&(1000 + u64::from(n)).to_le_bytes());
                bytes[at + 12..at + 16].copy_from_slice(&1_u32.to_le_bytes());
                bytes[at + 16..at + 24].copy_from_slice(&77_u64.to_le_bytes());
            }
        }
        let sample = sample(&drive::SelfTestLog::decode(&bytes).unwrap());
        assert_eq!((sample.current, sample.percent), (2, 40));
        assert_eq!(sample.results.len(), 15);
        for (n, result) in (0_u8..).zip(&sample.results) {
            let expected = SelfTestResult {
                code: if n % 2 == 0 { 1 } else { 14 },
                result: n,
                power_on_hours: 1000 + u64::from(n),
                segment: (n == 7).then_some(5),
                lba: Some(77),
                nsid: Some(1),
            };
            assert_eq!(*result, expected);
        }
    }
}
