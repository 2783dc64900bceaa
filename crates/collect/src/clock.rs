//! The kernel's boot-time clock, and how it maps to the wall clock (clock_gettime(2)).

use crate::attribute::read_text;
use crate::root::Root;
use nix::time::{ClockId, clock_gettime};
use storscope_model::time::{BootTime, ClockSync};

/// Looks at both clocks, of which the quickest counts.
const LOOKS: usize = 3;

const NANOSECONDS: i128 = 1_000_000_000;

/// Now, on `CLOCK_BOOTTIME`. A kernel without it (before 2.6.39) gives its monotonic clock, which stands still in
/// suspend.
pub fn now() -> BootTime {
    let nanoseconds =
        nanoseconds(ClockId::CLOCK_BOOTTIME).or_else(|| nanoseconds(ClockId::CLOCK_MONOTONIC)).unwrap_or_default();
    BootTime(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// The boot id of `root`; empty when it cannot be read.
pub fn boot_id(root: &Root) -> String {
    let text = read_text(&root.proc("sys/kernel/random/boot_id"));
    text.ok().flatten().unwrap_or_default().trim().to_owned()
}

/// The present relation of boot time to the wall clock.
pub fn sync(boot_id: String) -> ClockSync {
    // A thread that is held up between two clocks would measure a step that there was not.
    let closest = (0..LOOKS).map(|_| look()).min_by_key(|(width, _)| *width);
    ClockSync { boot_id, wall_offset_ns: closest.map_or(0, |(_, offset)| offset) }
}

/// How long it took to read both clocks, and wall clock minus boot time.
fn look() -> (u64, i128) {
    let before = now();
    let wall = nanoseconds(ClockId::CLOCK_REALTIME).unwrap_or_default();
    let after = now();
    // The wall clock was read between the two, most likely half way.
    (after.0.saturating_sub(before.0), wall - i128::from(before.0.midpoint(after.0)))
}

fn nanoseconds(clock: ClockId) -> Option<i128> {
    let time = clock_gettime(clock).ok()?;
    Some(i128::from(time.tv_sec()) * NANOSECONDS + i128::from(time.tv_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    #[test]
    fn boot_time_never_falls() {
        let instants: Vec<_> = (0..1000).map(|_| now()).collect();
        assert!(instants.is_sorted());
        assert!(instants[0] > BootTime(0));
    }

    #[test]
    fn the_wall_clock_lies_between_two_looks_at_it() {
        let wall = || i128::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
        let (before, sync, at, after) = (wall(), sync(String::new()), now(), wall());
        // Room for the adjustment of the wall clock by NTP while the test runs.
        let room = i128::try_from(Duration::from_secs(5).as_nanos()).unwrap();
        let told = sync.wall_ns(at);
        assert!((before - room..=after + room).contains(&told), "{before} {told} {after}");
    }

    #[test]
    fn the_boot_id_is_that_of_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        assert_eq!(boot_id(&root), "");
        let file = root.proc("sys/kernel/random/boot_id");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "1d8f4c1e-0000-4000-8000-0123456789ab\n").unwrap();
        assert_eq!(boot_id(&root), "1d8f4c1e-0000-4000-8000-0123456789ab");
    }
}
