//! Writing a capture, and looking through what was written.

use super::dictionary::Dictionary;
use super::scrub::left_in;
use super::tree::{Node, Tree};
use anyhow::{Context, bail};
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::Path;
use storscope_drive::{denied_by, denied_target};

/// Only its owner reads a capture until he hands it on.
const MODE: u32 = 0o700;

/// The file that tells what a capture is and what it lacks.
pub(super) const ABOUT: &str = "CAPTURE.txt";

/// Makes sure that `dir` is an empty directory.
///
/// # Errors
/// When it holds something, is no directory, or cannot be made.
pub(super) fn prepare(dir: &Path) -> anyhow::Result<()> {
    match fs::read_dir(dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                bail!("{} is not empty: a capture needs a directory of its own", dir.display());
            }
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => DirBuilder::new()
            .recursive(true)
            .mode(MODE)
            .create(dir)
            .with_context(|| format!("{} cannot be made", dir.display())),
        Err(error) => Err(error).with_context(|| format!("{} is no directory to write into", dir.display())),
    }
}

/// Writes all entries of `tree` and the text `about` into `dir`.
///
/// # Errors
/// The first file that cannot be written.
pub(super) fn write(dir: &Path, tree: &Tree, about: &str) -> anyhow::Result<()> {
    for (path, node) in tree.iter() {
        let place = dir.join(path);
        entry(&place, node).with_context(|| format!("{} cannot be written", place.display()))?;
    }
    let place = dir.join(ABOUT);
    fs::write(&place, about).with_context(|| format!("{} cannot be written", place.display()))
}

fn entry(place: &Path, node: &Node) -> std::io::Result<()> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    match node {
        Node::Folder => fs::create_dir_all(place),
        // Never through a link that lies in the way.
        Node::File(bytes) => File::create_new(place)?.write_all(bytes),
        Node::Link(target) => symlink(target, place),
        Node::Denied(errno) => match denied_target(*errno) {
            Some(target) => symlink(target, place),
            None => Ok(()),
        },
    }
}

/// Bytes that `dir` and everything in it take on the disk.
///
/// # Errors
/// The first entry that cannot be looked at.
pub(super) fn on_disk(dir: &Path) -> std::io::Result<u64> {
    /// Unit of `st_blocks` (stat(2)).
    const BLOCK: u64 = 512;
    let mut blocks = fs::symlink_metadata(dir)?.blocks();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder)? {
            let item = item?;
            let metadata = item.metadata()?;
            blocks = blocks.saturating_add(metadata.blocks());
            if metadata.is_dir() {
                folders.push(item.path());
            }
        }
    }
    Ok(blocks.saturating_mul(BLOCK))
}

/// Looks through every file, name and link target in `dir` for the identities of `dictionary`. What tells of the capture
/// is `about`, in words of its own.
///
/// # Errors
/// Names the place in which one is left, or that could not be looked at.
pub(super) fn verify(dir: &Path, dictionary: &Dictionary, about: &str) -> anyhow::Result<()> {
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let path = dir.join(&folder);
        for item in fs::read_dir(&path).with_context(|| format!("{} cannot be read", path.display()))? {
            let item = item?;
            let name = item.file_name();
            let name = name.to_str().with_context(|| format!("{} holds a name that is not UTF-8", path.display()))?;
            let place = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let kind = item.file_type()?;
            let node = if kind.is_dir() {
                folders.push(place.clone());
                Node::Folder
            } else if kind.is_symlink() {
                let target = fs::read_link(item.path())?;
                denied_by(&target).map_or_else(|| Node::Link(target.display().to_string()), Node::Denied)
            } else if kind.is_file() {
                Node::File(fs::read(item.path())?)
            } else {
                bail!("{place} below {} is no file that was written: this capture was tampered with", dir.display());
            };
            let left = match &node {
                Node::File(bytes) if place == ABOUT => {
                    (bytes != about.as_bytes()).then(|| format!("{ABOUT} is not what was written"))
                }
                _ => left_in(dictionary, &place, &node),
            };
            if let Some(left) = left {
                bail!("{left}, below {}: do not hand this capture on, and please report this", dir.display());
            }
        }
    }
    Ok(())
}
