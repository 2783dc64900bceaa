//! What else the device is doing: its `stat` attribute (Documentation/block/stat.rst).

use crate::target::QueueSize;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Longest `stat` line that is read: 17 decimal numbers of at most 20 digits.
const MAX_STAT: usize = 512;
const READS_COMPLETED: usize = 0;
const WRITES_COMPLETED: usize = 4;
const IN_FLIGHT: usize = 8;
const DISCARDS_COMPLETED: usize = 11;
const FLUSHES_COMPLETED: usize = 15;

/// Requests of a device at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    /// Requests completed since the device appeared, of every kind.
    pub(crate) completed: u64,
    /// Requests that hold a tag.
    pub(crate) in_flight: u64,
}

impl Load {
    /// The load in a `stat` line; `None` when it is none. Discards and flushes are absent on old kernels.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?;
        let mut completed = 0_u64;
        let mut in_flight = None;
        for (index, field) in text.split_ascii_whitespace().enumerate() {
            let value: u64 = field.parse().ok()?;
            match index {
                READS_COMPLETED | WRITES_COMPLETED | DISCARDS_COMPLETED | FLUSHES_COMPLETED => {
                    completed = completed.wrapping_add(value);
                }
                IN_FLIGHT => in_flight = Some(value),
                _ => {}
            }
        }
        Some(Self { completed, in_flight: in_flight? })
    }

    /// Reads it again from an open `stat`.
    ///
    /// # Errors
    /// That of pread(2), `ENODEV` once the device is gone; `InvalidData` when the line is none.
    pub(crate) fn read(stat: &File) -> io::Result<Self> {
        let mut line = [0_u8; MAX_STAT];
        let length = stat.read_at(&mut line, 0)?;
        line.get(..length).and_then(Self::parse).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// True when a further read would wait in the kernel for a tag, in a worker that no signal ends.
    ///
    /// With several hardware queues sysfs does not tell how full each is, and some adapters share one set of tags
    /// among them. So a count that one queue alone could hold is taken as full only while nothing completes:
    /// `before` is the load one burst ago.
    pub(crate) fn is_full(self, before: Option<Self>, queue: QueueSize) -> bool {
        let one = u64::from(queue.requests);
        let all = one.saturating_mul(u64::from(queue.hardware_queues.max(1)));
        let stands_still = before.is_none_or(|before| before.completed == self.completed);
        self.in_flight >= all || (self.in_flight >= one && stands_still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"     100        4   424096  2565538       20        0        0        0        7    39812  2565538        3        0        0        0        5        0\n";

    #[test]
    fn completed_counts_every_kind_of_request() {
        assert_eq!(Load::parse(LINE), Some(Load { completed: 128, in_flight: 7 }));
    }

    #[test]
    fn the_eleven_fields_of_old_kernels_suffice_and_fewer_do_not() {
        assert_eq!(Load::parse(b"1 0 0 0 2 0 0 0 3 0 0"), Some(Load { completed: 3, in_flight: 3 }));
        for bad in [
            &b""[..],
            b"1 0 0 0 2 0 0 0",
            b"1 0 0 0 2 0 0 0 x",
            b"1 0 0 0 2 0 0 0 -1",
            b"1 0 0 0 2 0 0 0 99999999999999999999",
            b"\xff 0 0 0 0 0 0 0 0",
        ] {
            assert_eq!(Load::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn one_queue_is_full_when_its_tags_are_taken() {
        let queue = QueueSize { requests: 128, hardware_queues: 1 };
        let at = |in_flight, completed| Load { completed, in_flight };
        assert!(at(128, 5).is_full(Some(at(0, 1)), queue));
        assert!(!at(127, 5).is_full(Some(at(127, 5)), queue));
    }

    #[test]
    fn many_queues_are_full_at_their_sum_or_when_nothing_moves() {
        let queue = QueueSize { requests: 100, hardware_queues: 4 };
        let at = |in_flight, completed| Load { completed, in_flight };
        assert!(!at(150, 9).is_full(Some(at(150, 5)), queue), "busy");
        assert!(at(150, 9).is_full(Some(at(150, 9)), queue), "hung");
        assert!(at(400, 9).is_full(Some(at(150, 5)), queue), "every tag");
        assert!(at(150, 9).is_full(None, queue), "not known to move");
        assert!(!at(99, 9).is_full(Some(at(99, 9)), queue), "free tags");
    }
}
