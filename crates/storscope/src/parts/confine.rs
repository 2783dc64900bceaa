//! What a part gives up before it does anything: capabilities, network, system calls.
//!
//! What cannot be given up, on an old kernel or without the right to, is told and no hindrance.

use super::{Part, SUPERVISOR, filter};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_name, set_no_new_privs,
};
use std::ffi::CString;

/// What a part could not give up, for people.
pub(crate) type Lacks = Vec<String>;

/// The capabilities that the collector keeps, of those that it has: NVMe admin commands, SCSI pass-through, the kernel's log.
const COLLECTORS: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYS_RAWIO).union(CapabilitySet::SYSLOG);

/// Names the main thread of `part`, and ends it with the supervisor however that ends.
pub(crate) fn name(part: Part) {
    name_thread(part.comm());
    // A convenience: an end of the supervisor also shows as an end of its channel.
    let _ = set_pdeathsig(Signal::SIGKILL);
}

/// Names the main thread of the supervisor, whatever its file is called.
pub(crate) fn name_supervisor() {
    name_thread(SUPERVISOR);
}

fn name_thread(name: &str) {
    if let Ok(name) = CString::new(name) {
        // Fails on no kernel that this runs on.
        let _ = set_name(&name);
    }
}

/// Gives up everything that `part` does not need. To be called before a thread is started: capabilities are a thread's
/// own.
pub(crate) fn privileges(part: Part) -> Lacks {
    let mut lacks = Lacks::new();
    if part != Part::Server {
        leave_network(&mut lacks);
    }
    let keep = if part == Part::Collector { COLLECTORS } else { CapabilitySet::empty() };
    if let Err(error) = drop_capabilities(keep) {
        lacks.push(format!("capabilities are kept: {error}"));
    }
    if let Err(error) = set_no_new_privs(true) {
        lacks.push(format!("no_new_privs: {error}"));
    }
    lacks
}

/// Allows only the system calls that `part` needs, in all of its threads.
pub(crate) fn system_calls(part: Part) -> Lacks {
    filter::install(part).err().map(|error| format!("system calls are not limited: {error:#}")).into_iter().collect()
}

/// Tells what could not be given up.
pub(crate) fn tell(part: Part, lacks: &[String]) {
    for lack in lacks {
        tracing::warn!(process = part.as_str(), "less confined than intended: {lack}");
    }
}

/// Moves into a network namespace in which there is nothing. Without CAP_SYS_ADMIN a unit with `PrivateNetwork=` has to
/// do it; then this process is in such a namespace already.
fn leave_network(lacks: &mut Lacks) {
    let Ok(own) = capabilities(None) else { return };
    if !own.effective.contains(CapabilitySet::SYS_ADMIN) {
        return;
    }
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWNET)
        && !reaches_nobody()
    {
        lacks.push(format!("network namespace: {errno}"));
    }
}

/// Whether the network namespace is empty already: a unit gives one, and forbids to make others (`RestrictNamespaces=`).
/// Interfaces that are not up stay so without CAP_NET_ADMIN; drivers of tunnels put some into every namespace.
fn reaches_nobody() -> bool {
    getifaddrs().is_ok_and(|mut interfaces| {
        interfaces
            .all(|one| one.flags.contains(InterfaceFlags::IFF_LOOPBACK) || !one.flags.contains(InterfaceFlags::IFF_UP))
    })
}

fn drop_capabilities(keep: CapabilitySet) -> rustix::io::Result<()> {
    let own = capabilities(None)?;
    // A kernel without ambient capabilities has none to clear.
    let _ = clear_ambient_capability_set();
    if own.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(keep).iter() {
            // One that the kernel does not know is not there to be removed.
            if capability_is_in_bounding_set(capability).unwrap_or(false) {
                remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    let kept = own.permitted.intersection(keep);
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })
}
