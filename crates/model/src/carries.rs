//! What a device carries: its partitions and holders up to mount points and swap.

use crate::sample::stack::{Node, Stack};
use std::collections::HashMap;

/// Most lines of one device.
pub const MAX_LINES: usize = 8;
/// Most devices on top of each other that are followed; cycles end here too.
pub const MAX_DEPTH: usize = 16;
/// Most nodes that are looked at for one device.
const MAX_VISITS: usize = 1024;

/// The stack, by kernel name.
#[derive(Debug)]
pub struct Carriers<'a> {
    nodes: HashMap<&'a str, &'a Node>,
}

impl<'a> Carriers<'a> {
    /// Indexes a stack.
    pub fn new(stack: &'a Stack) -> Self {
        Self { nodes: stack.nodes.iter().map(|node| (node.name.as_str(), node)).collect() }
    }

    /// What the device carries, a line each way up: `md0 (raid1, 2 of 2) > vg0/data > /var/lib/postgresql (ext4)`.
    /// `nothing mounted` when the device is known and nothing of it is in use; empty when the device is not known.
    pub fn lines(&self, device: &str) -> Vec<String> {
        let Some(node) = self.nodes.get(device) else {
            return Vec::new();
        };
        let mut walk = Walk { carriers: self, lines: Vec::new(), more: 0, visits: 0 };
        walk.up(node, &mut Vec::new());
        let (mut lines, more) = (walk.lines, walk.more);
        if more > 0 {
            lines.pop();
            lines.push(format!("and {} more", more + 1));
        }
        if lines.is_empty() {
            lines.push("nothing mounted".to_owned());
        }
        lines
    }

    /// Kernel names of the nodes above `device`, itself included.
    fn above(&self, device: &'a str) -> Vec<&'a Node> {
        let mut found: Vec<&Node> = self.nodes.get(device).copied().into_iter().collect();
        let mut next = 0;
        while let Some(node) = found.get(next).copied() {
            next += 1;
            for name in &node.above {
                if let Some(above) = self.nodes.get(name.as_str())
                    && found.len() < MAX_VISITS
                    && !found.iter().any(|known| known.name == above.name)
                {
                    found.push(above);
                }
            }
        }
        found
    }

    /// Whole mirrors on `device`, and which of `others` hold the other copy: `md0 has a good copy on nvme2n1`.
    pub fn mirrors(&self, device: &'a str, others: &[&'a str]) -> Vec<String> {
        let mut said = Vec::new();
        for node in self.above(device) {
            if said.len() >= MAX_LINES || !node.label.as_deref().is_some_and(is_whole_mirror) {
                continue;
            }
            let has =
                |other: &&&'a str| **other != device && self.above(other).iter().any(|above| above.name == node.name);
            let copies: Vec<&&str> = others.iter().filter(has).collect();
            if !copies.is_empty() {
                said.push(format!("{} has a good copy on {}", node.name, crate::phrase::names(&copies, 3)));
            }
        }
        said
    }
}

/// True of a label such as `md0 (raid1, 2 of 2)`.
fn is_whole_mirror(label: &str) -> bool {
    let Some((_, counts)) = label.split_once("(raid1, ") else {
        return false;
    };
    let Some((there, all)) = counts.trim_end_matches(')').split_once(" of ") else {
        return false;
    };
    there == all && all.parse::<u32>().is_ok_and(|all| all >= 2)
}

struct Walk<'a, 'b> {
    carriers: &'b Carriers<'a>,
    lines: Vec<String>,
    more: usize,
    visits: usize,
}

impl<'a> Walk<'a, '_> {
    /// Goes up from `node`; `way` is what lies below it, the device itself left out.
    fn up(&mut self, node: &'a Node, way: &mut Vec<&'a Node>) {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return;
        }
        for mount in &node.mounts {
            self.line(way, &format!("{} ({})", mount.point, mount.fs_type));
        }
        if node.swap {
            self.line(way, "swap");
        }
        if way.len() >= MAX_DEPTH {
            return;
        }
        let mut leads_on = false;
        for name in &node.above {
            let above = self.carriers.nodes.get(name.as_str()).copied();
            if let Some(above) = above.filter(|above| !way.iter().any(|below| below.name == above.name)) {
                leads_on = true;
                way.push(above);
                self.up(above, way);
                way.pop();
            }
        }
        let idle = node.mounts.is_empty() && !node.swap && !leads_on;
        if idle && let Some((top, below)) = way.split_last().filter(|_| has_holder(way)) {
            self.line(below, name(top));
        }
    }

    fn line(&mut self, way: &[&Node], end: &str) {
        if self.lines.len() == MAX_LINES {
            self.more += 1;
            return;
        }
        // A partition is named only where nothing above it says more.
        let mut parts: Vec<&str> = way.iter().filter(|node| node.label.is_some()).map(|node| name(node)).collect();
        if parts.is_empty() {
            parts = way.last().map(|node| name(node)).into_iter().collect();
        }
        parts.push(end);
        let line = parts.join(" > ");
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }
}

fn name(node: &Node) -> &str {
    node.label.as_deref().unwrap_or(&node.name)
}

/// True when something more than partitions is on the way: a holder that nothing uses is still told.
fn has_holder(way: &[&Node]) -> bool {
    way.iter().any(|node| node.label.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::stack::Mount;

    fn node(name: &str, label: Option<&str>, above: &[&str], mounts: &[(&str, &str)]) -> Node {
        Node {
            name: name.to_owned(),
            label: label.map(str::to_owned),
            above: above.iter().map(|name| (*name).to_owned()).collect(),
            mounts: mounts
                .iter()
                .map(|(point, fs_type)| Mount { point: (*point).to_owned(), fs_type: (*fs_type).to_owned() })
                .collect(),
            swap: false,
        }
    }

    fn lines(nodes: Vec<Node>, device: &str) -> Vec<String> {
        Carriers::new(&Stack { nodes, ..Stack::default() }).lines(device)
    }

    fn database() -> Vec<Node> {
        vec![
            node("nvme1n1", None, &["nvme1n1p1", "nvme1n1p2"], &[]),
            node("nvme1n1p1", None, &[], &[("/boot", "ext4")]),
            node("nvme1n1p2", None, &["md0"], &[]),
            node("nvme2n1", None, &["md0"], &[]),
            node("nvme3n1", None, &[], &[]),
            node("md0", Some("md0 (raid1, 2 of 2)"), &["dm-0"], &[]),
            node("dm-0", Some("vg0/data"), &[], &[("/var/lib/postgresql", "ext4")]),
        ]
    }

    #[test]
    fn each_way_up_is_a_line() {
        assert_eq!(
            lines(database(), "nvme1n1"),
            ["nvme1n1p1 > /boot (ext4)", "md0 (raid1, 2 of 2) > vg0/data > /var/lib/postgresql (ext4)"]
        );
    }

    #[test]
    fn the_other_half_of_a_whole_mirror_is_named() {
        let stack = Stack { nodes: database(), ..Stack::default() };
        let carriers = Carriers::new(&stack);
        let others = ["nvme1n1", "nvme2n1", "nvme3n1"];
        assert_eq!(carriers.mirrors("nvme1n1", &others), ["md0 has a good copy on nvme2n1"]);
        let mut degraded = database();
        degraded[5].label = Some("md0 (raid1, 1 of 2)".to_owned());
        let degraded = Stack { nodes: degraded, ..Stack::default() };
        assert!(Carriers::new(&degraded).mirrors("nvme1n1", &others).is_empty());
    }

    #[test]
    fn swap_and_nothing_are_told_and_the_unknown_is_not() {
        let mut swap = node("sda", None, &[], &[]);
        swap.swap = true;
        assert_eq!(lines(vec![swap], "sda"), ["swap"]);
        assert_eq!(lines(vec![node("sda", None, &["sda1"], &[])], "sda"), ["nothing mounted"]);
        assert!(lines(vec![], "sda").is_empty());
    }

    #[test]
    fn a_holder_that_nothing_uses_is_still_told() {
        let nodes = vec![node("sda", None, &["md0"], &[]), node("md0", Some("md0 (raid1, 2 of 2)"), &[], &[])];
        assert_eq!(lines(nodes, "sda"), ["md0 (raid1, 2 of 2)"]);
    }

    #[test]
    fn a_mounted_whole_disk_is_its_mount_point() {
        assert_eq!(lines(vec![node("nvme0n1", None, &[], &[("/", "ext4")])], "nvme0n1"), ["/ (ext4)"]);
    }

    #[test]
    fn cycles_depth_and_crowds_are_bounded() {
        let cycle = vec![node("a", None, &["b"], &[]), node("b", None, &["a", "b"], &[("/x", "xfs")])];
        assert!(lines(cycle, "a").contains(&"b > /x (xfs)".to_owned()));
        let names: Vec<String> = (0..40).map(|n| format!("dm-{n}")).collect();
        let deep = (0..40).map(|n| {
            let above: Vec<&str> = names.get(n + 1).map(String::as_str).into_iter().collect();
            node(&names[n], Some("l"), &above, if n == 39 { &[("/deep", "xfs")] } else { &[] })
        });
        assert!(!lines(deep.collect(), "dm-0").iter().any(|line| line.contains("/deep")));
        let points: Vec<(String, String)> = (0..20).map(|n| (format!("/m{n}"), "xfs".to_owned())).collect();
        let mounts: Vec<(&str, &str)> = points.iter().map(|(point, fs)| (point.as_str(), fs.as_str())).collect();
        let crowd = lines(vec![node("sda", None, &[], &mounts)], "sda");
        assert_eq!((crowd.len(), crowd[7].as_str()), (MAX_LINES, "and 13 more"));
        let everyone: Vec<&str> = names.iter().map(String::as_str).collect();
        let mesh = names.iter().map(|name| node(name, None, &everyone, &[])).collect();
        assert_eq!(lines(mesh, "dm-0").len(), 1, "every node above every other ends in time");
    }
}
