//! Limits of the process itself.

use anyhow::bail;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that are asked for; one a device in use, with room for connections.
const DESCRIPTORS: u64 = 65_536;

/// Without this many the agent cannot sample at all.
const LEAST: u64 = 48;

/// Raises the soft limit of open descriptors as far as the hard one allows, and says how many there are.
///
/// # Errors
/// When they are too few to start.
pub(crate) fn raise_descriptors() -> anyhow::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = DESCRIPTORS.min(hard);
    let raised = soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok();
    let have = if raised { wanted } else { soft };
    if have < LEAST {
        bail!("at most {have} open descriptors are allowed, at least {LEAST} are needed (ulimit -n, LimitNOFILE=)");
    }
    Ok(have)
}

/// Connections that may be open at once, of `wanted`, so that they leave `descriptors` to the sampling side.
pub(crate) fn connections(wanted: usize, descriptors: u64) -> usize {
    let half = usize::try_from(descriptors / 2).unwrap_or(usize::MAX);
    if half < wanted {
        tracing::warn!(wanted, allowed = half, "fewer connections than http.max_connections: descriptors are few");
    }
    wanted.min(half)
}

#[cfg(test)]
mod tests {
    use super::connections;

    #[test]
    fn connections_leave_half_of_the_descriptors() {
        assert_eq!(connections(256, 65_536), 256);
        assert_eq!(connections(256, 64), 32);
    }
}
