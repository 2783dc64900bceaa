//! Pressure stall information, `/proc/pressure` (Documentation/accounting/psi.rst).

use crate::attribute::{MAX_ATTRIBUTE, read_bytes};
use crate::root::Root;
use nix::errno::Errno;
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_model::sample::Sample;
use storscope_model::sample::host::{Pressure, PressureLine, PressureResource};

/// Lines that are read of one file; the kernel prints two.
const MAX_LINES: usize = 16;

/// The pressure of I/O, CPU and memory. Not supported where the kernel was built or booted without it (`psi=0`: the
/// files are there and reading them fails with EOPNOTSUPP).
pub fn read(root: &Root) -> Outcome {
    let mut pressure = Pressure::default();
    let mut offered = false;
    for (name, place) in [
        ("pressure/io", &mut pressure.io),
        ("pressure/cpu", &mut pressure.cpu),
        ("pressure/memory", &mut pressure.memory),
    ] {
        match resource(root, name) {
            Ok(None) => {}
            Ok(Some(resource)) => {
                *place = resource;
                offered = true;
            }
            Err(fault) => pressure.faults.push(fault),
        }
    }
    if offered {
        return Outcome::Value(Box::new(Sample::Pressure(pressure)));
    }
    match pressure.faults.into_iter().next() {
        Some(fault) => Outcome::Failed(fault),
        None => Outcome::Unsupported("the kernel has no pressure stall information".to_owned()),
    }
}

fn resource(root: &Root, name: &str) -> Result<Option<PressureResource>, Fault> {
    let path = root.proc(name);
    match read_bytes(&path, MAX_ATTRIBUTE) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => parse(&path.display().to_string(), &bytes).map(Some),
        Err(fault) if means_off(&fault) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// True when the facility is there and switched off.
fn means_off(fault: &Fault) -> bool {
    matches!(fault, Fault::Io { errno, .. } if Errno::from_raw(*errno) == Errno::EOPNOTSUPP)
}

/// `some` and `full`; kernels before 5.13 print no `full` for the CPU. Lines of another first word are ignored.
pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<PressureResource, Fault> {
    let text = String::from_utf8_lossy(bytes);
    let mut resource = PressureResource::default();
    for (number, text) in (1..).zip(text.lines().take(MAX_LINES)) {
        let mut words = text.split_ascii_whitespace();
        let place = match words.next() {
            Some("some") => &mut resource.some,
            Some("full") => &mut resource.full,
            _ => continue,
        };
        let bad = || Fault::parse(path, number, "not a line of pressure", text.as_bytes());
        *place = Some(line(words).ok_or_else(bad)?);
    }
    if resource == PressureResource::default() {
        return Err(Fault::parse(path, 1, "no line of pressure", bytes));
    }
    Ok(resource)
}

fn line<'a>(words: impl Iterator<Item = &'a str>) -> Option<PressureLine> {
    let (mut avg10, mut avg60, mut avg300, mut total) = (None, None, None, None);
    for word in words {
        match word.split_once('=')? {
            ("avg10", value) => avg10 = Some(share(value)?),
            ("avg60", value) => avg60 = Some(share(value)?),
            ("avg300", value) => avg300 = Some(share(value)?),
            ("total", value) => total = Some(value.parse().ok()?),
            _ => {}
        }
    }
    Some(PressureLine { avg10: avg10?, avg60: avg60?, avg300: avg300?, total_us: total? })
}

/// A percentage as a share of one.
fn share(text: &str) -> Option<f64> {
    let decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percent: f64 = text.parse().ok()?;
    (decimal && percent <= 100.0).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    const SOME: &str = "some avg10=1.50 avg60=25.00 avg300=100.00 total=73153919\n";
    const FULL: &str = "full avg10=0.00 avg60=0.25 avg300=3.00 total=7\n";

    fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir_all(root.proc("pressure")).unwrap();
        for (name, text) in files {
            std::fs::write(root.proc("pressure").join(name), text).unwrap();
        }
        (dir, root)
    }

    fn sample(outcome: Outcome) -> Pressure {
        match outcome {
            Outcome::Value(sample) => match *sample {
                Sample::Pressure(pressure) => pressure,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn shares_and_totals() {
        let both = format!("{SOME}{FULL}");
        let (_dir, root) = root(&[("io", &both), ("cpu", SOME), ("memory", &both)]);
        let pressure = sample(read(&root));
        let some = PressureLine { avg10: 0.015, avg60: 0.25, avg300: 1.0, total_us: 73_153_919 };
        assert_eq!(pressure.io.some, Some(some));
        assert_eq!(pressure.io.full.unwrap().total_us, 7);
        assert_eq!((pressure.cpu.some, pressure.cpu.full), (Some(some), None));
        assert!(pressure.faults.is_empty());
    }

    #[test]
    fn absent_or_switched_off_is_unsupported() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        assert!(matches!(read(&root), Outcome::Unsupported(_)));
        let io = |errno: Errno| Fault::Io { path: "io".to_owned(), errno: errno as i32 };
        assert!(means_off(&io(Errno::EOPNOTSUPP)));
        assert!(!means_off(&io(Errno::EIO)));
    }

    #[test]
    fn a_bad_file_costs_only_itself() {
        for bad in [
            "",
            "\n",
            "some\n",
            "full",
            "some avg10=1.50 avg60=25.00 total=1\n",
            "some avg10=nan avg60=25.00 avg300=1.00 total=1\n",
            "some avg10=101.0 avg60=25.00 avg300=1.00 total=1\n",
            "some avg10=1,50 avg60=25.00 avg300=1.00 total=1\n",
            "some avg10=-1 avg60=25.00 avg300=1.00 total=1\n",
            "some avg10=1.50 avg60=25.00 avg300=1.00 total=18446744073709551616\n",
            "so\0me avg10=1.50 avg60=25.00 avg300=1.00 total=1\n",
        ] {
            let (_dir, root) = root(&[("io", SOME), ("memory", bad)]);
            let pressure = sample(read(&root));
            assert!(pressure.io.some.is_some());
            assert_eq!(pressure.memory, PressureResource::default(), "{bad:?}");
            assert!(
                matches!(pressure.faults.as_slice(), [Fault::Parse { path, .. }] if path.ends_with("memory")),
                "{bad:?}: {pressure:?}"
            );
        }
    }

    #[test]
    fn nothing_but_faults_is_a_failure() {
        let (_dir, root) = root(&[("io", "x\n")]);
        assert!(matches!(read(&root), Outcome::Failed(Fault::Parse { .. })));
    }

    #[test]
    fn a_denied_file_costs_only_itself() {
        if !unprivileged::go_on("pressure::tests::a_denied_file_costs_only_itself") {
            return;
        }
        let (_dir, root) = root(&[("io", SOME), ("cpu", SOME)]);
        unprivileged::deny(&root.proc("pressure/cpu"));
        let pressure = sample(read(&root));
        assert!(pressure.io.some.is_some());
        assert!(matches!(pressure.faults.as_slice(), [Fault::Denied { .. }]));
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse("io", &bytes);
        }

        #[test]
        fn near_lines_parse(text in "(some|full)?( (avg10|avg60|avg300|total)=[0-9.]{0,6}){0,5}\n?") {
            if let Ok(resource) = parse("io", text.as_bytes()) {
                let lines = [resource.some, resource.full];
                prop_assert!(lines.iter().flatten().all(|line| (0.0..=1.0).contains(&line.avg10)));
            }
        }
    }
}
