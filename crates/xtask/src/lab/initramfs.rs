//! The guest's root file system: what was chosen of the packages, the programs under test and the start-up scripts.

use super::agent::Programs;
use super::guest_files::{self, GuestFile};
use super::sysroot::Sysroot;
use super::systemd;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Folder of the programs under test, in the guest.
pub(super) const PROGRAMS: &str = "/lab";
/// Start-up scripts, by their paths in the guest.
const SCRIPTS: [(&str, &str); 4] = [
    ("init", include_str!("../../../../tests/lab/guest/init.sh")),
    ("lab/start.sh", include_str!("../../../../tests/lab/guest/start.sh")),
    ("lab/managed.sh", include_str!("../../../../tests/lab/guest/managed.sh")),
    ("lab/stacks.sh", include_str!("../../../../tests/lab/guest/stacks.sh")),
];
/// Mount points and folders that start-up expects.
const DIRECTORIES: [&str; 9] = ["proc", "sys", "dev", "run", "tmp", "etc", "mnt", "root", "var"];

/// File type bits of cpio's mode field, as in stat(2).
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// Builds the archive at `path`.
///
/// # Errors
/// When a file cannot be read or the archive cannot be written.
pub(super) fn build(sysroot: &Sysroot, programs: &Programs, path: &Path) -> Result<()> {
    let output = File::create(path).with_context(|| path.display().to_string())?;
    let mut archive = Archive::new(BufWriter::new(output));
    let mut files = guest_files::choose(sysroot)?;
    systemd::add(sysroot, &mut files)?;
    for (program, name) in [(&programs.agent, "storscope"), (&programs.ask, "ask")] {
        let place = format!("{}/{name}", PROGRAMS.trim_start_matches('/'));
        files.insert(place, GuestFile::Copy(program.clone(), 0o755));
    }
    for directory in DIRECTORIES {
        archive.add_directory(directory)?;
    }
    for (place, file) in &files {
        match file {
            GuestFile::Copy(source, permissions) => {
                let content = fs::read(source).with_context(|| source.display().to_string())?;
                archive.add_file(place, REGULAR | permissions, &content)?;
            }
            GuestFile::Text(text) => archive.add_file(place, REGULAR | 0o644, text.as_bytes())?,
            GuestFile::Link(target) => archive.add_file(place, LINK | 0o777, target.as_bytes())?,
        }
    }
    for (place, script) in SCRIPTS {
        archive.add_file(place, REGULAR | 0o755, script.as_bytes())?;
    }
    archive.finish().with_context(|| path.display().to_string())
}

/// A cpio archive in the "new ASCII" format that the kernel reads (Documentation/driver-api/early-userspace/buffer-format.rst).
struct Archive<W> {
    output: W,
    /// Bytes written.
    length: usize,
    entries: u32,
    directories: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    fn new(output: W) -> Self {
        Self { output, length: 0, entries: 0, directories: BTreeSet::new() }
    }

    /// Adds a file or link with the directories that it lies in.
    fn add_file(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<()> {
        if let Some((directory, _)) = name.rsplit_once('/') {
            self.add_directory(directory)?;
        }
        self.add(name, mode, 1, content)
    }

    /// Adds a directory with those that it lies in, unless it is there.
    fn add_directory(&mut self, name: &str) -> Result<()> {
        if self.directories.contains(name) {
            return Ok(());
        }
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.add_directory(parent)?;
        }
        self.directories.insert(name.to_owned());
        self.add(name, DIRECTORY | 0o755, 2, &[])
    }

    fn add(&mut self, name: &str, mode: u32, links: u32, content: &[u8]) -> Result<()> {
        self.entries += 1;
        let size = u32::try_from(content.len()).with_context(|| format!("{name}: too large for the archive"))?;
        let name_size = u32::try_from(name.len() + 1).with_context(|| format!("{name}: too long for the archive"))?;
        // Inode, mode, owner, group, links, modification time, size, device numbers, name's size, check sum.
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut header = String::from("070701");
        header.extend(fields.map(|field| format!("{field:08x}")));
        self.write(header.as_bytes())?;
        self.write(name.as_bytes())?;
        self.write(&[0])?;
        self.align()?;
        self.write(content)?;
        self.align()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.length += bytes.len();
        self.output.write_all(bytes).context("the archive cannot be written")
    }

    /// Pads to the format's four bytes.
    fn align(&mut self) -> Result<()> {
        let padding = self.length.next_multiple_of(4) - self.length;
        self.write(&[0; 3][..padding])
    }

    fn finish(mut self) -> Result<()> {
        self.add("TRAILER!!!", 0, 1, &[])?;
        self.output.flush().context("the archive cannot be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_aligned_has_its_directories_and_ends_with_its_trailer() {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        archive.add_file("d/a", REGULAR | 0o644, b"hello").unwrap();
        archive.add_file("d/b", LINK | 0o777, b"a").unwrap();
        archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        // 110 bytes of header, the name and its NUL, padding, then the content.
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[14..22], b"000041ed");
        assert_eq!(&bytes[110..112], b"d\0");
        let file = &bytes[112..];
        assert_eq!(&file[54..62], b"00000005");
        assert_eq!(&file[110..114], b"d/a\0");
        assert_eq!(&file[116..121], b"hello");
        let link = &file[124..];
        assert_eq!(&link[14..22], b"0000a1ff");
        assert_eq!(&link[116..117], b"a");
        assert_eq!(&link[120 + 110..120 + 120], b"TRAILER!!!");
        assert_eq!(bytes.windows(2).filter(|two| two == b"d\0").count(), 1, "one directory entry");
    }
}
