//! Further NVMe logs: error information, firmware slots, self-test; and the agent's own commands.

use super::{Collect, Group, Kind, Metric, Samples};
use std::time::Duration;
use storscope_model::sample::nvme::{ErrorEntry, FirmwareSlots, SelfTestLog, SelfTestResult};
use storscope_model::view::View;

const fn gauge(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    source: &'static str,
    collect: Collect,
) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels, source, collect }
}

/// Status code types (NVM Express base specification, completion queue entry: status code type), by number.
const STATUS_TYPES: [&str; 8] =
    ["generic", "command_specific", "media", "path", "reserved_4", "reserved_5", "reserved_6", "vendor"];

const SLOTS: [&str; 7] = ["1", "2", "3", "4", "5", "6", "7"];

fn status_type(entry: &ErrorEntry) -> usize {
    usize::from(entry.status >> 8 & 7)
}

fn error_entries(view: &View, out: &mut Samples<'_, '_>) {
    for controller in &view.controllers {
        let Some(log) = controller.state.error_log.fresh() else {
            continue;
        };
        for (number, name) in STATUS_TYPES.into_iter().enumerate() {
            let count = log.entries.iter().filter(|entry| status_type(entry) == number).count();
            let reserved = matches!(number, 4..=6);
            if count > 0 || !reserved {
                out.put(&[&controller.state.controller.name, name], count);
            }
        }
    }
}

fn firmware(view: &View) -> impl Iterator<Item = (&str, &FirmwareSlots)> {
    view.controllers.iter().filter_map(|controller| {
        let slots = controller.state.firmware.fresh()?;
        Some((controller.state.controller.name.as_str(), slots))
    })
}

fn self_tests(view: &View) -> impl Iterator<Item = (&str, &SelfTestLog)> {
    view.controllers.iter().filter_map(|controller| {
        let log = controller.state.self_test.fresh()?;
        Some((controller.state.controller.name.as_str(), log))
    })
}

/// NVM Express base specification, device self-test log: self-test result.
const OUTCOMES: [&str; 3] = ["passed", "failed", "aborted"];

fn outcome(result: &SelfTestResult) -> &'static str {
    match result.result {
        0 => OUTCOMES[0],
        5..=7 => OUTCOMES[1],
        _ => OUTCOMES[2],
    }
}

pub(super) static GROUP: Group = Group {
    title: "NVMe logs and commands",
    about: "Error information (01h), firmware slots (03h) and device self-test (06h), and what the agent itself asks of a \
        drive. The agent never starts a self-test.",
    metrics: &[
        gauge(
            "storscope_nvme_error_log_held_entries",
            "Entries that the error log holds now, by status code type.",
            &["controller", "status_type"],
            "log page 01h",
            error_entries,
        ),
        Metric {
            kind: Kind::Info,
            ..gauge(
                "storscope_nvme_firmware_slot_info",
                "Revision in each firmware slot that is not empty.",
                &["controller", "slot", "revision"],
                "log page 03h",
                |view, out| {
                    for (controller, slots) in firmware(view) {
                        for (slot, revision) in SLOTS.into_iter().zip(&slots.revisions) {
                            if let Some(revision) = revision {
                                out.put(&[controller, slot, revision], true);
                            }
                        }
                    }
                },
            )
        },
        gauge(
            "storscope_nvme_firmware_active_slot",
            "Slot that the running firmware came from.",
            &["controller"],
            "log page 03h",
            |view, out| {
                for (controller, slots) in firmware(view) {
                    out.put(&[controller], slots.active);
                }
            },
        ),
        gauge(
            "storscope_nvme_firmware_activation_pending",
            "1 when another slot becomes active at the next controller reset.",
            &["controller"],
            "log page 03h",
            |view, out| {
                for (controller, slots) in firmware(view) {
                    out.put(&[controller], slots.next.is_some_and(|next| next != slots.active));
                }
            },
        ),
        gauge(
            "storscope_nvme_self_test_running",
            "1 while a self-test runs.",
            &["controller"],
            "log page 06h",
            |view, out| {
                for (controller, log) in self_tests(view) {
                    out.put(&[controller], log.current != 0);
                }
            },
        ),
        gauge(
            "storscope_nvme_self_test_completion_ratio",
            "Done of the self-test that runs; absent when none does.",
            &["controller"],
            "log page 06h",
            |view, out| {
                for (controller, log) in self_tests(view) {
                    let done = (log.current != 0).then(|| f64::from(log.percent) / 100.0);
                    out.put(&[controller], done);
                }
            },
        ),
        gauge(
            "storscope_nvme_self_test_results",
            "Results that the log holds, by outcome.",
            &["controller", "outcome"],
            "log page 06h",
            |view, out| {
                for (controller, log) in self_tests(view) {
                    for name in OUTCOMES {
                        let count = log.results.iter().filter(|result| outcome(result) == name).count();
                        out.put(&[controller, name], count);
                    }
                }
            },
        ),
        gauge(
            "storscope_nvme_self_test_last_result",
            "Result code of the newest self-test: 0 passed, 5 to 7 failed, others aborted.",
            &["controller"],
            "log page 06h",
            |view, out| {
                for (controller, log) in self_tests(view) {
                    out.put(&[controller], log.results.first().map(|result| result.result));
                }
            },
        ),
        gauge(
            "storscope_nvme_self_test_last_power_on_seconds",
            "Power-on time when the newest self-test ended; counted in hours.",
            &["controller"],
            "log page 06h",
            |view, out| {
                for (controller, log) in self_tests(view) {
                    let hours = log.results.first().map(|result| result.power_on_hours);
                    out.put(&[controller], hours.map(|hours| u128::from(hours) * 3600));
                }
            },
        ),
        Metric {
            kind: Kind::Counter,
            ..gauge(
                "storscope_drive_commands_total",
                "Commands that the agent sent to the drive, by outcome: `ok`, `status` (refused by the drive), `errno` (failed system call).",
                &["controller", "command", "outcome"],
                "the agent",
                |view, out| commands(view, |labels, count, _| out.put(labels, count)),
            )
        },
        Metric {
            kind: Kind::Counter,
            ..gauge(
                "storscope_drive_command_seconds_total",
                "Time that the agent's commands to the drive took.",
                &["controller", "command", "outcome"],
                "the agent",
                |view, out| commands(view, |labels, _, time| out.put(labels, time)),
            )
        },
    ],
};

fn commands(view: &View, mut put: impl FnMut(&[&str], u64, Duration)) {
    for controller in &view.controllers {
        let Some(commands) = controller.state.commands.fresh() else {
            continue;
        };
        for row in &commands.counts {
            put(
                &[&controller.state.controller.name, &row.command, row.outcome.as_str()],
                row.count,
                Duration::from_nanos(row.time_ns),
            );
        }
    }
}
