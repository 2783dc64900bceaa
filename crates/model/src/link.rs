//! PCIe links judged: against what both ends can do, and over the whole way to the root (PCI Express base
//! specification, Link Status and Link Capabilities registers).
//!
//! The link files of a function describe one link: of a drive or the upstream port of a switch the one above it, of a
//! root port or a downstream port of a switch the one below it. Hops therefore pair up from the drive on: drive and
//! port above, then upstream port of a switch and the port above that.

use crate::sample::pcie::{Hop, Link, PcieLink};
use crate::view::{LinkStatus, LinkView};

/// How one property of a link, speed or width, compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// As much as the drive can do.
    Full,
    /// As much as the port can do, less than the drive can.
    PortLimited,
    /// Less than both ends can do.
    Below,
    /// Not known.
    Unknown,
}

/// Two ends of one link.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    lower: &'a Hop,
    upper: Option<&'a Hop>,
}

impl<'a> Pair<'a> {
    fn all(link: &'a PcieLink) -> impl Iterator<Item = Self> {
        link.hops.chunks(2).filter_map(|ends| ends.first().map(|lower| Self { lower, upper: ends.get(1) }))
    }

    fn suspended(self) -> bool {
        self.lower.suspended || self.upper.is_some_and(|port| port.suspended)
    }

    /// Both ends show the same link: the upper one stands in where the lower one is silent.
    fn current(self) -> Link {
        if self.suspended() {
            return Link::default();
        }
        let other = self.upper.map(|port| port.current).unwrap_or_default();
        Link {
            mega_transfers: self.lower.current.mega_transfers.or(other.mega_transfers),
            width: self.lower.current.width.or(other.width),
        }
    }

    fn expected(self) -> Link {
        let Some(port) = self.upper else {
            return Link::default();
        };
        Link {
            mega_transfers: smaller(self.lower.maximum.mega_transfers, port.maximum.mega_transfers),
            width: smaller(self.lower.maximum.width, port.maximum.width),
        }
    }
}

fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.zip(other).map(|(one, other)| one.min(other))
}

/// Standing of a value; an end that is not known allows only the answers that do not depend on it.
fn standing<T: Ord>(current: Option<T>, drive: Option<T>, port: Option<T>) -> Standing {
    let Some(current) = current else {
        return Standing::Unknown;
    };
    match (drive, port) {
        (Some(drive), _) if current >= drive => Standing::Full,
        (Some(_), Some(port)) if current >= port => Standing::PortLimited,
        (Some(_), Some(_)) => Standing::Below,
        _ => Standing::Unknown,
    }
}

/// Standing of speed and of width of the link between the drive and the port directly above.
pub fn standings(link: &PcieLink) -> (Standing, Standing) {
    let Some(pair) = Pair::all(link).next() else {
        return (Standing::Unknown, Standing::Unknown);
    };
    let current = pair.current();
    let drive = pair.lower.maximum;
    let port = pair.upper.map(|port| port.maximum).unwrap_or_default();
    (
        standing(current.mega_transfers, drive.mega_transfers, port.mega_transfers),
        standing(current.width, drive.width, port.width),
    )
}

/// Bytes a second that a link carries one way, line encoding counted: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s,
/// 242 of 256 bytes of a flit from 64 GT/s on. Packet headers are not counted.
pub fn bandwidth(link: Link) -> Option<f64> {
    let (speed, width) = (f64::from(link.mega_transfers?), f64::from(link.width?));
    let share = match link.mega_transfers? {
        0..=5_000 => 8.0 / 10.0,
        5_001..64_000 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    Some(speed * 1e6 * share * width / 8.0)
}

/// Judges a link; `None` without any hop.
///
/// The bandwidth of the whole way is known only where it is known of every hop.
pub fn judge(link: &PcieLink) -> Option<LinkView> {
    let own = Pair::all(link).next()?;
    let (speed, width) = standings(link);
    let status = if speed == Standing::Below || width == Standing::Below {
        LinkStatus::Downgraded
    } else if speed == Standing::Unknown || width == Standing::Unknown {
        LinkStatus::Unknown
    } else if speed == Standing::PortLimited || width == Standing::PortLimited {
        LinkStatus::SlotLimited
    } else {
        LinkStatus::Ok
    };
    let (now, narrow) = narrowest(link, Pair::current);
    let (expected, _) = narrowest(link, Pair::expected);
    Some(LinkView {
        status,
        current: own.current(),
        expected: own.expected(),
        drive_maximum: own.lower.maximum,
        port: own.upper.map(|port| port.address.clone()),
        bandwidth_bytes_per_second: now,
        expected_bandwidth_bytes_per_second: expected,
        narrow_hop: narrow.map(str::to_owned),
    })
}

/// The least bandwidth of all hops, and the port above the hop that has it where that is not the drive's own.
fn narrowest<'a>(link: &'a PcieLink, of: impl Fn(Pair<'a>) -> Link) -> (Option<f64>, Option<&'a str>) {
    let mut least: Option<f64> = None;
    let mut at = None;
    for pair in Pair::all(link) {
        let Some(bytes) = bandwidth(of(pair)) else {
            return (None, None);
        };
        if least.is_none_or(|least| bytes < least) {
            at = least.is_some().then(|| pair.upper.unwrap_or(pair.lower).address.as_str());
            least = Some(bytes);
        }
    }
    (least, at)
}

/// A link in words: `x4 16 GT/s`; `None` when nothing is known of it.
pub fn words(link: Link) -> Option<String> {
    let speed = link.mega_transfers.map(|speed| match speed % 1000 {
        0 => format!("{} GT/s", speed / 1000),
        _ => format!("{}.{} GT/s", speed / 1000, speed % 1000 / 100),
    });
    match (link.width, speed) {
        (Some(width), Some(speed)) => Some(format!("x{width} {speed}")),
        (Some(width), None) => Some(format!("x{width}")),
        (None, speed) => speed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mega_transfers: u32, width: u8) -> Link {
        Link { mega_transfers: Some(mega_transfers), width: Some(width) }
    }

    fn hop(address: &str, current: Link, maximum: Link) -> Hop {
        Hop { address: address.to_owned(), current, maximum, suspended: false }
    }

    fn pair(current: Link, drive: Link, port: Link) -> PcieLink {
        PcieLink {
            hops: vec![hop("0000:01:00.0", current, drive), hop("0000:00:01.1", current, port)],
            faults: Vec::new(),
        }
    }

    fn status(current: Link, drive: Link, port: Link) -> LinkStatus {
        judge(&pair(current, drive, port)).unwrap().status
    }

    #[test]
    fn expected_is_the_smaller_of_drive_and_port() {
        assert_eq!(status(at(16_000, 4), at(16_000, 4), at(32_000, 16)), LinkStatus::Ok);
        assert_eq!(status(at(8_000, 4), at(16_000, 4), at(8_000, 8)), LinkStatus::SlotLimited, "G4: the server");
        assert_eq!(status(at(5_000, 1), at(8_000, 4), at(5_000, 1)), LinkStatus::SlotLimited, "G4: one lane");
        assert_eq!(status(at(8_000, 2), at(16_000, 4), at(16_000, 4)), LinkStatus::Downgraded);
        assert_eq!(status(at(8_000, 2), at(16_000, 4), at(8_000, 4)), LinkStatus::Downgraded, "speed is the slot's");
        let view = judge(&pair(at(8_000, 2), at(16_000, 4), at(16_000, 8))).unwrap();
        assert_eq!(view.expected, at(16_000, 4));
        assert_eq!(view.port.as_deref(), Some("0000:00:01.1"));
    }

    #[test]
    fn unknown_parts_are_unknown_but_a_known_narrow_width_is_a_downgrade() {
        let unknown = Link::default();
        let wide = |width| Link { mega_transfers: None, width: Some(width) };
        assert_eq!(status(unknown, at(16_000, 4), at(16_000, 4)), LinkStatus::Unknown);
        assert_eq!(status(at(8_000, 4), at(16_000, 4), unknown), LinkStatus::Unknown);
        assert_eq!(status(at(16_000, 4), at(16_000, 4), unknown), LinkStatus::Ok, "full whatever the port is");
        assert_eq!(status(at(8_000, 4), unknown, at(8_000, 4)), LinkStatus::Unknown);
        assert_eq!(status(wide(2), at(16_000, 4), at(16_000, 4)), LinkStatus::Downgraded);
        assert_eq!(status(wide(4), at(16_000, 4), at(16_000, 4)), LinkStatus::Unknown);
        assert!(judge(&PcieLink::default()).is_none());
    }

    #[test]
    fn a_suspended_end_is_unknown() {
        let mut link = pair(at(2_500, 1), at(16_000, 4), at(16_000, 4));
        link.hops[1].suspended = true;
        let view = judge(&link).unwrap();
        assert_eq!((view.status, view.current), (LinkStatus::Unknown, Link::default()));
        assert_eq!(view.bandwidth_bytes_per_second, None);
        assert!(view.expected_bandwidth_bytes_per_second.is_some());
    }

    #[test]
    fn line_encoding_is_counted() {
        let close = |link, bytes: f64| (bandwidth(link).unwrap() - bytes).abs() < 1e5;
        assert!(close(at(2_500, 1), 250e6));
        assert!(close(at(5_000, 4), 2e9));
        assert!(close(at(8_000, 2), 1_969.2e6));
        assert!(close(at(16_000, 4), 7_876.9e6));
        assert!(close(at(32_000, 4), 15_753.8e6));
        assert!(close(at(64_000, 4), 30_250e6));
        assert_eq!(bandwidth(Link { mega_transfers: Some(8_000), width: None }), None);
    }

    #[test]
    fn behind_a_switch_hops_pair_up_and_the_narrow_one_is_named() {
        let full = at(16_000, 4);
        let mut link = PcieLink {
            hops: vec![
                hop("0000:04:00.0", full, full),
                hop("0000:03:01.0", full, full),
                hop("0000:02:00.0", at(8_000, 4), at(16_000, 8)),
                hop("0000:00:01.0", at(8_000, 4), at(8_000, 16)),
            ],
            faults: Vec::new(),
        };
        let view = judge(&link).unwrap();
        assert_eq!(view.status, LinkStatus::Ok, "the drive's own hop is as it should be");
        assert_eq!(view.narrow_hop.as_deref(), Some("0000:00:01.0"));
        assert_eq!(view.bandwidth_bytes_per_second, bandwidth(at(8_000, 4)));
        assert_eq!(view.expected_bandwidth_bytes_per_second, bandwidth(full), "x8 8 GT/s is as wide as x4 16 GT/s");
        link.hops[2].current = Link::default();
        link.hops[3].current = Link::default();
        let view = judge(&link).unwrap();
        assert_eq!((view.bandwidth_bytes_per_second, view.narrow_hop), (None, None));
    }

    #[test]
    fn a_drive_without_a_port_above_has_no_expectation() {
        let alone = |current| PcieLink { hops: vec![hop("0000:01:00.0", current, at(16_000, 4))], faults: Vec::new() };
        assert_eq!(judge(&alone(at(8_000, 4))).unwrap().status, LinkStatus::Unknown);
        assert_eq!(judge(&alone(at(16_000, 4))).unwrap().status, LinkStatus::Ok);
    }

    #[test]
    fn links_are_named_as_people_do() {
        assert_eq!(words(at(16_000, 4)).as_deref(), Some("x4 16 GT/s"));
        assert_eq!(words(at(2_500, 1)).as_deref(), Some("x1 2.5 GT/s"));
        assert_eq!(words(Link { mega_transfers: None, width: Some(2) }).as_deref(), Some("x2"));
        assert_eq!(words(Link::default()), None);
    }
}
