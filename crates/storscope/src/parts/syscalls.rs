//! Which system calls each part may make. Everything else ends with EPERM.
//!
//! The lists hold what the standard library, glibc, musl, tokio and tokio-uring use on the way; some calls exist on x86-64
//! only.

use super::Part;
use nix::libc;

/// One allowed call, and what its arguments must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// Number.
    pub(super) number: i64,
    /// All of these must hold.
    pub(super) only: &'static [Only],
}

/// What one argument must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Only {
    /// Which argument, from 0.
    pub(super) argument: u8,
    /// The bits that count.
    pub(super) mask: u32,
    /// Their value.
    pub(super) value: u32,
}

/// All bits of an argument.
const WHOLE: u32 = u32::MAX;
/// Flags with which open(2) could change something.
const CHANGING: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;
const THREAD: u32 = libc::CLONE_THREAD as u32;
/// `PR_GET_AUXV` (`linux/prctl.h`): what the kernel told this process at its start, for rustix.
const AUXILIARY_VECTOR: u32 = 0x4155_5856;
/// `NVME_IOCTL_ADMIN_CMD` (`linux/nvme_ioctl.h`).
const NVME_ADMIN: u32 = 0xC048_4E41;
/// `SG_IO` (`scsi/sg.h`).
const SG_IO: u32 = 0x2285;
/// `TCGETS` (`asm-generic/ioctls.h`): whether standard error is a terminal.
const TCGETS: u32 = 0x5401;
/// `FIONBIO` (`asm-generic/ioctls.h`): a socket that does not block.
const FIONBIO: u32 = 0x5421;
/// `NETLINK_KOBJECT_UEVENT` (`linux/netlink.h`).
const UEVENT: u32 = 15;

const fn any(number: i64) -> Call {
    Call { number, only: &[] }
}

/// Threads, memory, time, signals, and traffic over descriptors that are open already.
const EVERY: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

const EVERY_WITH: &[Call] = &[
    // No process and no namespace: threads only.
    Call { number: libc::SYS_clone, only: &[Only { argument: 0, mask: THREAD, value: THREAD }] },
    Call { number: libc::SYS_prctl, only: &[Only { argument: 0, mask: WHOLE, value: libc::PR_SET_NAME as u32 }] },
    Call { number: libc::SYS_prctl, only: &[Only { argument: 0, mask: WHOLE, value: AUXILIARY_VECTOR }] },
    Call { number: libc::SYS_ioctl, only: &[Only { argument: 1, mask: WHOLE, value: TCGETS }] },
    Call { number: libc::SYS_ioctl, only: &[Only { argument: 1, mask: WHOLE, value: FIONBIO }] },
    // tokio's own signal pipe: both ends are here.
    Call { number: libc::SYS_socketpair, only: &[Only { argument: 0, mask: WHOLE, value: libc::AF_UNIX as u32 }] },
    // getrlimit(3); a new limit comes by the third argument.
    Call { number: libc::SYS_prlimit64, only: &[Only { argument: 2, mask: WHOLE, value: 0 }] },
];

/// Looking at files.
const LOOKING: &[i64] = &[
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_pread64,
    libc::SYS_readlinkat,
    libc::SYS_statfs,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
];

const LOOKING_WITH: &[Call] = &[
    Call { number: libc::SYS_openat, only: &[Only { argument: 2, mask: CHANGING, value: 0 }] },
    #[cfg(target_arch = "x86_64")]
    Call { number: libc::SYS_open, only: &[Only { argument: 1, mask: CHANGING, value: 0 }] },
];

const COLLECTOR_WITH: &[Call] = &[
    Call { number: libc::SYS_ioctl, only: &[Only { argument: 1, mask: WHOLE, value: NVME_ADMIN }] },
    Call { number: libc::SYS_ioctl, only: &[Only { argument: 1, mask: WHOLE, value: SG_IO }] },
    Call {
        number: libc::SYS_socket,
        only: &[
            Only { argument: 0, mask: WHOLE, value: libc::AF_NETLINK as u32 },
            Only { argument: 2, mask: WHOLE, value: UEVENT },
        ],
    },
    any(libc::SYS_bind),
    any(libc::SYS_setsockopt),
];

const PROBER: &[i64] = &[libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_io_uring_setup];

/// Answering, and the state directory, outside of which Landlock refuses. The thread that is left that directory may come to
/// it late, when the disk is slow: Landlock's calls stay allowed, which can only take more away.
const SERVER: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_mkdirat,
    libc::SYS_openat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_setsockopt,
    libc::SYS_unlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// Everything that `part` may call.
pub(super) fn of(part: Part) -> impl Iterator<Item = Call> {
    let (plain, with): (&[&[i64]], &[&[Call]]) = match part {
        Part::Collector => (&[EVERY, LOOKING], &[EVERY_WITH, LOOKING_WITH, COLLECTOR_WITH]),
        Part::Prober => (&[EVERY, LOOKING, PROBER], &[EVERY_WITH, LOOKING_WITH]),
        Part::Server => (&[EVERY, LOOKING, SERVER], &[EVERY_WITH]),
    };
    let plain = plain.iter().copied().flatten().copied().map(any);
    plain.chain(with.iter().copied().flatten().copied())
}
