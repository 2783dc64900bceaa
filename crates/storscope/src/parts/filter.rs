//! The list of allowed system calls as a filter of the kernel's (seccomp(2)), for all threads of the process.

use super::Part;
use super::syscalls::{self, Call};
use anyhow::Context;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// Limits the calling process to the calls of `part`.
///
/// # Errors
/// A kernel without seccomp filters.
pub(super) fn install(part: Part) -> anyhow::Result<()> {
    apply_filter_all_threads(&no_clone3()?).context("clone3")?;
    apply_filter_all_threads(&allowed(part)?).context("allow-list")
}

/// The flags of clone3(2) lie in memory, where a filter cannot look: who is told that there is no such call uses clone(2).
fn no_clone3() -> anyhow::Result<BpfProgram> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    program(rules, SeccompAction::Allow, SeccompAction::Errno(errno(libc::ENOSYS)))
}

fn allowed(part: Part) -> anyhow::Result<BpfProgram> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    // Let through by this filter, refused by the other one.
    rules.insert(libc::SYS_clone3, Vec::new());
    for call in syscalls::of(part) {
        let of_call = rules.entry(call.number).or_default();
        of_call.extend(rule(&call)?);
    }
    program(rules, SeccompAction::Errno(errno(libc::EPERM)), SeccompAction::Allow)
}

/// `None` when every use of the call is allowed.
fn rule(call: &Call) -> anyhow::Result<Option<SeccompRule>> {
    if call.only.is_empty() {
        return Ok(None);
    }
    let conditions = call.only.iter().map(|only| {
        let equal = SeccompCmpOp::MaskedEq(only.mask.into());
        SeccompCondition::new(only.argument, SeccompCmpArgLen::Dword, equal, only.value.into())
    });
    Ok(Some(SeccompRule::new(conditions.collect::<Result<Vec<_>, _>>()?)?))
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> anyhow::Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(SeccompFilter::new(rules, otherwise, listed, arch)?.try_into()?)
}

const fn errno(number: i32) -> u32 {
    number.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_list_makes_a_filter_and_names_no_call_twice() {
        for part in Part::ALL {
            allowed(part).unwrap();
            let mut plain = BTreeSet::new();
            let calls: Vec<Call> = syscalls::of(part).collect();
            for call in calls.iter().filter(|call| call.only.is_empty()) {
                assert!(plain.insert(call.number), "{part:?}: {} is listed twice", call.number);
            }
            // A condition beside the bare call would be lost without a word.
            for call in calls.iter().filter(|call| !call.only.is_empty()) {
                assert!(!plain.contains(&call.number), "{part:?}: {} is also allowed without a condition", call.number);
            }
        }
    }

    #[test]
    fn each_part_lacks_what_is_the_others_business() {
        let may = |part, number| syscalls::of(part).any(|call| call.number == number);
        let ring = libc::SYS_io_uring_setup;
        assert!(may(Part::Prober, ring) && !may(Part::Collector, ring) && !may(Part::Server, ring));
        for part in Part::ALL {
            for number in [libc::SYS_execve, libc::SYS_connect, libc::SYS_ptrace, libc::SYS_openat2, libc::SYS_kill] {
                assert!(!may(part, number), "{part:?} may call {number}");
            }
        }
        assert!(!may(Part::Prober, libc::SYS_socket) && !may(Part::Server, libc::SYS_socket));
    }
}
