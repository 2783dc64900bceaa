//! One process of a part.

use crate::parts::Part;
use crate::parts::channel::Channel;
use crate::parts::order::{Notice, Order};
use std::io;
use std::os::fd::BorrowedFd;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::Instant;
use storscope_collect::root::Root;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};

/// This very program below procfs, also after its file was replaced (proc_pid_exe(5)).
const PROGRAM: &str = "self/exe";

/// Stack of the thread that listens to a part, in bytes.
const STACK: usize = 128 << 10;

/// A running part.
#[derive(Debug)]
pub(super) struct Child {
    /// Process id.
    pub(super) pid: u32,
    /// When it was started.
    pub(super) began: Instant,
    /// When it last said something.
    pub(super) heard: Instant,
    /// Which of all processes it is.
    pub(super) number: u64,
    channel: Channel,
    kill: Option<oneshot::Sender<()>>,
}

/// What the supervisor hears of the parts.
#[derive(Debug)]
pub(super) enum News {
    /// A process ended.
    Ended(Ended),
    /// A part says something.
    Said(Part, Notice),
}

/// That a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) part: Part,
    pub(super) number: u64,
    pub(super) status: io::Result<ExitStatus>,
}

impl Child {
    /// Starts `part`. What is heard of it goes to `news`.
    ///
    /// # Errors
    /// A want of processes, descriptors or threads.
    pub(super) fn start(part: Part, number: u64, news: mpsc::Sender<News>) -> io::Result<Self> {
        let (channel, theirs) = Channel::pair()?;
        let mut process = Command::new(Root::live().proc(PROGRAM))
            .arg0(part.title())
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .kill_on_drop(false)
            .spawn()?;
        let now = Instant::now();
        let (kill, killed) = oneshot::channel();
        let pid = process.id().unwrap_or_default();
        let said = news.clone();
        tokio::spawn(async move {
            let status = tokio::select! {
                status = process.wait() => status,
                // Also when the family is gone.
                _ = killed => match process.start_kill() {
                    Ok(()) => process.wait().await,
                    Err(error) => Err(error),
                },
            };
            let _ = news.send(News::Ended(Ended { part, number, status })).await;
        });
        let heard = channel.try_clone()?;
        thread::Builder::new().name(format!("{}-notices", part.as_str())).stack_size(STACK).spawn(move || {
            while let Ok((notice, _)) = heard.receive::<Notice>() {
                if said.blocking_send(News::Said(part, notice)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { pid, began: now, heard: now, number, channel, kill: Some(kill) })
    }

    /// Gives an order.
    ///
    /// # Errors
    /// When the process is gone or takes none.
    pub(super) fn order(&self, order: &Order, passed: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.channel.send(order, passed)
    }

    /// Ends it at once. One that is stuck in the kernel ends later, and holds nothing up.
    pub(super) fn kill(&mut self) {
        if let Some(kill) = self.kill.take() {
            // It may have ended by itself.
            let _ = kill.send(());
        }
    }
}
