//! What is remembered over a restart: open findings and log pages that drives refuse.
//!
//! Written on its own thread by atomic replace, so that a sick disk under the state directory stops nothing.

use super::confine;
use super::holder::Holder;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use storscope_model::memory::Memory;
use storscope_model::refused::Refused;

/// Version of the file; another one is set aside.
const VERSION: u32 = 1;

/// Longest file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;

const NAME: &str = "state.json";

/// How long the end of the agent waits for the last state to be written; a sick disk must not hold it up.
const LAST_WRITE: Duration = Duration::from_millis(700);

/// Pause between two attempts to hand over the last state.
const LAST_PAUSE: Duration = Duration::from_millis(10);

/// How long the start waits for the state; a sick disk must not hold it up.
const LOAD: Duration = Duration::from_secs(2);

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    version: u32,
    /// Findings and what else the analysis remembers.
    pub(super) memory: Memory,
    /// Log pages that drives refuse.
    #[serde(rename = "refusals")]
    pub(super) refused: Vec<Refused>,
}

/// The thread that writes.
#[derive(Debug)]
pub(super) struct Keeper {
    out: SyncSender<State>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    error: Arc<Mutex<Option<String>>>,
}

/// A state that is being read.
#[derive(Debug)]
pub(super) struct Opening {
    keeper: Keeper,
    loaded: Receiver<Loaded>,
}

/// What was found in the directory, and what was wrong with it.
#[derive(Debug, Default)]
struct Loaded {
    state: State,
    complaints: Vec<String>,
}

impl State {
    /// What to remember.
    pub(super) const fn new(memory: Memory, refused: Vec<Refused>) -> Self {
        Self { version: VERSION, memory, refused }
    }
}

/// Starts the thread that reads the state in `directory` and writes it from then on, and that reaches no other file. A
/// file that cannot be used is set aside under a name with `.bad`, never deleted.
///
/// While another agent has the directory, its state is read and not written: a former agent may still wait for a hung
/// disk, and the one that follows must not wait for it, nor begin without its findings.
pub(super) fn open(directory: &Path) -> Opening {
    let error = Arc::new(Mutex::new(None));
    let (out, to_write) = mpsc::sync_channel::<State>(1);
    let (alive, ended) = mpsc::channel();
    let (told, loaded) = mpsc::sync_channel(1);
    let directory = directory.to_path_buf();
    let notes = Arc::clone(&error);
    let keep = move || {
        let _alive = alive;
        // Dropped before the former: who has waited for the end finds the directory free.
        let mut holder = Holder::new(&directory);
        let loaded = load(&directory, &mut holder);
        note(&notes, loaded.complaints.last().cloned());
        // Who did not wait so long begins without it.
        let _ = told.send(loaded);
        while let Ok(state) = to_write.recv() {
            let failed = holder.take().and_then(|()| write(&directory, &state)).err();
            let known = notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(why) = failed.as_ref().filter(|why| known.as_ref() != Some(why)) {
                tracing::error!(%why, "state cannot be written");
            }
            note(&notes, failed);
        }
    };
    if let Err(why) = thread::Builder::new().name("state".to_owned()).spawn(keep) {
        note(&error, Some(format!("no thread to write the state: {why}")));
    }
    Opening { keeper: Keeper { out, ended, error }, loaded }
}

impl Opening {
    /// The state, if it can be read in time, and who writes it.
    pub(super) fn wait(self) -> (Keeper, State) {
        let Self { keeper, loaded } = self;
        let loaded = loaded.recv_timeout(LOAD).unwrap_or_else(|_| {
            let why = keeper.error().unwrap_or_else(|| {
                format!("the state directory did not answer within {LOAD:?}: this start remembers nothing")
            });
            note(&keeper.error, Some(why.clone()));
            Loaded { complaints: vec![why], ..Loaded::default() }
        });
        for why in &loaded.complaints {
            tracing::error!(%why, "state is not kept as it should be");
        }
        (keeper, loaded.state)
    }
}

fn load(directory: &Path, holder: &mut Holder) -> Loaded {
    let mut loaded = Loaded::default();
    if let Err(error) = fs::create_dir_all(directory) {
        loaded.complaints.push(format!("{}: {error}", directory.display()));
        // There is nothing to be let in to.
        loaded.complaints.extend(confine::no_files());
        return loaded;
    }
    loaded.complaints.extend(confine::only(directory));
    let taken = holder.take();
    match read(directory, taken.is_ok()) {
        Ok(state) => loaded.state = state.unwrap_or_default(),
        Err(why) => loaded.complaints.push(why),
    }
    loaded.complaints.extend(taken.err());
    loaded
}

impl Keeper {
    /// Hands `state` to the writing thread; dropped while that one is still busy with a former one, for the next call
    /// brings a newer one. True when it was taken.
    pub(crate) fn write(&self, state: State) -> bool {
        !matches!(self.out.try_send(state), Err(TrySendError::Full(_) | TrySendError::Disconnected(_)))
    }

    /// Writes `state` as the last one, and waits for that as long as [`LAST_WRITE`]. False when it was not enough.
    pub(crate) fn finish(self, mut state: State) -> bool {
        let Self { out, ended, .. } = self;
        let until = Instant::now() + LAST_WRITE;
        loop {
            match out.try_send(state) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) if Instant::now() < until => state = back,
                Err(_) => return false,
            }
            thread::sleep(LAST_PAUSE);
        }
        drop(out);
        let left = until.saturating_duration_since(Instant::now());
        matches!(ended.recv_timeout(left), Err(mpsc::RecvTimeoutError::Disconnected))
    }

    /// Why the state is not kept, for people.
    pub(crate) fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn note(place: &Mutex<Option<String>>, what: Option<String>) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = what;
}

/// Only the file of a directory that is `own` is set aside.
fn read(directory: &Path, own: bool) -> Result<Option<State>, String> {
    let path = directory.join(NAME);
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let set_aside = |error: &dyn std::fmt::Display| if own { set_aside(&path, error) } else { named(error) };
    let meta = match fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(&error)),
    };
    if meta.len() > MAX_FILE || !meta.is_file() {
        return Err(set_aside(&"not a state file"));
    }
    let bytes = fs::read(&path).map_err(|error| set_aside(&error))?;
    if !is_whole(&bytes) {
        return Err(set_aside(&"its checksum is not that of its content"));
    }
    let version = serde_json::from_slice::<Version>(&bytes).map_err(|error| set_aside(&error))?.version;
    if version != VERSION {
        return Err(set_aside(&format_args!("version {version}, expected {VERSION}")));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| set_aside(&error))
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn set_aside(path: &Path, why: &dyn std::fmt::Display) -> String {
    let aside: PathBuf = path.with_extension("json.bad");
    match fs::rename(path, &aside) {
        Ok(()) => format!("{}: {why}; set aside as {}", path.display(), aside.display()),
        Err(error) => format!("{}: {why}; it cannot be set aside: {error}", path.display()),
    }
}

/// How a file with a checksum begins: eight hexadecimal digits follow, then [`BEHIND`], then what they are the CRC-32 of.
/// To a reader of JSON it is one more field.
const BEFORE: &[u8] = b"{\"crc32\":\"";
const BEHIND: &[u8] = b"\",";

/// A JSON object with its checksum in front.
fn summed(object: &[u8]) -> Vec<u8> {
    let rest = object.strip_prefix(b"{").unwrap_or_default();
    let digits = format!("{:08x}", crc32fast::hash(rest));
    [BEFORE, digits.as_bytes(), BEHIND, rest].concat()
}

/// False when the checksum is another one; a file of a release without them is taken as it is.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((digits, rest)) = bytes.strip_prefix(BEFORE).and_then(|rest| rest.split_at_checked(8)) else {
        return true;
    };
    let expected = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
    rest.strip_prefix(BEHIND).is_some_and(|rest| expected == Some(crc32fast::hash(rest)))
}

fn write(directory: &Path, state: &State) -> Result<(), String> {
    replace(directory, state).map_err(|error| format!("{}: {error}", directory.display()))
}

fn replace(directory: &Path, state: &State) -> std::io::Result<()> {
    let temporary = directory.join(format!("{NAME}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(&summed(&serde_json::to_vec(state)?))?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(NAME))?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Vec<Refused> {
        let (model, firmware) = ("MADE UP".to_owned(), "1".to_owned());
        vec![Refused { model, firmware, command: "get_log_self_test".to_owned(), status: Some(0x109) }]
    }

    #[test]
    fn written_state_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::new(Memory::default(), refused());
        write(dir.path(), &state).unwrap();
        assert_eq!(read(dir.path(), true), Ok(Some(state)));
    }

    #[test]
    fn a_flipped_bit_is_noticed_and_a_file_without_a_checksum_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::new(Memory::default(), refused());
        write(dir.path(), &state).unwrap();
        let file = dir.path().join(NAME);
        let good = fs::read(&file).unwrap();
        let at = good.windows(7).position(|part| part == b"MADE UP").unwrap();
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(serde_json::from_slice::<State>(&bad).is_ok(), "it is still a state");
        fs::write(&file, &bad).unwrap();
        let why = read(dir.path(), true).unwrap_err();
        assert!(why.contains("checksum") && why.contains("set aside"), "{why}");
        assert_eq!(fs::read(dir.path().join("state.json.bad")).unwrap(), bad);
        fs::write(&file, serde_json::to_vec(&state).unwrap()).unwrap();
        assert_eq!(read(dir.path(), true), Ok(Some(state)));
    }

    #[test]
    fn the_last_state_is_written_before_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let (keeper, _) = open(dir.path()).wait();
        let state = State::new(Memory::default(), refused());
        keeper.write(state.clone());
        assert!(keeper.finish(state.clone()));
        assert_eq!(read(dir.path(), true), Ok(Some(state)));
    }

    #[test]
    fn torn_foreign_and_future_files_are_set_aside() {
        for content in ["{\"version\":1,\"boot_", "not json", "{\"version\":99}", ""] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(NAME), content).unwrap();
            let why = read(dir.path(), true).unwrap_err();
            assert!(why.contains("set aside"), "{why}");
            assert_eq!(fs::read_to_string(dir.path().join("state.json.bad")).unwrap(), content);
            assert_eq!(read(dir.path(), true), Ok(None));
        }
    }

    #[test]
    fn what_a_killed_writer_left_behind_is_no_state_and_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::new(Memory::default(), refused());
        write(dir.path(), &state).unwrap();
        fs::write(dir.path().join("state.json.new"), "{\"version\":1,\"mem").unwrap();
        let (keeper, found) = open(dir.path()).wait();
        assert_eq!((found, keeper.error()), (state, None));
        let next = State::new(Memory::default(), Vec::new());
        assert!(keeper.finish(next.clone()));
        assert_eq!(read(dir.path(), true), Ok(Some(next)));
        assert!(!dir.path().join("state.json.new").exists());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let why = open(&file.join("state")).wait().0.error().unwrap();
        assert!(why.contains("file/state"), "{why}");
    }

    #[test]
    fn the_state_of_another_agent_is_read_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::new(Memory::default(), Vec::new());
        let (first, _) = open(dir.path()).wait();
        first.write(state.clone());
        assert!(first.finish(state.clone()));
        let mut other = Holder::new(dir.path());
        assert_eq!(other.take(), Ok(()));
        let before = fs::read(dir.path().join(NAME)).unwrap();

        let (second, found) = open(dir.path()).wait();
        assert_eq!(found, state);
        assert!(second.error().unwrap().contains("another agent"));
        assert!(second.finish(State::new(Memory::default(), refused())));
        assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), before);

        fs::write(dir.path().join(NAME), "torn").unwrap();
        assert!(open(dir.path()).wait().0.error().is_some());
        assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), b"torn");
    }
}
