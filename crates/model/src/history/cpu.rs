//! Shares of CPU time, of the host and of the agent itself.

use crate::reading::Reading;
use crate::sample::host::{Agent, Cpu};
use crate::time::BootTime;
use crate::view::CpuShares;

/// Newest samples of CPU time and the shares between them.
#[derive(Debug, Clone, Default)]
pub struct CpuHistory {
    host: Option<(BootTime, u64, u64, u64)>,
    agent: Option<(BootTime, u64)>,
    shares: Option<CpuShares>,
    agent_share: Option<f64>,
}

impl CpuHistory {
    /// Takes in the newest samples; what is not fresh has no share.
    pub fn take(&mut self, cpu: &Reading<Cpu>, agent: &Reading<Agent>) {
        match cpu.fresh_stamped() {
            None => (self.host, self.shares) = (None, None),
            Some(sample) if self.host.is_none_or(|(at, ..)| at != sample.ended) => {
                let new = (sample.ended, sample.value.total_ticks, sample.value.idle_ticks, sample.value.iowait_ticks);
                self.shares = self.host.and_then(|old| host_shares(old, new));
                self.host = Some(new);
            }
            Some(_) => {}
        }
        match agent.fresh_stamped() {
            None => (self.agent, self.agent_share) = (None, None),
            Some(sample) if self.agent.is_none_or(|(at, _)| at != sample.ended) => {
                let new = (sample.ended, sample.value.cpu_ns);
                self.agent_share = self.agent.and_then(|old| agent_share(old, new));
                self.agent = Some(new);
            }
            Some(_) => {}
        }
    }

    /// The host's shares over the newest interval.
    pub const fn shares(&self) -> Option<CpuShares> {
        self.shares
    }

    /// The agent's share of one core over the newest interval.
    pub const fn agent_share(&self) -> Option<f64> {
        self.agent_share
    }
}

/// `None` when a count went back, which `iowait` may do (proc_stat(5)).
#[expect(clippy::cast_precision_loss, reason = "a share needs no digits past 2^53")]
fn host_shares(old: (BootTime, u64, u64, u64), new: (BootTime, u64, u64, u64)) -> Option<CpuShares> {
    let total = new.1.checked_sub(old.1)?;
    let idle = new.2.checked_sub(old.2)?;
    let iowait = new.3.checked_sub(old.3)?;
    let share = |ticks: u64| (ticks as f64 / total as f64).clamp(0.0, 1.0);
    (total > 0)
        .then(|| CpuShares { busy: share(total.saturating_sub(idle.saturating_add(iowait))), iowait: share(iowait) })
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no digits past 2^53")]
fn agent_share(old: (BootTime, u64), new: (BootTime, u64)) -> Option<f64> {
    let spent = new.1.checked_sub(old.1)?;
    let time = new.0.0.checked_sub(old.0.0)?;
    (time > 0).then(|| spent as f64 / time as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(total_ticks: u64, idle_ticks: u64, iowait_ticks: u64, at: u64) -> Reading<Cpu> {
        let mut reading = Reading::Never;
        reading.succeed(Cpu { total_ticks, idle_ticks, iowait_ticks, ..Cpu::default() }, BootTime(at), BootTime(at));
        reading
    }

    #[test]
    fn shares_are_of_the_newest_interval() {
        let mut history = CpuHistory::default();
        history.take(&cpu(1000, 800, 50, 1), &Reading::Never);
        assert_eq!(history.shares(), None);
        history.take(&cpu(2000, 1300, 150, 2), &Reading::Never);
        assert_eq!(history.shares(), Some(CpuShares { busy: 0.4, iowait: 0.1 }));
        history.take(&cpu(2000, 1300, 150, 2), &Reading::Never);
        assert!(history.shares().is_some(), "the same sample again keeps the shares");
        history.take(&cpu(3000, 1800, 149, 3), &Reading::Never);
        assert_eq!(history.shares(), None, "iowait went back");
    }

    #[test]
    fn the_agents_share_is_of_one_core() {
        let mut history = CpuHistory::default();
        let agent = |cpu_ns, at| {
            let mut reading = Reading::Never;
            reading.succeed(Agent { cpu_ns, ..Agent::default() }, BootTime(at), BootTime(at));
            reading
        };
        history.take(&Reading::Never, &agent(0, 1_000_000_000));
        history.take(&Reading::Never, &agent(5_000_000, 2_000_000_000));
        assert_eq!(history.agent_share(), Some(0.005));
        history.take(&Reading::Never, &Reading::Never);
        assert_eq!(history.agent_share(), None);
    }
}
