//! Rewriting the PCIe links of emulated drives and ports.
//!
//! The emulator keeps each device's configuration space on its heap, and its link registers are read-only for the guest.
//! They are found there by vendor, device and class, and told apart by their first base address.

use super::topology::LinkSpeed;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

/// What a function is: vendor and device as the configuration space begins, subclass and class at offset 0ah.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    identity: [u8; 4],
    class: [u8; 2],
}

/// The emulator's NVMe endpoint (PCI class 0108h).
pub(super) const NVME_ENDPOINT: Kind = Kind { identity: [0x36, 0x1b, 0x10, 0x00], class: [0x08, 0x01] };
/// Upstream port of its switch (PCI class 0604h).
pub(super) const SWITCH_UPSTREAM: Kind = Kind { identity: [0x4c, 0x10, 0x32, 0x82], class: [0x04, 0x06] };
/// Downstream port of its switch.
pub(super) const SWITCH_DOWNSTREAM: Kind = Kind { identity: [0x4c, 0x10, 0x33, 0x82], class: [0x04, 0x06] };
/// Where subclass and class are.
const CLASS: usize = 0x0a;
/// Identifier of the PCI Express capability.
const PCI_EXPRESS: u8 = 0x10;
/// Where the list of capabilities begins.
const CAPABILITIES_POINTER: usize = 0x34;
/// First base address register.
const BASE_ADDRESS: usize = 0x10;
/// Link capabilities, link status and link capabilities 2, from the start of the PCI Express capability.
const LINK_CAPABILITIES: usize = 0x0c;
const LINK_STATUS: usize = 0x12;
const LINK_CAPABILITIES_2: usize = 0x2c;
/// Length of the conventional configuration space, which holds the list.
const CONFIGURATION_BYTES: usize = 256;
/// Mappings past this are the guest's memory, not the heap.
const LARGEST_HEAP: u64 = 256 << 20;
/// Entries of a list of capabilities that is not a loop.
const MOST_CAPABILITIES: usize = 48;

/// The memory of a running emulator.
pub(super) struct LinkRegisters {
    pid: u32,
    memory: File,
}

/// One function's registers.
struct Function {
    /// Address of its configuration space.
    at: u64,
    /// Offset of its PCI Express capability.
    express: usize,
    /// Guest-physical address of its first base address register.
    base: u64,
    space: Vec<u8>,
}

impl LinkRegisters {
    /// Opens a child's memory.
    ///
    /// # Errors
    /// When the kernel does not let this process.
    pub(super) fn open(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/mem");
        let memory = OpenOptions::new().read(true).write(true).open(&path).context(path)?;
        Ok(Self { pid, memory })
    }

    /// Gives every function of a kind capabilities and a link. Effective only before the guest has enumerated them.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn set_capabilities(&self, kind: Kind, speed: LinkSpeed, width: u8) -> Result<()> {
        let functions = self.functions(kind)?;
        if functions.is_empty() {
            bail!("no {kind:?} in the emulator's memory");
        }
        for function in &functions {
            let capabilities = function.word(LINK_CAPABILITIES) & !0x3ff | link_bits(speed, width);
            self.write(function, LINK_CAPABILITIES, &capabilities.to_le_bytes())?;
            // Bit n is the speed whose code is n.
            let supported = (1..=speed.code()).fold(0_u32, |bits, code| bits | 1 << code);
            self.write(function, LINK_CAPABILITIES_2, &supported.to_le_bytes())?;
            self.write_status(function, speed, width)?;
        }
        Ok(())
    }

    /// Sets the current link of the endpoint whose first base address is `base`.
    ///
    /// # Errors
    /// When there is not exactly one.
    pub(super) fn set_status(&self, base: u64, speed: LinkSpeed, width: u8) -> Result<()> {
        let endpoints = self.functions(NVME_ENDPOINT)?;
        let mut matching = endpoints.iter().filter(|endpoint| endpoint.base == base);
        let (Some(endpoint), None) = (matching.next(), matching.next()) else {
            bail!("not one NVMe endpoint at {base:#x} in the emulator's memory");
        };
        self.write_status(endpoint, speed, width)
    }

    fn write_status(&self, function: &Function, speed: LinkSpeed, width: u8) -> Result<()> {
        let status = function.word(LINK_STATUS) & 0xfc00 | link_bits(speed, width);
        self.write(function, LINK_STATUS, &status.to_le_bytes()[..2])
    }

    fn write(&self, function: &Function, register: usize, bytes: &[u8]) -> Result<()> {
        let at = function.at + u64::try_from(function.express + register)?;
        self.memory.write_all_at(bytes, at).context("writing the emulator's memory")
    }

    fn functions(&self, kind: Kind) -> Result<Vec<Function>> {
        let path = format!("/proc/{}/maps", self.pid);
        let maps = fs::read_to_string(&path).context(path)?;
        let mut found = Vec::new();
        for (start, end) in maps.lines().filter_map(private_memory) {
            if end - start > LARGEST_HEAP {
                continue;
            }
            let mut bytes = vec![0; usize::try_from(end - start)?];
            // A mapping may have gone since the list was read.
            if self.memory.read_exact_at(&mut bytes, start).is_ok() {
                found.extend(functions_in(&bytes, start, kind));
            }
        }
        Ok(found)
    }
}

/// Start and end of a private, writable, anonymous mapping in a line of proc_pid_maps(5).
fn private_memory(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    if fields.next()? != "rw-p" || fields.nth(2)? != "0" {
        return None;
    }
    match fields.next() {
        None | Some("[heap]") => Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?)),
        Some(_) => None,
    }
}

fn functions_in(bytes: &[u8], start: u64, kind: Kind) -> impl Iterator<Item = Function> {
    // The allocator aligns to 16 bytes.
    (0..bytes.len().saturating_sub(CONFIGURATION_BYTES)).step_by(16).filter_map(move |offset| {
        let space = &bytes[offset..offset + CONFIGURATION_BYTES];
        if space[..4] != kind.identity || space[CLASS..CLASS + 2] != kind.class {
            return None;
        }
        let express = express_capability(space)?;
        let base = u64::from(word(space, BASE_ADDRESS) & !0xf) | u64::from(word(space, BASE_ADDRESS + 4)) << 32;
        Some(Function { at: start + u64::try_from(offset).ok()?, express, base, space: space.to_vec() })
    })
}

fn express_capability(space: &[u8]) -> Option<usize> {
    let mut at = usize::from(space[CAPABILITIES_POINTER]);
    for _ in 0..MOST_CAPABILITIES {
        if at < 0x40 || at + LINK_CAPABILITIES_2 + 4 > space.len() {
            return None;
        }
        if space[at] == PCI_EXPRESS {
            return Some(at);
        }
        at = usize::from(space[at + 1]);
    }
    None
}

impl Function {
    /// Four bytes of the PCI Express capability from `register` on.
    fn word(&self, register: usize) -> u32 {
        word(&self.space, self.express + register)
    }
}

fn word(space: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([space[at], space[at + 1], space[at + 2], space[at + 3]])
}

/// Speed and width as link capabilities and link status both encode them.
fn link_bits(speed: LinkSpeed, width: u8) -> u32 {
    u32::from(speed.code()) | u32::from(width) << 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space_with_link(base: u32) -> Vec<u8> {
        let mut space = vec![0; 0x1000];
        space[..4].copy_from_slice(&NVME_ENDPOINT.identity);
        space[0x0a..0x0c].copy_from_slice(&[0x08, 0x01]);
        space[0x10..0x14].copy_from_slice(&(base | 4).to_le_bytes());
        space[0x34] = 0x40;
        space[0x40..0x42].copy_from_slice(&[0x11, 0x80]);
        space[0x80] = PCI_EXPRESS;
        space
    }

    #[test]
    fn an_endpoint_is_found_by_its_identity_and_its_capability() {
        let mut memory = vec![0; 0x40];
        memory.extend(space_with_link(0xfe00_0000));
        let found: Vec<Function> = functions_in(&memory, 0x5000, NVME_ENDPOINT).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].at, found[0].express, found[0].base), (0x5040, 0x80, 0xfe00_0000));
    }

    #[test]
    fn a_looping_list_of_capabilities_is_no_endpoint() {
        let mut space = space_with_link(0);
        space[0x80..0x82].copy_from_slice(&[0x05, 0x40]);
        assert_eq!(functions_in(&space, 0, NVME_ENDPOINT).count(), 0);
    }

    #[test]
    fn only_private_anonymous_memory_is_searched() {
        assert_eq!(private_memory("1000-2000 rw-p 00000000 00:00 0 [heap]"), Some((0x1000, 0x2000)));
        assert_eq!(private_memory("1000-2000 rw-p 00000000 00:00 0"), Some((0x1000, 0x2000)));
        assert_eq!(private_memory("1000-2000 r--p 00000000 00:00 0"), None);
        assert_eq!(private_memory("1000-2000 rw-p 00000000 fe:00 12 file.so"), None);
    }
}
