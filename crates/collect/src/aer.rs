//! PCIe advanced error reporting counters of a drive and of the port directly above it
//! (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats). The counters live in the kernel: reading them wakes
//! nothing.

use crate::attribute::read_text;
use crate::pcie;
use crate::root::Root;
use std::path::Path;
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_model::sample::Sample;
use storscope_model::sample::pcie::{Aer, AerCounter, AerFunction, Severity};

/// Lines that are read of one file; a status register has 32 bits.
pub const MAX_LINES: usize = 64;
/// Longest error name in bytes.
pub const MAX_NAME: usize = 64;

/// A drive and its link partner: errors often show only on the latter.
const FUNCTIONS: usize = 2;
const FILES: [(Severity, &str); 3] = [
    (Severity::Correctable, "aer_dev_correctable"),
    (Severity::Nonfatal, "aer_dev_nonfatal"),
    (Severity::Fatal, "aer_dev_fatal"),
];

/// The counters of the PCI function at or above `device` (a resolved sysfs folder) and of the port directly above it.
/// Not supported where neither has any.
pub fn read(root: &Root, device: &Path) -> Outcome {
    let mut aer = Aer::default();
    for folder in pcie::functions(root, device).into_iter().take(FUNCTIONS) {
        let mut function =
            AerFunction { address: pcie::address(folder).unwrap_or_default().to_owned(), counters: Vec::new() };
        for (severity, name) in FILES {
            let path = folder.join(name);
            match read_text(&path) {
                Ok(None) => {}
                Ok(Some(text)) => {
                    parse(&path.display().to_string(), &text, severity, &mut function.counters, &mut aer.faults)
                }
                Err(fault) => aer.faults.push(fault),
            }
        }
        if !function.counters.is_empty() {
            aer.functions.push(function);
        }
    }
    if !aer.functions.is_empty() {
        return Outcome::Value(Box::new(Sample::PcieAer(aer)));
    }
    match aer.faults.into_iter().next() {
        Some(fault) => Outcome::Failed(fault),
        None => Outcome::Unsupported("no AER counters on the device or its port".to_owned()),
    }
}

/// Adds the counters of one file: the last field of a line is the number, all before it the name, which may hold
/// spaces. Totals are left out.
pub(crate) fn parse(
    path: &str,
    text: &str,
    severity: Severity,
    counters: &mut Vec<AerCounter>,
    faults: &mut Vec<Fault>,
) {
    for (index, line) in text.lines().enumerate().take(MAX_LINES) {
        let line = line.trim();
        if line.is_empty() || line.starts_with("TOTAL_ERR_") {
            continue;
        }
        match counter(line) {
            Some((error, count)) => counters.push(AerCounter { severity, error: error.to_owned(), count }),
            None => {
                let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
                let what = "not an error name and a count";
                faults.push(Fault::parse(path, number, what, line.as_bytes()));
            }
        }
    }
}

fn counter(line: &str) -> Option<(&str, u64)> {
    let (name, number) = line.rsplit_once(char::is_whitespace)?;
    let name = name.trim_end();
    let sound = !name.is_empty() && name.len() <= MAX_NAME && !name.contains(char::is_control);
    sound.then_some((name, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    const PORT: &str = "devices/pci0000:00/0000:00:02.1";
    const DRIVE: &str = "devices/pci0000:00/0000:00:02.1/0000:01:00.0";

    fn root(files: &[(&str, &str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir_all(root.sys(DRIVE)).unwrap();
        for (folder, name, text) in files {
            std::fs::write(root.sys(folder).join(name), text).unwrap();
        }
        (dir, root)
    }

    fn sample(outcome: Outcome) -> Aer {
        match outcome {
            Outcome::Value(sample) => match *sample {
                Sample::PcieAer(aer) => aer,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn flat(aer: &Aer) -> Vec<(&str, Severity, &str, u64)> {
        aer.functions
            .iter()
            .flat_map(|function| {
                function
                    .counters
                    .iter()
                    .map(|counter| (function.address.as_str(), counter.severity, counter.error.as_str(), counter.count))
            })
            .collect()
    }

    #[test]
    fn drive_and_port_without_totals() {
        let (_dir, root) = root(&[
            (DRIVE, "aer_dev_correctable", "RxErr 3\nBad TLP now 18446744073709551615\nTOTAL_ERR_COR 4\n"),
            (DRIVE, "aer_dev_nonfatal", "CmpltTO 1\nTOTAL_ERR_NONFATAL 1\n"),
            (PORT, "aer_dev_fatal", "DLP 2\nTOTAL_ERR_FATAL 2\n"),
            (PORT, "aer_rootport_total_err_cor", "77\n"),
        ]);
        let aer = sample(read(&root, &root.sys(DRIVE).join("nvme/nvme0")));
        assert_eq!(
            flat(&aer),
            [
                ("0000:01:00.0", Severity::Correctable, "RxErr", 3),
                ("0000:01:00.0", Severity::Correctable, "Bad TLP now", u64::MAX),
                ("0000:01:00.0", Severity::Nonfatal, "CmpltTO", 1),
                ("0000:00:02.1", Severity::Fatal, "DLP", 2),
            ]
        );
        assert!(aer.faults.is_empty());
    }

    #[test]
    fn only_the_port_has_counters() {
        let (_dir, root) = root(&[(PORT, "aer_dev_correctable", "RxErr 5\n")]);
        let aer = sample(read(&root, &root.sys(DRIVE)));
        assert_eq!(flat(&aer), [("0000:00:02.1", Severity::Correctable, "RxErr", 5)]);
    }

    #[test]
    fn no_counters_is_unsupported() {
        let (_dir, root) = root(&[]);
        assert!(matches!(read(&root, &root.sys(DRIVE)), Outcome::Unsupported(_)));
        assert!(matches!(read(&root, &root.sys("devices/virtual")), Outcome::Unsupported(_)));
    }

    #[test]
    fn a_bad_line_costs_only_itself() {
        let text = "RxErr\nBadTLP x\nBadDLLP 18446744073709551616\n 7\nTimeout 9\n";
        let (_dir, root) = root(&[(DRIVE, "aer_dev_correctable", text)]);
        let aer = sample(read(&root, &root.sys(DRIVE)));
        assert_eq!(flat(&aer), [("0000:01:00.0", Severity::Correctable, "Timeout", 9)]);
        let lines: Vec<_> = aer
            .faults
            .iter()
            .map(|fault| match fault {
                Fault::Parse { line, .. } => *line,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lines, [1, 2, 3, 4]);
        std::fs::write(root.sys(DRIVE).join("aer_dev_correctable"), "RxErr").unwrap();
        assert!(matches!(read(&root, &root.sys(DRIVE)), Outcome::Failed(Fault::Parse { .. })));
    }

    #[test]
    fn lines_are_bounded() {
        let (_dir, root) = root(&[(DRIVE, "aer_dev_fatal", &"E 1\n".repeat(1000))]);
        assert_eq!(flat(&sample(read(&root, &root.sys(DRIVE)))).len(), MAX_LINES);
    }

    #[test]
    fn a_denied_file_costs_only_itself() {
        if !unprivileged::go_on("aer::tests::a_denied_file_costs_only_itself") {
            return;
        }
        let (_dir, root) = root(&[(DRIVE, "aer_dev_correctable", "RxErr 3\n"), (DRIVE, "aer_dev_fatal", "DLP 2\n")]);
        unprivileged::deny(&root.sys(DRIVE).join("aer_dev_correctable"));
        let aer = sample(read(&root, &root.sys(DRIVE)));
        assert_eq!(flat(&aer), [("0000:01:00.0", Severity::Fatal, "DLP", 2)]);
        assert!(matches!(aer.faults.as_slice(), [Fault::Denied { .. }]));
    }

    proptest! {
        #[test]
        fn any_text_parses(text in any::<String>()) {
            let (mut counters, mut faults) = (Vec::new(), Vec::new());
            parse("aer", &text, Severity::Fatal, &mut counters, &mut faults);
            prop_assert!(counters.len() + faults.len() <= MAX_LINES);
            prop_assert!(counters.iter().all(|counter| !counter.error.is_empty()));
        }

        #[test]
        fn names_and_counts_come_back(name in "[A-Za-z]{1,8}( [A-Za-z]{1,8}){0,3}", count in any::<u64>()) {
            prop_assume!(!name.starts_with("TOTAL_ERR_"));
            let line = format!("{name} {count}");
            prop_assert_eq!(counter(&line), Some((name.as_str(), count)));
        }
    }
}
