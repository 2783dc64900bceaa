//! Who is connected. When there is no room, a connection that asks nothing makes way for one that may.

use super::head::Heard;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A connection that has not finished a request head for so long may be closed for another one.
const GRACE: Duration = Duration::from_secs(1);

/// Pause between two looks whether everyone was answered.
const PAUSE: Duration = Duration::from_millis(5);

/// Of all connections, one part in this many may come from one address that is not of this host.
const SHARE: usize = 2;

/// Why nobody is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// There is no room, and everyone is being answered or has just come.
    Full,
    /// The address has its share.
    Share,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Crowd {
    most: usize,
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    next: u64,
    taken: BTreeMap<u64, Seat>,
}

#[derive(Debug)]
struct Seat {
    peer: Option<IpAddr>,
    heard: Heard,
    leave: Arc<Notify>,
}

/// A place among the connections; free again when dropped.
#[derive(Debug)]
pub(super) struct Guest {
    crowd: Arc<Crowd>,
    number: u64,
    leave: Arc<Notify>,
}

impl Crowd {
    /// For at most `most` connections.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, seats: Mutex::default() })
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets in a connection of `peer` that notes in `heard` what it does. When there is no room, the one that has idled
    /// longest between two requests is asked to leave, or else the one that has been longest at a request head.
    ///
    /// # Errors
    /// That there is no room for it.
    pub(super) fn admit(self: &Arc<Self>, peer: Option<IpAddr>, heard: Heard, now: Instant) -> Result<Guest, Refused> {
        let mut seats = self.seats();
        let remote = peer.filter(|address| !address.to_canonical().is_loopback());
        if remote.is_some() {
            let of_peer = seats.taken.values().filter(|seat| seat.peer == remote).count();
            if of_peer >= (self.most / SHARE).max(1) {
                return Err(Refused::Share);
            }
        }
        if seats.taken.len() >= self.most {
            let waiting = |(number, seat): (&u64, &Seat)| Some((seat.heard.rank(now, GRACE)?, *number));
            let (_, first) = seats.taken.iter().filter_map(waiting).min().ok_or(Refused::Full)?;
            if let Some(seat) = seats.taken.remove(&first) {
                seat.leave.notify_one();
            }
        }
        let number = seats.next;
        seats.next += 1;
        let leave = Arc::new(Notify::new());
        seats.taken.insert(number, Seat { peer: remote, heard, leave: Arc::clone(&leave) });
        drop(seats);
        Ok(Guest { crowd: Arc::clone(self), number, leave })
    }
}

impl Crowd {
    /// Waits until nobody is being answered any more, for `patience` at most.
    pub(crate) async fn answered(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while Instant::now() < until && self.seats().taken.values().any(|seat| seat.heard.is_answering()) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Guest {
    /// Waits until the place is needed.
    pub(super) async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.crowd.seats().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    fn has_to_leave(guest: &Guest) -> bool {
        !guest.crowd.seats().taken.contains_key(&guest.number)
    }

    #[test]
    fn who_idles_longest_makes_way_and_who_is_answered_does_not() {
        let crowd = Crowd::new(3);
        let heards: Vec<Heard> = (0..3).map(|_| Heard::default()).collect();
        let guests: Vec<Guest> =
            heards.iter().map(|heard| crowd.admit(None, heard.clone(), later(0)).unwrap()).collect();
        heards[0].answering();
        heards[1].answering();
        heards[2].idle();
        std::thread::sleep(Duration::from_millis(2));
        heards[1].idle();
        let _new = crowd.admit(None, Heard::default(), later(0)).unwrap();
        assert_eq!(guests.iter().map(has_to_leave).collect::<Vec<_>>(), [false, false, true]);
        let _newer = crowd.admit(None, Heard::default(), later(0)).unwrap();
        assert_eq!(guests.iter().map(has_to_leave).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(crowd.admit(None, Heard::default(), later(0)).unwrap_err(), Refused::Full);
        // The two new ones have not asked for anything yet: they may, for a while.
        assert!(crowd.admit(None, Heard::default(), later(5)).is_ok());
    }

    #[test]
    fn an_address_has_its_share_and_this_host_all() {
        let crowd = Crowd::new(4);
        let remote = Some(IpAddr::from([192, 0, 2, 1]));
        let admit = |peer| crowd.admit(peer, Heard::default(), later(0));
        let _two = [admit(remote).unwrap(), admit(remote).unwrap()];
        assert_eq!(admit(remote).unwrap_err(), Refused::Share);
        let _other = admit(Some(IpAddr::from([192, 0, 2, 2]))).unwrap();
        let crowd = Crowd::new(2);
        let local = Some(IpAddr::from([127, 0, 0, 1]));
        let both = [0, 1].map(|_| crowd.admit(local, Heard::default(), later(0)).unwrap());
        drop(both);
        assert!(crowd.seats().taken.is_empty());
    }
}
