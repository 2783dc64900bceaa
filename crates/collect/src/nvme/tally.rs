//! The agent's own commands, counted and timed: what watching a drive costs it.

use std::collections::BTreeMap;
use storscope_drive::{CommandReport, Outcome};
use storscope_model::sample::nvme::{CommandCount, CommandOutcome, DriveCommands};

#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    count: u64,
    time_ns: u64,
}

/// Commands to one drive by kind and outcome, since the collector started.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    costs: BTreeMap<(&'static str, CommandOutcome), Cost>,
}

impl Tally {
    /// Adds commands that were sent; what a capture does not hold was sent to nobody.
    pub(super) fn add(&mut self, reports: &[CommandReport]) {
        for report in reports {
            let outcome = match report.outcome {
                Outcome::Done => CommandOutcome::Ok,
                Outcome::Status(_) => CommandOutcome::Status,
                Outcome::Errno(_) | Outcome::Scsi(_) => CommandOutcome::Errno,
                Outcome::NotServed => continue,
            };
            let cost = self.costs.entry((report.command.label(), outcome)).or_default();
            cost.count = cost.count.saturating_add(1);
            let took = u64::try_from(report.took.as_nanos()).unwrap_or(u64::MAX);
            cost.time_ns = cost.time_ns.saturating_add(took);
        }
    }

    /// All counts.
    pub(super) fn sample(&self) -> DriveCommands {
        let counts = self
            .costs
            .iter()
            .map(|((command, outcome), cost)| CommandCount {
                command: (*command).to_owned(),
                outcome: *outcome,
                count: cost.count,
                time_ns: cost.time_ns,
            })
            .collect();
        DriveCommands { counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use storscope_drive::{CommandId, LogPage, Status};

    #[test]
    fn commands_add_up_by_kind_and_outcome() {
        let smart = CommandId::GetLog(LogPage::SmartHealth);
        let report =
            |outcome, nanoseconds| CommandReport { command: smart, took: Duration::from_nanos(nanoseconds), outcome };
        let mut tally = Tally::default();
        tally.add(&[report(Outcome::Done, 5), report(Outcome::Done, 7)]);
        tally.add(&[report(Outcome::Status(Status::INVALID_FIELD), 3), report(Outcome::NotServed, 0)]);
        tally.add(&[report(Outcome::Errno(5), 1)]);
        let expected = [(CommandOutcome::Ok, 2, 12), (CommandOutcome::Status, 1, 3), (CommandOutcome::Errno, 1, 1)];
        let counts = expected.map(|(outcome, count, time_ns)| CommandCount {
            command: smart.label().to_owned(),
            outcome,
            count,
            time_ns,
        });
        assert_eq!(tally.sample().counts, counts);
    }
}
