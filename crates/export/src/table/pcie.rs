//! PCIe links of NVMe controllers and their error counters.

use super::{Collect, Group, IntoValue, Kind, Metric, Samples};
use storscope_model::sample::pcie::Hop;
use storscope_model::view::{LinkStatus, LinkView, View};

const LINK: &str = "current_link_speed, current_link_width, max_link_speed, max_link_width";

const fn gauge(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: &["controller", "port"], source: LINK, collect }
}

const fn hop(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { labels: &["controller", "hop"], ..gauge(name, help, collect) }
}

fn each<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&LinkView) -> V) {
    for controller in &view.controllers {
        if let Some(link) = &controller.link {
            let port = link.port.as_deref().unwrap_or_default();
            out.put(&[&controller.state.controller.name, port], value(link));
        }
    }
}

fn hops<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&Hop) -> V) {
    for controller in &view.controllers {
        if let Some(link) = controller.state.link.fresh() {
            for hop in &link.hops {
                out.put(&[&controller.state.controller.name, &hop.address], value(hop));
            }
        }
    }
}

fn transfers(mega: Option<u32>) -> Option<u64> {
    mega.map(|mega| u64::from(mega) * 1_000_000)
}

fn judged(link: &LinkView, is: LinkStatus) -> Option<bool> {
    (link.status != LinkStatus::Unknown).then_some(link.status == is)
}

pub(super) static GROUP: Group = Group {
    title: "PCIe",
    about: "`port` is the PCI address of the port directly above the drive. Expected is what both ends of that hop can do; \
        bandwidth is that of the narrowest hop up to the root, line encoding counted. An idle drive may lower its speed to \
        save power: alert on `storscope_finding{rule=…}`, which waits and looks under load. A drive that is not on PCIe has \
        no series here. For error counters `port` is the address of the function that counted: the drive's own, or that of \
        the port directly above.",
    metrics: &[
        gauge("storscope_pcie_link_speed_transfers_per_second", "Speed of a lane now.", |view, out| {
            each(view, out, |link| transfers(link.current.mega_transfers));
        }),
        gauge("storscope_pcie_link_width_lanes", "Width now.", |view, out| {
            each(view, out, |link| link.current.width);
        }),
        gauge(
            "storscope_pcie_link_expected_speed_transfers_per_second",
            "Speed of a lane that drive and port can both do.",
            |view, out| each(view, out, |link| transfers(link.expected.mega_transfers)),
        ),
        gauge("storscope_pcie_link_expected_width_lanes", "Width that drive and port can both do.", |view, out| {
            each(view, out, |link| link.expected.width);
        }),
        gauge(
            "storscope_pcie_link_maximum_speed_transfers_per_second",
            "Speed of a lane that the drive can do.",
            |view, out| each(view, out, |link| transfers(link.drive_maximum.mega_transfers)),
        ),
        gauge("storscope_pcie_link_maximum_width_lanes", "Width that the drive can do.", |view, out| {
            each(view, out, |link| link.drive_maximum.width);
        }),
        gauge(
            "storscope_pcie_link_bandwidth_bytes_per_second",
            "Bandwidth of the narrowest hop from drive to root, now.",
            |view, out| each(view, out, |link| link.bandwidth_bytes_per_second),
        ),
        gauge(
            "storscope_pcie_link_expected_bandwidth_bytes_per_second",
            "Bandwidth of the narrowest hop, each as it should be.",
            |view, out| each(view, out, |link| link.expected_bandwidth_bytes_per_second),
        ),
        gauge(
            "storscope_pcie_link_downgraded",
            "1 when the link is below what drive and port can do; absent when that is unknown.",
            |view, out| each(view, out, |link| judged(link, LinkStatus::Downgraded)),
        ),
        gauge(
            "storscope_pcie_link_slot_limited",
            "1 when the port allows less than the drive can do; information, no fault.",
            |view, out| each(view, out, |link| judged(link, LinkStatus::SlotLimited)),
        ),
        Metric {
            kind: Kind::Counter,
            ..gauge(
                "storscope_pcie_link_changes_total",
                "Changes of speed or width that this process saw.",
                |view, out| {
                    for controller in &view.controllers {
                        if let Some(link) = &controller.link {
                            let port = link.port.as_deref().unwrap_or_default();
                            out.put(&[&controller.state.controller.name, port], controller.link_changes);
                        }
                    }
                },
            )
        },
        hop(
            "storscope_pcie_narrow_hop",
            "1 for the hop that limits the bandwidth, where it is not the drive's own.",
            |view, out| {
                for controller in &view.controllers {
                    if let Some(narrow) = controller.link.as_ref().and_then(|link| link.narrow_hop.as_ref()) {
                        out.put(&[&controller.state.controller.name, narrow], true);
                    }
                }
            },
        ),
        hop(
            "storscope_pcie_hop_speed_transfers_per_second",
            "Speed of a lane now, of each function from the drive up to the root port.",
            |view, out| hops(view, out, |hop| transfers(hop.current.mega_transfers)),
        ),
        hop(
            "storscope_pcie_hop_width_lanes",
            "Width now, of each function from the drive up to the root port.",
            |view, out| hops(view, out, |hop| hop.current.width),
        ),
        hop(
            "storscope_pcie_hop_maximum_speed_transfers_per_second",
            "Speed of a lane that each function can do.",
            |view, out| hops(view, out, |hop| transfers(hop.maximum.mega_transfers)),
        ),
        hop("storscope_pcie_hop_maximum_width_lanes", "Width that each function can do.", |view, out| {
            hops(view, out, |hop| hop.maximum.width);
        }),
        Metric {
            name: "storscope_pcie_aer_errors_total",
            kind: Kind::Counter,
            help: "PCIe errors by severity and the kernel's name of the error.",
            labels: &["controller", "port", "severity", "error"],
            source: "aer_dev_correctable, aer_dev_nonfatal, aer_dev_fatal",
            collect: |view, out| {
                for controller in &view.controllers {
                    let Some(aer) = controller.state.aer.fresh() else {
                        continue;
                    };
                    for function in &aer.functions {
                        for counter in &function.counters {
                            out.put(
                                &[
                                    &controller.state.controller.name,
                                    &function.address,
                                    counter.severity.as_str(),
                                    &counter.error,
                                ],
                                counter.count,
                            );
                        }
                    }
                }
            },
        },
    ],
};
