//! Kernels whose `io_ticks` and `time_in_queue` (diskstats fields 10 and 11) count an idle device as busy.
//!
//! There the block layer took the request that begins for one that had been in flight since the one before, on blk-mq
//! devices without a scheduler. Sums of the requests' own times are not touched by it. Seen on 4.17 to 4.20, the stable 4.19
//! of Debian 10 included, and in Red Hat's back-port to 3.10.0-957 (sysstat/sysstat#187, munin-monitoring/munin#1119,
//! Atoptool/atop#47 and #197).

use crate::device::Transport;
use crate::snapshot::{DeviceState, HostState};

/// First and last `(major, minor)` of the kernel that are known for it.
const KERNELS: [(u32, u32); 2] = [(4, 17), (4, 20)];
/// Release of Red Hat's kernel that is known for it, without what follows the build.
const RED_HAT: &str = "3.10.0-957";
/// Mark of Red Hat 8: its 4.18 has the block layer of later kernels, and nothing of the kind is reported of it.
const RED_HAT_8: &str = ".el8";
/// The scheduler with which it shows.
const SCHEDULER: &str = "none";

/// False when the kernel is known to count idle time of the device as busy; true when it is not known, also for want of a
/// fresh kernel release or scheduler.
pub fn reliable(state: &DeviceState, host: &HostState) -> bool {
    let kernel = host.info.fresh().and_then(|info| info.kernel.as_deref());
    let scheduler = state.queue.fresh().and_then(|queue| queue.scheduler.as_deref());
    // Devices without requests of their own say `none` too, and are counted in another way.
    let stacked =
        matches!(state.device.transport, Transport::DeviceMapper | Transport::Md | Transport::Zram | Transport::Ram);
    stacked || scheduler != Some(SCHEDULER) || !kernel.is_some_and(affected)
}

/// True for a release (`uname -r`) that is known for it.
fn affected(release: &str) -> bool {
    let red_hat =
        release.strip_prefix(RED_HAT).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
    let [first, last] = KERNELS;
    let within = version(release).is_some_and(|version| (first..=last).contains(&version));
    red_hat || (within && !release.contains(RED_HAT_8))
}

/// Major and minor number of a release.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let (major, rest) = release.split_once('.')?;
    let minor = rest.split(|next: char| !next.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::affected;

    #[test]
    fn kernels_are_told_apart_at_their_bounds() {
        for release in [
            "4.17",
            "4.17.0-rc1",
            "4.17.0",
            "4.18.0-25-generic",
            "4.19.0-5-amd64",
            "4.19.181",
            "4.20.17",
            "4.20-rc7",
            "3.10.0-957",
            "3.10.0-957.el7.x86_64",
            "3.10.0-957.27.2.el7.x86_64",
        ] {
            assert!(affected(release), "{release}");
        }
        for release in [
            "4.16.18",
            "4.16",
            "5.0",
            "5.0.0-32-generic",
            "5.4.17",
            "3.10.0-862.el7.x86_64",
            "3.10.0-1062.el7.x86_64",
            "3.10.0-9570.el7",
            "3.10.0-95",
            "4.18.0-80.el8.x86_64",
            "4.18.0-553.el8_10.x86_64",
            "14.19.1",
            "4.170.1",
            "6.12.1",
        ] {
            assert!(!affected(release), "{release}");
        }
    }

    #[test]
    fn what_is_no_release_is_not_known_for_it() {
        for release in [
            "",
            "4",
            "4.",
            ".17",
            "4.x",
            "four.seventeen",
            "-4.17",
            "4 .19",
            "99999999999.19",
            "3.10.0-",
            "\u{663}.\u{661}",
        ] {
            assert!(!affected(release), "{release:?}");
        }
    }
}
