//! No queue to overflow: the newest event a slot, sent when the other end can take it.

use crate::event::{Event, Slot};
use std::collections::{BTreeMap, VecDeque};

/// The events that were not sent yet, at most one a (subject, source).
#[derive(Debug, Default)]
pub struct Outbox {
    order: VecDeque<Slot>,
    waiting: BTreeMap<Slot, Event>,
    superseded: u64,
}

impl Outbox {
    /// Puts `event` in its slot; an older one there is replaced, keeps its turn, and is counted.
    ///
    /// What appears goes before what waits, so that no read arrives ahead of its device.
    pub fn put(&mut self, event: Event) {
        let slot = event.slot();
        let first = matches!(slot, Slot::Presence(_));
        if self.waiting.insert(slot.clone(), event).is_some() {
            self.superseded = self.superseded.saturating_add(1);
            return;
        }
        if first {
            let place = self.order.iter().position(|other| !matches!(other, Slot::Presence(_)));
            self.order.insert(place.unwrap_or(self.order.len()), slot);
        } else {
            self.order.push_back(slot);
        }
    }

    /// The event whose turn it is.
    pub fn take(&mut self) -> Option<Event> {
        let slot = self.order.pop_front()?;
        self.waiting.remove(&slot)
    }

    /// Events that a newer one replaced before they were sent.
    pub const fn superseded(&self) -> u64 {
        self.superseded
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
