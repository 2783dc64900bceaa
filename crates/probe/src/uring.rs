//! The io_uring engine: a ring drives some hundreds of devices, a task each.
//!
//! Only reads go through the ring. Looking at a device, opening and closing it may block in the kernel and run on the
//! runtime's blocking threads, of which there are more than devices on a ring: a stuck one delays no neighbour. The
//! ring reads through a duplicate of the descriptor, so that its own close is never the last one of the device.
//!
//! A read that finds no free tag, or a frozen queue, is moved by the kernel to a worker of the ring that waits
//! uninterruptibly. A device whose queue has room never needs one, so that such a worker delays no neighbour either.

use crate::buffer::AlignedBuffer;
use crate::clock::Moment;
use crate::device;
use crate::engine::Engine;
use crate::lane::{Lane, Nudge, Plan, Step};
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_uring::fs::File;

/// Devices on one ring: half of the blocking threads that tokio allows a runtime (512).
const RING_DEVICES: usize = 256;
/// Submission entries of a ring: every device may submit at once.
const ENTRIES: u32 = 256;
/// Stack of a ring's thread.
const STACK: usize = 512 << 10;

/// The rings. The queue of lanes to a ring holds at most [`RING_DEVICES`].
pub(crate) struct Uring {
    rings: Mutex<Vec<Ring>>,
}

struct Ring {
    lanes: UnboundedSender<Seat>,
    taken: Arc<AtomicUsize>,
}

/// A lane on a ring; leaves its place free when dropped.
struct Seat {
    lane: Arc<Lane>,
    taken: Arc<AtomicUsize>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Uring {
    /// Sets up the first ring.
    ///
    /// # Errors
    /// That of io_uring_setup(2), or of starting the thread.
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self { rings: Mutex::new(vec![Ring::start()?]) })
    }
}

impl Engine for Uring {
    fn drive(&self, lane: Arc<Lane>) -> io::Result<()> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.retain(|ring| !ring.lanes.is_closed());
        let free = rings.iter().position(|ring| ring.taken.load(Ordering::Relaxed) < RING_DEVICES);
        let index = match free {
            Some(index) => index,
            None => {
                rings.push(Ring::start()?);
                rings.len() - 1
            }
        };
        let ring = rings.get(index).ok_or(io::ErrorKind::NotFound)?;
        ring.taken.fetch_add(1, Ordering::Relaxed);
        let seat = Seat { lane, taken: Arc::clone(&ring.taken) };
        ring.lanes.send(seat).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Ring {
    fn start() -> io::Result<Self> {
        let (lanes, receiver) = unbounded_channel();
        let (ready, outcome) = sync_channel(1);
        thread::Builder::new().name("probe-ring".into()).stack_size(STACK).spawn(move || serve(receiver, &ready))?;
        outcome.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))??;
        Ok(Self { lanes, taken: Arc::new(AtomicUsize::new(0)) })
    }
}

/// The ring's thread. Once its channel is closed it ends with the last outstanding read, which may be never: nobody
/// joins it.
fn serve(lanes: UnboundedReceiver<Seat>, ready: &SyncSender<io::Result<()>>) {
    let runtime = match tokio_uring::Runtime::new(tokio_uring::builder().entries(ENTRIES)) {
        Ok(runtime) => runtime,
        Err(error) => {
            // The receiver waits for just this one message.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    runtime.block_on(attend_all(lanes, |seat| async move { attend(&seat.lane).await }));
}

/// Attends to every seat at once, and returns when the channel is closed and all of them are done. A task must not be
/// dropped with a read in flight: tokio-uring's runtime, when it ends, frees the buffers of dropped operations before the
/// kernel is done with them.
async fn attend_all<S, F>(mut seats: UnboundedReceiver<S>, attend: impl Fn(S) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            seat = seats.recv() => match seat {
                Some(seat) => drop(tasks.spawn_local(attend(seat))),
                None => break,
            },
            // What is done is forgotten.
            Some(_) = tasks.join_next() => {}
        }
    }
    while tasks.join_next().await.is_some() {}
}

async fn attend(lane: &Lane) {
    let nudged = Arc::new(Notify::new());
    lane.set_nudge(Nudge::Task(Arc::clone(&nudged)));
    loop {
        match lane.step(Moment::now()) {
            Step::Finish => return,
            Step::Wait(until) => {
                tokio::select! {
                    () = tokio::time::sleep_until(until.into()) => {}
                    () = nudged.notified() => {}
                }
            }
            Step::Open(plan) => {
                if run(lane, plan).await.is_err() {
                    lane.exhausted(Moment::now());
                }
            }
        }
    }
}

async fn run(lane: &Lane, plan: Box<Plan>) -> io::Result<()> {
    let (plan, outcome) = spawn_blocking(move || {
        let outcome = device::prepare(&plan.target, plan.before);
        (plan, outcome)
    })
    .await?;
    let Some(mut burst) = lane.opened(&plan, outcome, Moment::now()) else {
        return Ok(());
    };
    let read = match (burst.file().try_clone(), AlignedBuffer::new(burst.block())) {
        (Ok(file), Some(mut buffer)) => {
            let file = File::from_std(file);
            while let Some(offset) = lane.next_read(&mut burst, Moment::now()) {
                let_others_run().await;
                let began = Instant::now();
                let (outcome, returned) = file.read_at(buffer, offset).await;
                let took = began.elapsed();
                let_others_run().await;
                buffer = returned;
                lane.read_done(&mut burst, &outcome, &buffer, took, Moment::now());
            }
            Ok(())
        }
        (Err(error), _) => Err(error),
        (_, None) => Ok(()),
    };
    lane.closing(&burst, Moment::now());
    spawn_blocking(move || drop(burst.into_opened())).await?;
    lane.closed();
    read
}

/// Lets every task of the ring that can go on do so first.
///
/// Reads that complete together wake their tasks together, and what a task does between two reads, a look at its device's
/// load above all, would lie in the measured time of those behind it. So each first takes its time and stands back,
/// and none begins to count before all have looked: the ring submits only when no task can go on.
///
/// Unlike tokio's own `yield_now` it asks the driver for nothing, which would cost a system call.
async fn let_others_run() {
    let mut stood_back = false;
    poll_fn(|context| {
        if std::mem::replace(&mut stood_back, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::{attend_all, let_others_run};
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use tokio::sync::mpsc::unbounded_channel;
    use tokio::sync::oneshot;
    use tokio::task::{LocalSet, yield_now};

    #[tokio::test(flavor = "current_thread")]
    async fn a_closed_ring_waits_for_what_is_in_flight() {
        let local = LocalSet::new();
        let over = Rc::new(Cell::new(false));
        let (seats, receiver) = unbounded_channel();
        let (completion, read) = oneshot::channel::<()>();
        let ended = Rc::clone(&over);
        local
            .run_until(async move {
                let ring = tokio::task::spawn_local(async move {
                    attend_all(receiver, |read: oneshot::Receiver<()>| async move {
                        assert!(read.await.is_ok(), "dropped in flight");
                    })
                    .await;
                    ended.set(true);
                });
                seats.send(read).unwrap();
                drop(seats);
                for _ in 0..100 {
                    yield_now().await;
                }
                assert!(!over.get(), "the ring ended with a read in flight");
                completion.send(()).unwrap();
                ring.await.unwrap();
                assert!(over.get());
            })
            .await;
    }
    #[tokio::test(flavor = "current_thread")]
    async fn reads_that_complete_together_are_all_timed_before_any_device_is_looked_at() {
        let steps = Rc::new(RefCell::new(Vec::new()));
        let completion = Rc::new(tokio::sync::Notify::new());
        let local = LocalSet::new();
        for _ in 0..3 {
            let (steps, completion) = (Rc::clone(&steps), Rc::clone(&completion));
            local.spawn_local(async move {
                completion.notified().await;
                steps.borrow_mut().push("timed");
                let_others_run().await;
                steps.borrow_mut().push("looked");
                let_others_run().await;
                steps.borrow_mut().push("submitted");
            });
        }
        local
            .run_until(async move {
                yield_now().await;
                completion.notify_waiters();
            })
            .await;
        local.await;
        let expected = ["timed", "looked", "submitted"].map(|step| [step; 3]).concat();
        assert_eq!(*steps.borrow(), expected);
    }
}
