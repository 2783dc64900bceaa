//! What carries out the reads: one small trait, two engines.

use crate::lane::Lane;
use crate::pread::Pread;
use crate::uring::Uring;
use std::io;
use std::sync::Arc;
use storscope_model::sample::probe::Engine as Kind;

/// Carries out the steps of lanes.
pub(crate) trait Engine: Send + Sync {
    /// Takes a lane and drives it until it finishes. Never waits for a device.
    ///
    /// # Errors
    /// When the thread that it needs cannot be had.
    fn drive(&self, lane: Arc<Lane>) -> io::Result<()>;
}

/// Which engine to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// io_uring, or pread(2) where the kernel refuses a ring.
    #[default]
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// pread(2).
    Pread,
}

/// The engine that a prober runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineInUse {
    /// The engine.
    pub kind: Kind,
    /// errno(3) with which the kernel refused a ring, when the engine is pread(2) for that reason: `EPERM` from
    /// `kernel.io_uring_disabled` or a seccomp filter, `ENOSYS` from an old kernel.
    pub ring_refused: Option<i32>,
}

/// Starts the engine that `choice` asks for.
///
/// # Errors
/// When a ring was demanded and is refused.
pub(crate) fn start(choice: EngineChoice) -> io::Result<(Box<dyn Engine>, EngineInUse)> {
    let pread = |ring_refused| -> (Box<dyn Engine>, EngineInUse) {
        let kind = Kind::Pread;
        (Box::new(Pread), EngineInUse { kind, ring_refused })
    };
    if choice == EngineChoice::Pread {
        return Ok(pread(None));
    }
    match Uring::start() {
        Ok(uring) => {
            let in_use = EngineInUse { kind: Kind::IoUring, ring_refused: None };
            Ok((Box::new(uring), in_use))
        }
        Err(error) if choice == EngineChoice::Auto => Ok(pread(error.raw_os_error())),
        Err(error) => Err(error),
    }
}
