//! What the guest gets of the unpacked packages: their programs with the libraries that these are linked with, and the
//! kernel modules of storage. All of it goes into the guest's memory: a file system shared with this host would decide
//! how fast the guest answers, and whether it does.

use super::sysroot::Sysroot;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Directories of programs.
const PROGRAMS: [&str; 4] = ["bin", "sbin", "usr/bin", "usr/sbin"];
/// Starts of the names of programs that only this side runs, or nobody.
const NOT_FOR_GUESTS: [&str; 6] = ["qemu-", "perl", "python", "pydoc", "systemd", "dpkg"];
/// Settings of programs.
const SETTINGS: [&str; 2] = ["etc/lvm", "lib/modprobe.d"];
/// Kernel modules, below the release's `kernel` directory; what one of these needs is among them.
const MODULES: [&str; 17] = [
    "arch/x86/crypto",
    "block",
    "crypto",
    "drivers/ata",
    "drivers/block",
    "drivers/cdrom",
    "drivers/md",
    "drivers/net/net_failover.ko.xz",
    "drivers/net/virtio_net.ko.xz",
    "drivers/nvme",
    "drivers/scsi",
    "fs/configfs",
    "fs/ext4",
    "fs/jbd2",
    "fs/mbcache.ko.xz",
    "lib",
    "net",
];
/// First bytes of an executable (System V ABI, ELF header).
const ELF: [u8; 4] = *b"\x7fELF";
/// Deepest directory followed.
const DEEPEST: u32 = 12;

/// A file of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GuestFile {
    /// Of this side's file, with these permissions.
    Copy(PathBuf, u32),
    /// A symbolic link.
    Link(String),
    /// A text.
    Text(&'static str),
}

/// The guest's files by their paths, without a leading slash.
pub(super) type GuestFiles = BTreeMap<String, GuestFile>;

/// Adds a program and the libraries that it is linked with.
///
/// # Errors
/// When one of them is not in the packages.
pub(super) fn insert_program(sysroot: &Sysroot, program: &Path, files: &mut GuestFiles) -> Result<()> {
    let root = sysroot.root();
    if !program.is_file() {
        bail!("{}: not in the packages", program.display());
    }
    files.insert(relative(root, program)?, GuestFile::Copy(program.to_path_buf(), 0o755));
    for library in libraries(sysroot, program)? {
        files.insert(relative(root, &library)?, GuestFile::Copy(library, 0o755));
    }
    Ok(())
}

/// Chooses what every guest has.
///
/// # Errors
/// When something that must be there is not, or cannot be read.
pub(super) fn choose(sysroot: &Sysroot) -> Result<GuestFiles> {
    let root = sysroot.root();
    let mut files = GuestFiles::new();
    for directory in PROGRAMS {
        for entry in entries(&root.join(directory))? {
            let name = entry.file_name();
            if !NOT_FOR_GUESTS.iter().any(|start| name.to_string_lossy().starts_with(start)) {
                add(root, &entry, &mut files, 1)?;
            }
        }
    }
    let programs: Vec<PathBuf> = files
        .values()
        .filter_map(|file| if let GuestFile::Copy(path, _) = file { Some(path.clone()) } else { None })
        .collect();
    for program in programs.iter().filter(|program| is_executable(program)) {
        for library in libraries(sysroot, program)? {
            files.insert(relative(root, &library)?, GuestFile::Copy(library, 0o755));
        }
    }
    let loader = sysroot.loader();
    files.insert(super::sysroot::LOADER_AS_LINKED.to_owned(), GuestFile::Copy(loader, 0o755));
    for directory in SETTINGS {
        tree(root, &root.join(directory), &mut files, 1)?;
    }
    let modules = sysroot.modules();
    for entry in entries(&modules)? {
        if entry.file_type()?.is_file() {
            add(root, &entry, &mut files, 1)?;
        }
    }
    for path in MODULES {
        let path = modules.join("kernel").join(path);
        if path.is_file() {
            files.insert(relative(root, &path)?, GuestFile::Copy(path, 0o644));
        } else {
            tree(root, &path, &mut files, 1)?;
        }
    }
    Ok(files)
}

fn entries(directory: &Path) -> Result<Vec<DirEntry>> {
    let read = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    read.map(|entry| entry.with_context(|| directory.display().to_string())).collect()
}

fn tree(root: &Path, directory: &Path, files: &mut GuestFiles, depth: u32) -> Result<()> {
    if depth > DEEPEST {
        bail!("{}: more than {DEEPEST} directories deep", directory.display());
    }
    for entry in entries(directory)? {
        add(root, &entry, files, depth)?;
    }
    Ok(())
}

fn add(root: &Path, entry: &DirEntry, files: &mut GuestFiles, depth: u32) -> Result<()> {
    let path = entry.path();
    let kind = entry.file_type().with_context(|| path.display().to_string())?;
    if kind.is_dir() {
        return tree(root, &path, files, depth + 1);
    }
    let file = if kind.is_symlink() {
        GuestFile::Link(fs::read_link(&path)?.to_string_lossy().into_owned())
    } else if kind.is_file() {
        GuestFile::Copy(path.clone(), 0o755)
    } else {
        return Ok(());
    };
    files.insert(relative(root, &path)?, file);
    Ok(())
}

fn relative(root: &Path, path: &Path) -> Result<String> {
    let inside = path.strip_prefix(root).with_context(|| format!("{}: outside the packages", path.display()))?;
    inside.to_str().map(str::to_owned).with_context(|| format!("{}: not UTF-8", path.display()))
}

fn is_executable(path: &Path) -> bool {
    let mut start = [0; ELF.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == ELF
}

/// The libraries that a program is linked with, as the loader finds them (ld.so(8), `--list`). A static program has none.
fn libraries(sysroot: &Sysroot, program: &Path) -> Result<Vec<PathBuf>> {
    let mut command = sysroot.with_loader(&["--list"]);
    let output = command.arg(program).stdin(Stdio::null()).output().context("the loader cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found = Vec::new();
    for (name, place) in text.lines().filter_map(|line| line.split_once(" => ")) {
        let path = place.rsplit_once(" (").map_or(place, |(path, _)| path);
        // A library of this host's would be missing in the guest.
        if !Path::new(path).starts_with(sysroot.root()) {
            bail!("{}: {} is not in the packages: {place}", program.display(), name.trim());
        }
        found.push(PathBuf::from(path));
    }
    Ok(found)
}
