//! Device Self-test log (06h): the last twenty results, newest first. Reading it starts nothing.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::command::LogPage;
use crate::error::PageError;
use crate::layout::{refuse_uniform, view};
use crate::status::Status;

const RESULTS: usize = 20;
const NOT_USED: u8 = 0xf;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ResultLayout {
    status: u8,
    segment: u8,
    valid: u8,
    rsvd3: u8,
    power_on_hours: U64,
    nsid: U32,
    lba: U64,
    status_type: u8,
    status_code: u8,
    vendor: [u8; 2],
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    current_operation: u8,
    current_completion: u8,
    rsvd2: [u8; 2],
    results: [ResultLayout; RESULTS],
}

/// Which test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTestKind {
    /// 1h.
    Short,
    /// 2h.
    Extended,
    /// Eh.
    Vendor,
    /// Any other code.
    Other(u8),
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTestOutcome {
    /// 0h: no error.
    Passed,
    /// 1h: by a self-test command.
    AbortedByCommand,
    /// 2h: by a controller level reset.
    AbortedByReset,
    /// 3h: its namespace was removed.
    AbortedByNamespaceRemoval,
    /// 4h: by a format.
    AbortedByFormat,
    /// 5h: a fatal or unknown error; the test did not end.
    Fatal,
    /// 6h: a segment failed, which one is not known.
    FailedUnknownSegment,
    /// 7h: a segment failed.
    FailedSegment,
    /// 8h: for an unknown reason.
    AbortedUnknown,
    /// 9h: by a sanitize operation.
    AbortedBySanitize,
    /// A code that the standard does not define.
    Reserved(u8),
}

impl SelfTestOutcome {
    /// The drive found itself faulty.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Fatal | Self::FailedUnknownSegment | Self::FailedSegment)
    }
}

/// One finished test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestResult {
    /// Which test.
    pub kind: SelfTestKind,
    /// How it ended.
    pub outcome: SelfTestOutcome,
    /// First segment that failed, where known.
    pub segment: Option<u8>,
    /// Power-on hours at its end.
    pub power_on_hours: u64,
    /// Namespace of the failing block, where stated.
    pub nsid: Option<u32>,
    /// Failing block, where stated.
    pub lba: Option<u64>,
    /// Status with more about the failure, where stated.
    pub status: Option<Status>,
}

/// The history of self-tests, and the running one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfTestLog {
    /// The test that runs now.
    pub running: Option<SelfTestKind>,
    /// Percent of the running test that is done; means nothing while none runs.
    pub completion_percent: u8,
    /// Finished tests, newest first; unused entries are left out.
    pub results: Vec<SelfTestResult>,
}

impl SelfTestLog {
    /// Decodes the 564-byte page.
    ///
    /// # Errors
    /// [`PageError`]: short, or of one byte value only: all zeros would read as twenty passes at power-on hour 0.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let page = LogPage::SelfTest.name();
        let log: &Layout = view(page, bytes)?;
        refuse_uniform(page, bytes)?;
        let operation = log.current_operation & 0xf;
        Ok(Self {
            running: (operation != 0).then(|| kind(operation)),
            completion_percent: log.current_completion & 0x7f,
            results: log.results.iter().filter_map(result).collect(),
        })
    }
}

fn kind(code: u8) -> SelfTestKind {
    match code {
        0x1 => SelfTestKind::Short,
        0x2 => SelfTestKind::Extended,
        0xe => SelfTestKind::Vendor,
        other => SelfTestKind::Other(other),
    }
}

fn result(layout: &ResultLayout) -> Option<SelfTestResult> {
    let outcome = match layout.status & 0xf {
        NOT_USED => return None,
        0x0 => SelfTestOutcome::Passed,
        0x1 => SelfTestOutcome::AbortedByCommand,
        0x2 => SelfTestOutcome::AbortedByReset,
        0x3 => SelfTestOutcome::AbortedByNamespaceRemoval,
        0x4 => SelfTestOutcome::AbortedByFormat,
        0x5 => SelfTestOutcome::Fatal,
        0x6 => SelfTestOutcome::FailedUnknownSegment,
        0x7 => SelfTestOutcome::FailedSegment,
        0x8 => SelfTestOutcome::AbortedUnknown,
        0x9 => SelfTestOutcome::AbortedBySanitize,
        other => SelfTestOutcome::Reserved(other),
    };
    let valid = |bit: u8| layout.valid & 1 << bit != 0;
    let status = u16::from(layout.status_type & 7) << 8 | u16::from(layout.status_code);
    Some(SelfTestResult {
        kind: kind(layout.status >> 4),
        outcome,
        segment: (outcome == SelfTestOutcome::FailedSegment).then_some(layout.segment),
        power_on_hours: layout.power_on_hours.get(),
        nsid: valid(0).then(|| layout.nsid.get()),
        lba: valid(1).then(|| layout.lba.get()),
        status: (valid(2) && valid(3)).then(|| Status::from_ioctl(status)),
    })
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_standard() {
        assert_eq!(size_of::<Layout>(), 564);
        assert_eq!(offset_of!(Layout, results), 4);
        let offsets = [
            (offset_of!(ResultLayout, segment), 1),
            (offset_of!(ResultLayout, valid), 2),
            (offset_of!(ResultLayout, power_on_hours), 4),
            (offset_of!(ResultLayout, nsid), 12),
            (offset_of!(ResultLayout, lba), 16),
            (offset_of!(ResultLayout, status_type), 24),
            (offset_of!(ResultLayout, status_code), 25),
        ];
        for (ours, standard) in offsets {
            assert_eq!(ours, standard);
        }
        assert_eq!(size_of::<ResultLayout>(), 28);
    }

    fn page() -> Vec<u8> {
        let mut page = vec![0; 564];
        for index in 0..RESULTS {
            page[4 + 28 * index] = NOT_USED;
        }
        page
    }

    #[test]
    fn an_unused_history_is_empty_and_not_twenty_passes() {
        let log = SelfTestLog::decode(&page()).unwrap();
        assert_eq!((log.running, log.results.len()), (None, 0));
        assert!(SelfTestLog::decode(&[0; 564]).is_err());
    }

    #[test]
    fn a_failed_test_tells_where() {
        let mut page = page();
        page[0] = 0x02;
        page[1] = 0x80 | 37;
        page[4..8].copy_from_slice(&[0x27, 4, 0x0f, 0]);
        page[8..16].copy_from_slice(&1234_u64.to_le_bytes());
        page[16..20].copy_from_slice(&1_u32.to_le_bytes());
        page[20..28].copy_from_slice(&99_u64.to_le_bytes());
        page[28..30].copy_from_slice(&[2, 0x81]);
        page[32] = 0x10;
        let log = SelfTestLog::decode(&page).unwrap();
        assert_eq!((log.running, log.completion_percent), (Some(SelfTestKind::Extended), 37));
        let [failed, passed] = log.results[..] else { panic!("two results") };
        assert_eq!((failed.kind, failed.outcome), (SelfTestKind::Extended, SelfTestOutcome::FailedSegment));
        assert!(failed.outcome.is_failure());
        assert_eq!((failed.segment, failed.power_on_hours), (Some(4), 1234));
        assert_eq!((failed.nsid, failed.lba), (Some(1), Some(99)));
        assert_eq!(failed.status.map(|status| status.to_string()).as_deref(), Some("unrecovered read error (281h)"));
        assert_eq!((passed.kind, passed.outcome), (SelfTestKind::Short, SelfTestOutcome::Passed));
        assert_eq!((passed.segment, passed.nsid, passed.lba, passed.status), (None, None, None, None));
    }

    #[test]
    fn a_short_page_is_refused() {
        assert!(matches!(SelfTestLog::decode(&page()[..563]), Err(PageError::Short { least: 564, .. })));
    }
}
