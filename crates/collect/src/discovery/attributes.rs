//! Reads of attributes that note a fault and go on.

use super::inquiry;
use crate::attribute::{self, MAX_ATTRIBUTE};
use nix::errno::Errno;
use std::collections::BTreeSet;
use std::path::Path;
use storscope_model::fault::Fault;

/// Most faults that one scan keeps.
pub const MAX_FAULTS: usize = 64;
/// Longest text of a device that is kept, in bytes; the NVMe NQN, the longest there is, has at most 223 bytes.
pub const MAX_TEXT: usize = 256;

/// A reader that turns what cannot be read into an absent value and a bounded list of faults.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    faults: Vec<Fault>,
    /// Kernel name of what is being read.
    subject: String,
    unread: BTreeSet<String>,
    incomplete: Option<Fault>,
}

/// What a whole scan could not read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// What was noted.
    pub(super) faults: Vec<Fault>,
    /// Kernel names of what could not be read in full for now.
    pub(super) names: BTreeSet<String>,
    /// Why not everything was found, if so.
    pub(super) incomplete: Option<Fault>,
}

impl Attributes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A device that vanishes while it is read is told by the next scan, not as a fault.
    pub(crate) fn note(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS && fault != Fault::Gone {
            self.faults.push(fault);
        }
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.faults
    }

    pub(super) fn into_unread(self) -> Unread {
        Unread { faults: self.faults, names: self.unread, incomplete: self.incomplete }
    }

    /// Why devices may be missing from what was listed.
    pub(crate) const fn incomplete(&self) -> Option<&Fault> {
        self.incomplete.as_ref()
    }

    /// From now on the device or controller `name` is read.
    pub(super) fn about(&mut self, name: &str) {
        name.clone_into(&mut self.subject);
    }

    /// Marks `name` as not read in full.
    pub(super) fn mark_unread(&mut self, name: &str) {
        self.unread.insert(name.to_owned());
    }

    /// True when something of `name` could not be read for now.
    pub(super) fn is_unread(&self, name: &str) -> bool {
        self.unread.contains(name)
    }

    /// An I/O error, such as too many open files, says nothing of the device: what is absent for it may be there.
    pub(super) fn failed(&mut self, fault: Fault) {
        if matches!(fault, Fault::Io { .. }) && !self.subject.is_empty() {
            self.unread.insert(self.subject.clone());
        }
        self.note(fault);
    }

    /// Notes that devices may be missing from what was found.
    fn miss(&mut self, fault: Fault) {
        if fault != Fault::Gone {
            self.incomplete.get_or_insert_with(|| fault.clone());
        }
        self.note(fault);
    }

    pub(crate) fn bytes(&mut self, path: &Path) -> Option<Vec<u8>> {
        match attribute::read_bytes(path, MAX_ATTRIBUTE) {
            Ok(bytes) => bytes,
            // A folder where an attribute should be has no content: the same as no attribute.
            Err(Fault::Io { errno, .. }) if errno == Errno::EISDIR as i32 => None,
            Err(fault) => {
                self.failed(fault);
                None
            }
        }
    }

    /// Text of a device, as [`inquiry::text`] cleans it.
    pub(crate) fn text(&mut self, path: &Path) -> Option<String> {
        inquiry::text(&self.bytes(path)?)
    }

    /// An unsigned decimal number.
    pub(crate) fn number(&mut self, path: &Path) -> Option<u64> {
        let text = self.text(path)?;
        match text.parse() {
            Ok(number) => Some(number),
            Err(_) => {
                self.note(Fault::parse(path.display().to_string(), 1, "not an unsigned number", text.as_bytes()));
                None
            }
        }
    }

    /// An unsigned decimal number of 32 bits.
    pub(crate) fn number32(&mut self, path: &Path) -> Option<u32> {
        let wide = self.number(path)?;
        match u32::try_from(wide) {
            Ok(number) => Some(number),
            Err(_) => {
                self.note(Fault::parse(
                    path.display().to_string(),
                    1,
                    "does not fit 32 bits",
                    wide.to_string().as_bytes(),
                ));
                None
            }
        }
    }

    /// 0 or 1.
    pub(crate) fn flag(&mut self, path: &Path) -> Option<bool> {
        self.number(path).map(|number| number != 0)
    }

    /// `numa_node`: the kernel prints -1 where the firmware names none.
    pub(crate) fn numa_node(&mut self, folder: &Path) -> Option<u32> {
        let path = folder.join("numa_node");
        let text = self.text(&path)?;
        match text.parse::<i64>() {
            Ok(node) => u32::try_from(node).ok(),
            Err(_) => {
                self.note(Fault::parse(path.display().to_string(), 1, "not a number", text.as_bytes()));
                None
            }
        }
    }

    /// Names in a folder, sorted; none when there is no such folder.
    pub(crate) fn names(&mut self, folder: &Path, most: usize) -> Vec<String> {
        let (names, fault) = self.listing(folder, most);
        if let Some(fault) = fault {
            self.failed(fault);
        }
        names
    }

    /// As [`Self::names`], of a folder that lists devices or controllers: without it, some may be missing.
    pub(crate) fn list(&mut self, folder: &Path, most: usize) -> Vec<String> {
        let (names, fault) = self.listing(folder, most);
        if let Some(fault) = fault {
            self.miss(fault);
        }
        names
    }

    /// True for a folder. Where that cannot be told, a device may be missing.
    pub(super) fn is_folder(&mut self, path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(metadata) => metadata.is_dir(),
            Err(error) => {
                if let Some(fault) = attribute::fault(path, &error) {
                    self.miss(fault);
                }
                false
            }
        }
    }

    /// Names in a folder, and why there may be more.
    fn listing(&mut self, folder: &Path, most: usize) -> (Vec<String>, Option<Fault>) {
        let (mut names, error) = attribute::names(folder, most);
        if names.len() > most {
            names.pop();
            self.note(Fault::Parse {
                path: folder.display().to_string(),
                line: 0,
                what: format!("more than {most} entries; the rest is left out"),
            });
        }
        let failed = error.and_then(|error| attribute::fault(folder, &error));
        names.sort_unstable();
        (names, failed)
    }
}
