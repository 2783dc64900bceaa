//! What a PCIe link did: changes, and how long it has been below what it could be.

use crate::link::{Standing, standings};
use crate::reading::Stamped;
use crate::sample::pcie::{Link, PcieLink};
use crate::time::BootTime;
use std::collections::VecDeque;
use std::time::Duration;

/// Most changes whose time is kept.
pub const MAX_CHANGES: usize = 32;

/// A run of samples that showed the link below what it could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downgrade {
    /// End of the first one.
    pub since: BootTime,
    /// Samples that showed a narrower width.
    pub narrow: u32,
    /// Samples that showed a lower speed while the drive did I/O: power saving lowers the speed of an idle link.
    pub slow_at_work: u32,
}

/// What is remembered of one link.
#[derive(Debug, Clone, Default)]
pub struct LinkHistory {
    at: Option<BootTime>,
    current: Option<Link>,
    work: u64,
    changes: u64,
    changed: VecDeque<BootTime>,
    downgrade: Option<Downgrade>,
    good: u32,
}

impl LinkHistory {
    /// Takes in the newest sample; the same one seen again changes nothing. `work` is a count that moves whenever the
    /// drive completes I/O.
    pub fn take(&mut self, sample: &Stamped<PcieLink>, work: u64) {
        if self.at == Some(sample.ended) {
            return;
        }
        let first = self.at.is_none();
        self.at = Some(sample.ended);
        let worked = work != self.work && !first;
        self.work = work;
        self.note_change(&sample.value, sample.ended);
        let (speed, width) = standings(&sample.value);
        match (speed, width) {
            (Standing::Below, _) | (_, Standing::Below) => {
                let run = self.downgrade.get_or_insert(Downgrade { since: sample.ended, narrow: 0, slow_at_work: 0 });
                run.narrow = if width == Standing::Below { run.narrow.saturating_add(1) } else { 0 };
                if speed == Standing::Below && worked {
                    run.slow_at_work = run.slow_at_work.saturating_add(1);
                }
                self.good = 0;
            }
            (Standing::Unknown, _) | (_, Standing::Unknown) => {}
            _ => {
                self.downgrade = None;
                self.good = self.good.saturating_add(1);
            }
        }
    }

    fn note_change(&mut self, link: &PcieLink, at: BootTime) {
        let Some(hop) = link.hops.first().filter(|hop| !hop.suspended) else {
            return;
        };
        let new = hop.current;
        if new.mega_transfers.is_none() || new.width.is_none() {
            return;
        }
        if self.current.is_some_and(|old| old != new) {
            self.changes = self.changes.saturating_add(1);
            if self.changed.len() == MAX_CHANGES {
                self.changed.pop_front();
            }
            self.changed.push_back(at);
        }
        self.current = Some(new);
    }

    /// Changes of speed or width seen by this process.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Changes within `window` before `now`, at most [`MAX_CHANGES`].
    pub fn recent_changes(&self, now: BootTime, window: Duration) -> usize {
        self.changed.iter().filter(|at| now.since(**at) <= window).count()
    }

    /// The present run of samples below what the link could be.
    pub const fn downgrade(&self) -> Option<Downgrade> {
        self.downgrade
    }

    /// Samples in a row that showed the link as it should be.
    pub const fn good(&self) -> u32 {
        self.good
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::pcie::Hop;
    use std::sync::Arc;

    fn sample(mega_transfers: u32, width: u8, at: u64) -> Stamped<PcieLink> {
        let link = |mega_transfers, width| Link { mega_transfers: Some(mega_transfers), width: Some(width) };
        let hop = |address: &str| Hop {
            address: address.to_owned(),
            current: link(mega_transfers, width),
            maximum: link(16_000, 4),
            suspended: false,
        };
        Stamped {
            value: Arc::new(PcieLink { hops: vec![hop("0000:01:00.0"), hop("0000:00:01.0")], faults: Vec::new() }),
            began: BootTime::from_secs(at),
            ended: BootTime::from_secs(at),
        }
    }

    #[test]
    fn a_lower_speed_counts_only_at_work_and_a_narrower_width_always() {
        let mut link = LinkHistory::default();
        link.take(&sample(2_500, 4, 15), 7);
        link.take(&sample(2_500, 4, 30), 7);
        link.take(&sample(2_500, 4, 45), 9);
        let run = link.downgrade().unwrap();
        assert_eq!((run.narrow, run.slow_at_work, run.since), (0, 1, BootTime::from_secs(15)));
        link.take(&sample(16_000, 2, 60), 9);
        link.take(&sample(16_000, 2, 60), 9);
        link.take(&sample(16_000, 2, 75), 9);
        assert_eq!(link.downgrade().unwrap().narrow, 2);
        assert_eq!(link.changes(), 1);
        link.take(&sample(16_000, 4, 90), 9);
        assert_eq!((link.downgrade(), link.good(), link.changes()), (None, 1, 2));
    }

    #[test]
    fn changes_are_counted_for_ever_and_remembered_for_a_while() {
        let mut link = LinkHistory::default();
        for n in 0..100_u64 {
            link.take(&sample(if n % 2 == 0 { 16_000 } else { 8_000 }, 4, n * 15), n);
        }
        assert_eq!(link.changes(), 99);
        let now = BootTime::from_secs(99 * 15);
        assert_eq!(link.recent_changes(now, Duration::from_secs(60)), 5);
        assert_eq!(link.recent_changes(now, Duration::from_secs(86_400)), MAX_CHANGES);
    }

    #[test]
    fn an_unknown_link_changes_nothing() {
        let mut link = LinkHistory::default();
        link.take(&sample(16_000, 2, 15), 0);
        let mut silent = sample(16_000, 2, 30);
        silent.value = Arc::new(PcieLink::default());
        link.take(&silent, 0);
        assert_eq!((link.downgrade().unwrap().narrow, link.changes()), (1, 0));
    }
}
