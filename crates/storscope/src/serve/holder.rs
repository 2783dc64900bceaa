//! One agent a state directory: a lock that ends with its process (flock(2)).
//!
//! A file that a crash left behind holds nothing up: the lock is on the open file, not in its content. The content is
//! the process id of the agent that holds it, its supervisor's, for the message to another.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

/// The file that is locked.
pub(super) const NAME: &str = "agent.lock";

/// Longest process id in the file, in bytes.
const MAX_ID: u64 = 20;

/// The lock of one directory.
#[derive(Debug)]
pub(super) struct Holder {
    directory: PathBuf,
    held: Option<File>,
}

impl Holder {
    /// For `directory`, which is not locked yet.
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), held: None }
    }

    /// Takes the lock, if it is not held by this process already. Does not wait.
    ///
    /// # Errors
    /// That another process has it, and which. A file that cannot be made or locked is no hindrance: what is wrong
    /// with the directory shows where the state is read and written.
    pub(super) fn take(&mut self) -> Result<(), String> {
        if self.held.is_some() {
            return Ok(());
        }
        let path = self.directory.join(NAME);
        let mut file = match File::options().read(true).write(true).create(true).truncate(false).open(&path) {
            Ok(file) => file,
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "not locked");
                return Ok(());
            }
        };
        match file.try_lock() {
            Ok(()) => {
                note_id(&mut file);
                self.held = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(self.taken(file)),
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, path = %path.display(), "cannot be locked: another agent on it is not noticed");
                Ok(())
            }
        }
    }

    fn taken(&self, file: File) -> String {
        let mut text = String::new();
        let read = file.take(MAX_ID).read_to_string(&mut text);
        let id: Option<u32> = read.ok().and_then(|_| text.trim().parse().ok());
        let id = id.map_or_else(String::new, |id| format!(", process {id}"));
        format!(
            "{}: in use by another agent{id}; this one keeps its state in memory until that one has ended",
            self.directory.display()
        )
    }
}

impl Drop for Holder {
    /// A child between fork and exec shares the open file and would keep the lock a little longer.
    fn drop(&mut self) {
        if let Some(file) = &self.held {
            let _ = file.unlock();
        }
    }
}

/// Without it the message to another agent lacks the process id, no more.
fn note_id(file: &mut File) {
    let written =
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| writeln!(file, "{}", parent_id()));
    if let Err(error) = written {
        tracing::debug!(%error, "process id not noted in the lock");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_of_the_first_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Holder::new(dir.path());
        let mut second = Holder::new(dir.path());
        assert_eq!(first.take(), Ok(()));
        assert_eq!(first.take(), Ok(()), "what is held is not taken twice");
        let why = second.take().unwrap_err();
        let id = format!("process {}", parent_id());
        assert!(why.contains(dir.path().to_str().unwrap()) && why.contains(&id), "{why}");
        drop(first);
        assert_eq!(second.take(), Ok(()));
    }

    #[test]
    fn a_file_that_was_left_behind_holds_nothing_up() {
        for content in ["1\n", "99999999999999999999999999999\n", "", "no number"] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(NAME), content).unwrap();
            let mut holder = Holder::new(dir.path());
            assert_eq!(holder.take(), Ok(()));
            let now = std::fs::read_to_string(dir.path().join(NAME)).unwrap();
            assert_eq!(now, format!("{}\n", parent_id()));
        }
    }

    #[test]
    fn a_directory_that_cannot_hold_a_lock_is_told_where_it_is_used() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Holder::new(&dir.path().join("absent")).take(), Ok(()));
    }
}
