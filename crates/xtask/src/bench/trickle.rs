//! A little I/O on every device, so that it counts as at work: the agent probes an idle device ever more rarely.

use anyhow::Context;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two reads of a device.
const PERIOD: Duration = Duration::from_secs(1);

/// What a direct read goes into.
#[repr(align(4096))]
struct Page([u8; 4096]);

/// One direct read a second of each device, until dropped.
pub(super) struct Trickle {
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<io::Result<()>>>,
}

impl Trickle {
    /// Starts to read the devices behind `nodes`.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub(super) fn start(nodes: &[PathBuf]) -> anyhow::Result<Self> {
        let open = |node: &PathBuf| {
            let file = OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECT.bits()).open(node);
            file.with_context(|| node.display().to_string())
        };
        let files = nodes.iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let reader = Some(thread::spawn(move || read(&files, &told)));
        Ok(Self { stop, reader })
    }

    /// Ends it.
    ///
    /// # Errors
    /// That of a read, which ended it before.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(read)) => read.context("reading a loop device"),
            Some(Err(_)) | None => anyhow::bail!("the trickle of reads broke"),
        }
    }
}

impl Drop for Trickle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            // On this way out another error is told.
            let _ = reader.join();
        }
    }
}

fn read(files: &[File], stop: &AtomicBool) -> io::Result<()> {
    let mut page = Box::new(Page([0; 4096]));
    while !stop.load(Ordering::Relaxed) {
        for file in files {
            file.read_at(&mut page.0, 0)?;
        }
        thread::sleep(PERIOD);
    }
    Ok(())
}
