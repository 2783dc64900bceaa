//! Reading with a deadline a device: what was read before a read got stuck is kept, and the file that hangs is named.

use super::tree::Node;
use nix::errno::Errno;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use storscope_collect::attribute;
use storscope_collect::root::Root;
use storscope_drive::{DENIED_LISTING, as_captured, denied_by, denied_target};

/// What a note says of a read that did not end.
pub(super) const HANGS: &str = "no answer after";

/// Devices that are read at once.
const AT_ONCE: usize = 32;
/// Most notes of one job.
const MAX_NOTES: usize = 256;

/// What one job has read so far.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Entries by path below the capture.
    pub(super) entries: Vec<(String, Node)>,
    /// What could not be read, and why.
    pub(super) notes: Vec<String>,
    busy_with: Option<String>,
    closed: bool,
}

/// Where a job reads from and puts what it read.
#[derive(Debug)]
pub(super) struct Desk {
    root: Arc<Root>,
    read: Mutex<Read>,
}

impl Desk {
    fn new(root: Arc<Root>) -> Self {
        Self { root, read: Mutex::default() }
    }

    /// The host that is read.
    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names what is being waited for from now on.
    pub(super) fn busy_with(&self, what: impl Display) {
        self.lock().busy_with = Some(what.to_string());
    }

    /// Keeps one entry.
    pub(super) fn put(&self, path: String, node: Node) {
        let mut read = self.lock();
        if !read.closed {
            read.entries.push((path, node));
        }
    }

    /// Says what could not be read, and why.
    pub(super) fn note(&self, note: impl Display) {
        let mut read = self.lock();
        if !read.closed && read.notes.len() < MAX_NOTES {
            read.notes.push(note.to_string());
        }
    }

    /// The place of `path` in the capture: `sys/…`, `proc/…` or `dev/…`. None for a name that is not UTF-8.
    pub(super) fn place(&self, path: &Path) -> Option<String> {
        let trees = [("sys", &self.root.sys), ("proc", &self.root.proc), ("dev", &self.root.dev)];
        let (name, rest) = trees.iter().find_map(|(name, tree)| Some((name, path.strip_prefix(tree).ok()?)))?;
        let rest = rest.to_str()?;
        Some(if rest.is_empty() { (*name).to_owned() } else { format!("{name}/{rest}") })
    }

    /// True for a folder; that it cannot be told is kept.
    pub(super) fn is_folder(&self, path: &Path) -> bool {
        if let Some(errno) = self.denial(path, path) {
            self.denied_at(path, errno);
        }
        path.is_dir()
    }

    /// Copies the folder itself.
    pub(super) fn folder(&self, path: &Path) {
        if let Some(place) = self.place(path) {
            self.put(place, Node::Folder);
        }
    }

    /// Keeps that what belongs at `place` was denied with `errno`; another errno is noted only.
    pub(super) fn denied(&self, place: String, errno: i32) {
        self.note(format_args!("{place}: {}", Errno::from_raw(errno)));
        if denied_target(errno).is_some() {
            self.put(place, Node::Denied(errno));
        }
    }

    /// The same for a path of the host, or for the topmost folder above it that cannot be entered.
    pub(super) fn denied_at(&self, path: &Path, errno: i32) {
        let folders = path.ancestors().filter(|folder| self.place(folder).is_some());
        let closed = folders.filter(|folder| self.denial(&folder.join("."), folder) == Some(errno)).last();
        if let Some(place) = self.place(closed.unwrap_or(path)) {
            self.denied(place, errno);
        }
    }

    /// The errno(3) value with which looking at `path` is denied; of a captured host that at `place`.
    fn denial(&self, path: &Path, place: &Path) -> Option<i32> {
        let error = as_captured(place, std::fs::metadata(path).err()?);
        error.raw_os_error().filter(|errno| denied_target(*errno).is_some())
    }

    /// Copies a file of at most `limit` bytes and returns it; none when there is no such file.
    pub(super) fn file(&self, path: &Path, limit: usize) -> Option<Vec<u8>> {
        let place = self.place(path)?;
        self.busy_with(&place);
        let error = match attribute::contents(path, limit) {
            Ok(bytes) if bytes.len() > limit => {
                self.note(format_args!("{place}: longer than {limit} bytes"));
                return None;
            }
            Ok(bytes) => {
                self.put(place, Node::File(bytes.clone()));
                return Some(bytes);
            }
            Err(error) => error.raw_os_error().unwrap_or(nix::libc::EIO),
        };
        match Errno::from_raw(error) {
            // A folder where a file could be has no content.
            Errno::ENOENT | Errno::ENOTDIR | Errno::EISDIR => {}
            Errno::ENODEV | Errno::ENXIO => self.note(format_args!("{place}: the device is gone")),
            _ => self.denied_at(path, error),
        }
        None
    }

    /// Copies a symbolic link, if `path` is one. Its target is not followed.
    pub(super) fn link(&self, path: &Path) -> bool {
        let (Some(place), Ok(target)) = (self.place(path), std::fs::read_link(path)) else {
            return false;
        };
        if let Some(errno) = denied_by(&target) {
            self.denied(place, errno);
            return true;
        }
        match self.relative(path, &target) {
            Some(target) => self.put(place, Node::Link(target)),
            None => self.note(format_args!("{place}: the link leads out of the tree")),
        }
        true
    }

    /// The kernel's links are relative; another one is made relative, if it stays within the tree.
    fn relative(&self, link: &Path, target: &Path) -> Option<String> {
        if target.is_relative() {
            return target.to_str().map(str::to_owned);
        }
        let target = self.root.resolve(link)?;
        let from = link.parent()?;
        let shared = from.ancestors().find(|above| target.starts_with(above))?;
        let up = from.strip_prefix(shared).ok()?.components().map(|_| "..");
        let down = target.strip_prefix(shared).ok()?;
        let path: PathBuf = up.map(PathBuf::from).chain([down.to_path_buf()]).collect();
        path.to_str().map(str::to_owned)
    }

    /// Names in a folder, sorted; none when there is no such folder.
    pub(super) fn names(&self, folder: &Path, most: usize) -> Vec<String> {
        self.busy_with(folder.display());
        let (mut names, error) = attribute::names(folder, most);
        if let Some(errno) =
            error.and_then(|error| error.raw_os_error()).filter(|errno| denied_target(*errno).is_some())
        {
            self.denied_at(&folder.join(DENIED_LISTING), errno);
        }
        if names.len() > most {
            names.pop();
            self.note(format_args!("{}: more than {most} entries; the rest is left out", folder.display()));
        }
        names.sort_unstable();
        names
    }
}

/// One thing to read, which may get stuck by itself.
pub(super) struct Job {
    /// Whose files these are, for a note.
    pub(super) name: String,
    /// Reads them.
    pub(super) work: Box<dyn FnOnce(&Desk) + Send>,
}

impl Job {
    /// A job named `name`.
    pub(super) fn new(name: impl Into<String>, work: impl FnOnce(&Desk) + Send + 'static) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Runs the jobs, several at once, each for at most `limit`. What a stuck one read until then is kept.
pub(super) fn run(root: &Arc<Root>, jobs: Vec<Job>, limit: Duration) -> Vec<Read> {
    let mut all = Vec::with_capacity(jobs.len());
    let mut jobs = jobs.into_iter().peekable();
    while jobs.peek().is_some() {
        all.extend(together(root, jobs.by_ref().take(AT_ONCE), limit));
    }
    all
}

fn together(root: &Arc<Root>, jobs: impl Iterator<Item = Job>, limit: Duration) -> Vec<Read> {
    let (tell, ended) = channel();
    let mut running = Vec::new();
    for (index, job) in jobs.enumerate() {
        let desk = Arc::new(Desk::new(Arc::clone(root)));
        let (inside, tell) = (Arc::clone(&desk), tell.clone());
        let work = job.work;
        let started = thread::Builder::new().name("capture".to_owned()).spawn(move || {
            work(&inside);
            // Nobody listens any more after the deadline.
            let _ = tell.send(index);
        });
        if let Err(error) = started {
            desk.note(format_args!("{}: no thread to read it: {error}", job.name));
        }
        running.push((job.name, desk, false));
    }
    drop(tell);
    let began = Instant::now();
    while let Ok(index) = ended.recv_timeout(limit.saturating_sub(began.elapsed())) {
        if let Some((_, _, done)) = running.get_mut(index) {
            *done = true;
        }
    }
    running.into_iter().map(|(name, desk, done)| close(&name, &desk, done, limit)).collect()
}

fn close(name: &str, desk: &Desk, done: bool, limit: Duration) -> Read {
    let mut read = desk.lock();
    if !done && let Some(what) = read.busy_with.take() {
        read.notes.push(format!("{name}: {what}: {HANGS} {} s; the rest is left out", limit.as_secs()));
    }
    let taken = std::mem::take(&mut *read);
    read.closed = true;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, Arc<Root>) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir_all(root.sys("class/block")).unwrap();
        std::fs::create_dir_all(root.sys("devices/sda")).unwrap();
        (dir, Arc::new(root))
    }

    #[test]
    fn a_job_that_hangs_costs_its_own_rest_only() {
        let (_dir, root) = root();
        std::fs::write(root.sys("devices/sda/size"), "8\n").unwrap();
        let (release, held) = channel::<()>();
        let hung = Job::new("sda", move |desk: &Desk| {
            let _ = desk.file(&desk.root().sys("devices/sda/size"), 10);
            desk.busy_with("sys/devices/sda/wwid");
            let _ = held.recv();
            desk.put("late".to_owned(), Node::Folder);
        });
        let sound = Job::new("sdb", |desk: &Desk| desk.put("sound".to_owned(), Node::Folder));
        let read = run(&root, vec![hung, sound], Duration::from_millis(200));
        assert_eq!(read[0].entries, [("sys/devices/sda/size".to_owned(), Node::File(b"8\n".to_vec()))]);
        assert!(read[0].notes[0].starts_with("sda: sys/devices/sda/wwid: no answer after"), "{:?}", read[0].notes);
        assert_eq!(read[1].entries, [("sound".to_owned(), Node::Folder)]);
        assert!(read[1].notes.is_empty());
        drop(release);
    }

    #[test]
    fn links_are_kept_and_made_relative() {
        let (dir, root) = root();
        symlink("../../devices/sda", root.sys("class/block/sda")).unwrap();
        symlink("/sys/devices/sda", root.sys("class/block/sdb")).unwrap();
        symlink("/etc/passwd", root.sys("class/block/sdc")).unwrap();
        let job = Job::new("links", |desk: &Desk| {
            for name in ["sda", "sdb", "sdc"] {
                assert!(desk.link(&desk.root().sys("class/block").join(name)));
            }
            assert!(!desk.link(&desk.root().sys("devices/sda")));
        });
        let read = run(&root, vec![job], Duration::from_secs(60));
        let target = Node::Link("../../devices/sda".to_owned());
        let path = |name: &str| format!("sys/class/block/{name}");
        assert_eq!(read[0].entries, [(path("sda"), target.clone()), (path("sdb"), target)]);
        assert_eq!(read[0].notes, ["sys/class/block/sdc: the link leads out of the tree"]);
        drop(dir);
    }
}
