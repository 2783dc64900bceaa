//! Debian packages by a private apt configuration: nothing is installed, the machine's own sources stay as they are.

use super::cache::Cache;
use super::process;
use super::sysroot::Sysroot;
use anyhow::{Context, Result, bail};
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{collections::VecDeque, thread};

/// The packages asked for; apt adds what they depend on.
const LIST: &str = include_str!("../../../../tests/lab/packages.txt");
/// Release and its backports, which carry the newer emulator and the kernel with nvme-loop.
const SUITES: [&str; 2] = ["bookworm", "bookworm-backports"];
/// Debian's own address for its mirrors.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Environment variable that names another mirror.
const MIRROR_VARIABLE: &str = "STORSCOPE_LAB_MIRROR";
/// Key ring of the archive, from the package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// What the guest never needs; kernel drivers among it, which would cost most of the time of depmod(8).
const LEFT_OUT: [&str; 12] = [
    "./usr/share/doc",
    "./usr/share/man",
    "./usr/share/locale",
    "./usr/share/perl*",
    "./usr/lib/python*",
    "./lib/modules/*/kernel/sound",
    "./lib/modules/*/kernel/drivers/gpu",
    "./lib/modules/*/kernel/drivers/media",
    "./lib/modules/*/kernel/drivers/net/wireless",
    "./lib/modules/*/kernel/drivers/net/ethernet",
    "./lib/modules/*/kernel/drivers/usb",
    "./lib/modules/*/kernel/drivers/iio",
];
/// Longest refresh of the package lists.
const UPDATE_LIMIT: Duration = Duration::from_secs(120);
/// Longest download of all packages (210 MB).
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(600);
/// Longest unpacking of one package, the kernel's being the largest.
const UNPACK_LIMIT: Duration = Duration::from_secs(120);
/// Longest run of depmod(8).
const DEPMOD_LIMIT: Duration = Duration::from_secs(120);
/// Packages unpacked at once.
const UNPACK_WORKERS: usize = 2;

/// The unpacked packages, fetched on first use.
///
/// # Errors
/// When apt or dpkg-deb is missing or fails; the end of its log is in the message.
pub(super) fn sysroot(cache: &Cache) -> Result<Sysroot> {
    let mut key = DefaultHasher::new();
    (LIST, SUITES, LEFT_OUT).hash(&mut key);
    let root = cache.directory(&format!("sysroot-{:016x}", key.finish()), |partial| {
        let began = Instant::now();
        let archives = fetch(cache)?;
        println!("lab: fetched {} packages in {:.0} s", archives.len(), began.elapsed().as_secs_f64());
        let began = Instant::now();
        unpack_all(cache, archives, partial)?;
        let sysroot = Sysroot::new(partial)?;
        let mut depmod = sysroot.program_as("bin/kmod", "depmod")?;
        depmod.arg("-b").arg(partial).arg(sysroot.kernel_release());
        process::run(&mut depmod, DEPMOD_LIMIT, &cache.root().join("depmod.log"))?;
        println!("lab: unpacked in {:.0} s", began.elapsed().as_secs_f64());
        Ok(())
    })?;
    Sysroot::new(&root)
}

fn names() -> impl Iterator<Item = &'static str> {
    LIST.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Downloads the packages; returns their archives.
fn fetch(cache: &Cache) -> Result<Vec<PathBuf>> {
    let home = cache.root().join("apt");
    let configuration = configure(&home)?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("APT_CONFIG", &configuration).args(["-q", "-y"]).args(arguments);
        command
    };
    let log = home.join("apt.log");
    process::run(&mut apt(&["update"]), UPDATE_LIMIT, &log)?;
    let archives = home.join("cache").join("archives");
    let mut install = apt(&["install", "--download-only", "-t", SUITES[1]]);
    process::run(install.args(names()), DOWNLOAD_LIMIT, &log)?;
    let mut packages = Vec::new();
    for entry in fs::read_dir(&archives).with_context(|| archives.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            packages.push(path);
        }
    }
    if packages.is_empty() {
        bail!("apt-get downloaded nothing\n{}", process::tail(&log));
    }
    Ok(packages)
}

/// Writes an apt configuration whose every path is under `home`. Its empty status file makes apt resolve the whole
/// closure, so that the result does not depend on what this machine has installed.
fn configure(home: &Path) -> Result<PathBuf> {
    // Archives of an older list must not get into this sysroot.
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| home.display().to_string())?;
    }
    for directory in ["lists/partial", "cache/archives/partial"] {
        let path = home.join(directory);
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    let mirror = env::var(MIRROR_VARIABLE).unwrap_or_else(|_| MIRROR.to_owned());
    let sources: String =
        SUITES.iter().map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n")).collect();
    let home_text = home.display();
    let configuration = format!(
        "Dir::Etc::sourcelist \"{home_text}/sources.list\";\n\
         Dir::Etc::sourceparts \"-\";\n\
         Dir::Etc::preferences \"{home_text}/preferences\";\n\
         Dir::Etc::preferencesparts \"-\";\n\
         Dir::State \"{home_text}\";\n\
         Dir::State::lists \"{home_text}/lists\";\n\
         Dir::State::status \"{home_text}/status\";\n\
         Dir::Cache \"{home_text}/cache\";\n\
         APT::Architecture \"amd64\";\n\
         APT::Sandbox::User \"root\";\n\
         APT::Install-Recommends \"false\";\n\
         APT::Update::Post-Invoke {{}};\n\
         Acquire::Languages \"none\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::Retries \"2\";\n"
    );
    let path = home.join("apt.conf");
    for (file, text) in [(home.join("sources.list"), sources), (home.join("status"), String::new())] {
        fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    fs::write(&path, configuration).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Unpacks the archives over one another, as dpkg would, in a few threads.
fn unpack_all(cache: &Cache, archives: Vec<PathBuf>, root: &Path) -> Result<()> {
    let queue = std::sync::Mutex::new(VecDeque::from(archives));
    let work = |worker: usize| -> Result<()> {
        let log = cache.root().join(format!("unpack-{worker}.log"));
        loop {
            let next = queue.lock().map_or(None, |mut queue| queue.pop_front());
            let Some(archive) = next else { return Ok(()) };
            unpack(&archive, root, &log)?;
            // What is unpacked is kept; the archive is not.
            fs::remove_file(&archive).with_context(|| archive.display().to_string())?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..UNPACK_WORKERS).map(|worker| scope.spawn(move || work(worker))).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("an unpacking thread panicked"))??;
        }
        Ok(())
    })
}

fn unpack(archive: &Path, root: &Path, log: &Path) -> Result<()> {
    let mut packer = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(archive)
        .stdout(Stdio::piped())
        .spawn()
        .context("dpkg-deb: cannot be started")?;
    let stream = packer.stdout.take().context("dpkg-deb: no output")?;
    let mut tar = Command::new("tar");
    tar.arg("-x").arg("-C").arg(root).arg("--no-same-owner").args(LEFT_OUT.map(|path| format!("--exclude={path}")));
    let unpacked = process::run_fed(&mut tar, stream.into(), UNPACK_LIMIT, log);
    let status = packer.wait()?;
    unpacked.with_context(|| archive.display().to_string())?;
    if !status.success() {
        bail!("dpkg-deb: {status}: {}", archive.display());
    }
    Ok(())
}
