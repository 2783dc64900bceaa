//! The files of procfs that the agent reads, and the links below /dev that mounts and swap areas go by.

use super::attributes::{PROC, SWAPS};
use super::desk::Desk;
use super::tree::Node;
use storscope_collect::attribute::{self, MAX_ATTRIBUTE};
use storscope_collect::root::Root;

/// Longest file of procfs that is copied, in bytes: diskstats of some 30,000 devices.
const MAX_FILE: usize = 8 << 20;
/// Most links below /dev.
const MAX_LINKS: usize = 4096;

/// Copies them.
pub(super) fn copy(desk: &Desk) {
    let mut swaps = Vec::new();
    for name in PROC {
        let content = desk.file(&desk.root().proc(name), MAX_FILE);
        if name == SWAPS {
            swaps = content.unwrap_or_default();
        }
    }
    capabilities(desk);
    // The mounts as the first process sees them are the host's; this process may live in a namespace of its own.
    let mounts = ["1/mountinfo", "self/mountinfo"];
    let mounts = mounts.iter().find_map(|name| desk.file(&desk.root().proc(name), MAX_FILE)).unwrap_or_default();
    for name in node_names(&[mounts, swaps].concat()) {
        desk.link(&desk.root().node(&name));
    }
}

/// What the captor might do: of the status of this process, its effective capabilities only. A captured one is copied.
fn capabilities(desk: &Desk) {
    const PATH: &str = "self/status";
    let root = desk.root();
    let own = if root.live { Root::live().proc(PATH) } else { root.proc(PATH) };
    let status = attribute::read_bytes(&own, MAX_ATTRIBUTE).ok().flatten().unwrap_or_default();
    let line = status.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"CapEff:"));
    if let (Some(line), Some(place)) = (line, desk.place(&root.proc(PATH))) {
        desk.put(place, Node::File([line, b"\n"].concat()));
    }
}

/// Names of device nodes in `text`, each once. A file system over several devices names them all, with colons between.
fn node_names(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut names: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c == ':')
        .filter_map(Root::node_name)
        .filter(|name| !name.split('/').any(|part| part == ".." || part.is_empty()))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(MAX_LINKS);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_mounts_and_swap() {
        let text = b"36 35 0:31 / / rw - bcachefs /dev/sdc1:/dev/sdc2 rw\n\
            37 35 0:5 / /x rw - tmpfs tmpfs rw\n38 35 8:1 / /y rw - ext4 /dev/disk/by-uuid/1-2 rw\n\
            /dev/dm-2   partition 1 0 -2\n/dev/../etc/passwd partition\n/dev/sdc1 partition\n";
        assert_eq!(node_names(text), ["disk/by-uuid/1-2", "dm-2", "sdc1", "sdc2"]);
    }
}
