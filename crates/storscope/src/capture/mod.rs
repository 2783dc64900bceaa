//! `storscope capture DIR`: what the agent reads of a host, as a directory that `--root` runs from.
//!
//! Read first, each device with a deadline ([`gather`]); then, in memory, every identity is found ([`fields`],
//! [`identity`]) and replaced by a pseudonym ([`scrub`]); then written, and what was written is looked through
//! ([`write`]).

mod attributes;
mod desk;
mod dictionary;
mod drives;
mod fields;
mod gather;
mod identity;
mod mounts;
mod nodes;
mod pages;
mod procfs;
mod pseudonym;
mod scrub;
mod sysfs;
mod tree;
mod vocabulary;
mod vpd;
mod write;

use crate::cli::CaptureArgs;
use crate::settings;
use anyhow::Context;
use std::fmt::Write;
use std::path::Path;
use storscope_collect::root::Root;
use storscope_collect::select::Selection;
use tree::Tree;

/// Writes a capture of the host that is meant.
///
/// # Errors
/// When the directory is not empty or cannot be written, or when an identity would be left in it.
pub(crate) fn run(args: &CaptureArgs) -> anyhow::Result<()> {
    let select = &args.select;
    let selection = settings::selection(&select.devices())?;
    let host = select.checked_host()?;
    write::prepare(&args.dir)?;
    let (tree, notes) = capture(&host, &selection, &args.dir, args.keep_serials)?;
    crate::output::print(&summary(args, &tree, &notes))
}

/// What is told of a capture that was written.
fn summary(args: &CaptureArgs, tree: &Tree, notes: &[String]) -> String {
    let mut text = format!("{} files, links and folders, {} kB", tree.len(), tree.bytes().div_ceil(1000));
    if let Ok(bytes) = write::on_disk(&args.dir) {
        let _ = write!(text, " ({} kB on the disk)", bytes.div_ceil(1000));
    }
    let _ = writeln!(text, " in {}", args.dir.display());
    text.push_str(match args.keep_serials {
        true => "Serial numbers and names are in it as they are (--keep-serials).\n",
        false => "Serial numbers and names are replaced by pseudonyms; look through it before you hand it on.\n",
    });
    for note in notes {
        let _ = writeln!(text, "left out: {}", note.escape_debug());
    }
    let _ = writeln!(text, "Look at it with: {}", command(args));
    if notes.iter().any(|note| note.contains(desk::HANGS)) {
        text.push_str(
            "The capture is complete, but a read still hangs: this process may not end until the device answers.\n",
        );
    }
    text
}

/// The command that shows the devices that were captured, as a shell takes it.
fn command(args: &CaptureArgs) -> String {
    let mut command = format!("storscope status --root {}", quoted(&args.dir.display().to_string()));
    let devices = args.select.devices();
    let options = [("include", &devices.include), ("exclude", &devices.exclude), ("only", &devices.only)];
    for (option, pattern) in options {
        if let Some(pattern) = pattern {
            let _ = write!(command, " --{option} {}", quoted(pattern.0.as_str()));
        }
    }
    command
}

/// One word of a shell command (POSIX.1-2024, 2.2.2).
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn capture(host: &Root, selection: &Selection, dir: &Path, keep: bool) -> anyhow::Result<(Tree, Vec<String>)> {
    let gathered = gather::gather(host, selection);
    if keep {
        let about = about(&gathered.notes, keep);
        write::write(dir, &gathered.tree, &about)?;
        return Ok((gathered.tree, gathered.notes));
    }
    let scrubbed = scrub::scrub(&gathered.tree, &gathered.notes).context("this capture cannot be scrubbed")?;
    let about = about(&scrubbed.notes, keep);
    write::write(dir, &scrubbed.tree, &about)?;
    write::verify(dir, &scrubbed.dictionary, &about)?;
    Ok((scrubbed.tree, scrubbed.notes))
}

/// What a capture says of itself.
fn about(notes: &[String], keep: bool) -> String {
    let mut about = format!("A host as storscope {} reads it.\n", crate::version::VERSION);
    about.push_str(match keep {
        true => "Serial numbers, world-wide ids and names are as they were on the host.\n",
        false => {
            "Serial numbers, world-wide ids, UUIDs, addresses, and names of hosts, volumes and folders are pseudonyms:\n\
             of the same length, and the same wherever the same one stood. Fields that are a vendor's own are blank.\n"
        }
    });
    about.push_str(
        "What the kernel denied is a link to denied:EACCES or denied:EPERM in the place of the file, of the device node (dev),\n\
         of the page of a drive (drives) or of the question for its power mode (ata); .denied is that of a folder's list.\n",
    );
    match notes.len() {
        0 => about.push_str("Nothing was left out.\n"),
        left_out => {
            let _ = writeln!(about, "Left out, and why ({left_out}):");
        }
    }
    for note in notes {
        let _ = writeln!(about, "{}", note.escape_debug());
    }
    about
}

#[cfg(test)]
mod tests;
