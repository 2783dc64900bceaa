//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst, block/genhd.c).
//!
//! The number of fields is decided line by line: 11 numbers after the name are the minimum, 15 add discards, 17 add
//! flushes, and what follows is left to a later release.

use crate::attribute::{MAX_PROC_FILE, read_required};
use crate::root::Root;
use std::collections::HashMap;
use storscope_model::fault::Fault;
use storscope_model::sample::diskstats::{Direction, DiskCounters, Flushes, Row, Table};

/// Faults that are kept of one file; further bad lines are only counted.
pub const MAX_FAULTS: usize = 16;
/// Rows that are kept of one file.
pub const MAX_ROWS: usize = 100_000;
/// Longest device name in bytes; the kernel's own limit is 32.
pub const MAX_NAME: usize = 128;

/// Numbers after the name that every kernel prints.
const BASIC: usize = 11;
/// Numbers with the discard group (4.18).
const WITH_DISCARDS: usize = 15;
/// Numbers with the flush group (5.5).
const WITH_FLUSHES: usize = 17;
/// Length of a short line, to size the table.
const SHORT_LINE: usize = 48;

/// The counters of every block device.
///
/// # Errors
/// When the file cannot be read at all; a bad line is a fault within the table.
pub fn read(root: &Root) -> Result<Table, Fault> {
    let path = root.proc("diskstats");
    let bytes = read_required(&path, MAX_PROC_FILE)?;
    Ok(parse(&path.display().to_string(), &bytes))
}

/// The table that `bytes` hold; `path` is for the faults. Where a name stands twice the later line counts: the kernel
/// prints while devices come and go, so that the later one is the newer device.
pub fn parse(path: &str, bytes: &[u8]) -> Table {
    let mut faults = Faults::new(path);
    let capacity = (bytes.len() / SHORT_LINE).min(MAX_ROWS);
    let mut rows: Vec<Row> = Vec::with_capacity(capacity);
    let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(capacity);
    for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let Some(whole) = line.strip_suffix(b"\n") else {
            faults.add(index, "cut off before its end", line);
            continue;
        };
        if whole.trim_ascii().is_empty() {
            continue;
        }
        let (name, row) = match row(whole) {
            Ok(parsed) => parsed,
            Err(what) => {
                faults.add(index, what, whole);
                continue;
            }
        };
        if let Some(earlier) = seen.get(name).and_then(|&at| rows.get_mut(at)) {
            faults.add(index, "name seen before; this line counts", name);
            *earlier = row;
        } else if rows.len() < MAX_ROWS {
            seen.insert(name, rows.len());
            rows.push(row);
        } else {
            faults.add(index, "more devices than are kept", name);
        }
    }
    Table { rows, faults: faults.finish() }
}

/// One line, with its name as printed.
fn row(line: &[u8]) -> Result<(&[u8], Row), &'static str> {
    if line.contains(&0) {
        return Err("NUL in line");
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut device_number = || words.next().and_then(number).and_then(|n| n.try_into().ok());
    let (Some(major), Some(minor)) = (device_number(), device_number()) else {
        return Err("no device number");
    };
    let name = words.next().ok_or("no name")?;
    if name.len() > MAX_NAME {
        return Err("name too long");
    }
    let mut numbers = [0; WITH_FLUSHES];
    let mut bad = WITH_FLUSHES;
    let mut count = 0;
    for (place, word) in numbers.iter_mut().zip(words) {
        match number(word) {
            Some(value) => *place = value,
            None => bad = bad.min(count),
        }
        count += 1;
    }
    let used = match count {
        WITH_FLUSHES.. => WITH_FLUSHES,
        WITH_DISCARDS.. => WITH_DISCARDS,
        BASIC.. => BASIC,
        _ => return Err("fewer than 14 fields"),
    };
    if bad < used {
        return Err("not an unsigned 64-bit number");
    }
    let row =
        Row { name: String::from_utf8_lossy(name).into_owned(), major, minor, counters: counters(&numbers, used) };
    Ok((name, row))
}

/// The groups of the first `used` numbers.
fn counters(numbers: &[u64; WITH_FLUSHES], used: usize) -> DiskCounters {
    let direction = |completed, merged, sectors, time_ms| Direction { completed, merged, sectors, time_ms };
    let [a, b, c, d, e, f, g, h, in_flight, io_time_ms, weighted_time_ms, rest @ ..] = *numbers;
    let [i, j, k, l, completed, time_ms] = rest;
    DiskCounters {
        reads: direction(a, b, c, d),
        writes: direction(e, f, g, h),
        in_flight,
        io_time_ms,
        weighted_time_ms,
        discards: (used >= WITH_DISCARDS).then(|| direction(i, j, k, l)),
        flushes: (used >= WITH_FLUSHES).then_some(Flushes { completed, time_ms }),
    }
}

/// A decimal number; no sign, no other base.
fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// At most [`MAX_FAULTS`] faults, and how many more there were.
struct Faults<'a> {
    path: &'a str,
    kept: Vec<Fault>,
    more: u64,
}

impl<'a> Faults<'a> {
    const fn new(path: &'a str) -> Self {
        Self { path, kept: Vec::new(), more: 0 }
    }

    fn add(&mut self, index: usize, what: &str, quoted: &[u8]) {
        if self.kept.len() < MAX_FAULTS {
            let line = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
            self.kept.push(Fault::parse(self.path, line, what, quoted));
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<Fault> {
        if self.more > 0 {
            self.kept.push(Fault::Parse {
                path: self.path.to_owned(),
                line: 0,
                what: format!("{} more bad lines", self.more),
            });
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    const BASIC_LINE: &str = " 8 0 sda 10 1 80 5 20 2 160 9 3 12 14\n";

    fn table(text: &str) -> Table {
        parse("diskstats", text.as_bytes())
    }

    fn only(text: &str) -> Row {
        let table = table(text);
        assert_eq!((table.rows.len(), table.faults.len()), (1, 0), "{table:?}");
        table.rows.into_iter().next().unwrap()
    }

    #[test]
    fn groups_are_those_of_the_line() {
        let basic = only(BASIC_LINE);
        assert_eq!((basic.name.as_str(), basic.major, basic.minor), ("sda", 8, 0));
        assert_eq!(
            basic.counters,
            DiskCounters {
                reads: Direction { completed: 10, merged: 1, sectors: 80, time_ms: 5 },
                writes: Direction { completed: 20, merged: 2, sectors: 160, time_ms: 9 },
                in_flight: 3,
                io_time_ms: 12,
                weighted_time_ms: 14,
                discards: None,
                flushes: None,
            }
        );
        let discards = only("259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n").counters;
        let group = Direction { completed: 12, merged: 13, sectors: 14, time_ms: 15 };
        assert_eq!((discards.discards, discards.flushes), (Some(group), None));
        let flushes = only("259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n").counters;
        let flush = Flushes { completed: 16, time_ms: 17 };
        assert_eq!((flushes.discards, flushes.flushes), (Some(group), Some(flush)));
    }

    #[test]
    fn a_part_of_a_group_or_an_unknown_tail_is_ignored() {
        for (numbers, discards, flushes) in
            [(12, false, false), (14, false, false), (16, true, false), (18, true, true), (40, true, true)]
        {
            let line = format!("8 0 sda{}\n", " 7".repeat(numbers));
            let counters = only(&line).counters;
            assert_eq!((counters.discards.is_some(), counters.flushes.is_some()), (discards, flushes), "{numbers}");
        }
        assert_eq!(
            only("8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 new=word\n").counters.flushes.unwrap().completed,
            16
        );
    }

    #[test]
    fn a_bad_line_costs_only_itself() {
        let text = format!(
            "8 16 sdb 1 2 3\n8 32 sdc 1 2 3 4 5 6 7 18446744073709551616 9 10 11\n8 48 sdd 1 2 3 4 5 6 7 -8 9 10 11\n\
             x y sde 1 2 3 4 5 6 7 8 9 10 11\n8 0 s\0a 1 2 3 4 5 6 7 8 9 10 11\n\n{BASIC_LINE}8 64 sdf 1 2 3 4 5 6 7 8 9 10 1"
        );
        let table = table(&text);
        assert_eq!(table.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["sda"]);
        let text: Vec<_> = table.faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "diskstats:1: fewer than 14 fields: \"8 16 sdb 1 2 3\"",
                "diskstats:2: not an unsigned 64-bit number: \"8 32 sdc 1 2 3 4 5 6 7 18446744073709551616 9 10 11\"",
                "diskstats:3: not an unsigned 64-bit number: \"8 48 sdd 1 2 3 4 5 6 7 -8 9 10 11\"",
                "diskstats:4: no device number: \"x y sde 1 2 3 4 5 6 7 8 9 10 11\"",
                "diskstats:5: NUL in line: \"8 0 s\\x00a 1 2 3 4 5 6 7 8 9 10 11\"",
                "diskstats:8: cut off before its end: \"8 64 sdf 1 2 3 4 5 6 7 8 9 10 1\"",
            ]
        );
    }

    #[test]
    fn the_largest_numbers_fit() {
        let max = u64::MAX.to_string();
        let counters = only(&format!("8 0 sda{}\n", format!(" {max}").repeat(17))).counters;
        assert_eq!(counters.reads.sectors, u64::MAX);
        assert_eq!(counters.flushes.unwrap().time_ms, u64::MAX);
    }

    #[test]
    fn faults_are_bounded_and_counted() {
        let table = table(&"\0".repeat(9000).split_inclusive('\0').map(|nul| format!("{nul}\n")).collect::<String>());
        assert_eq!(table.faults.len(), MAX_FAULTS + 1);
        assert_eq!(table.faults[MAX_FAULTS].to_string(), "diskstats: 8984 more bad lines");
        let long = parse("diskstats", &vec![0; 65_536]);
        assert!(long.faults[0].to_string().len() < 500, "{}", long.faults[0]);
    }

    #[test]
    fn names_are_kept_and_the_later_of_two_counts() {
        let table = table(
            "104 0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11\n8 0 sdb 1 2 3 4 5 6 7 8 9 10 11\n8 0 sdc 1 2 3 4 5 6 7 8 9 10 11\n8 16 sdb 99 2 3 4 5 6 7 8 9 10 11\n",
        );
        let names: Vec<_> =
            table.rows.iter().map(|row| (row.name.as_str(), row.minor, row.counters.reads.completed)).collect();
        assert_eq!(names, [("cciss/c0d0", 0, 1), ("sdb", 16, 99), ("sdc", 0, 1)]);
        assert_eq!(table.faults.len(), 1);
        let long = "n".repeat(MAX_NAME + 1);
        assert_eq!(parse("diskstats", format!("8 0 {long} 1 2 3 4 5 6 7 8 9 10 11\n").as_bytes()).faults.len(), 1);
    }

    #[test]
    fn names_that_are_not_utf8_are_replaced() {
        let table = parse("diskstats", b"8 0 s\xc0\x1c 1 2 3 4 5 6 7 8 9 10 11\n");
        assert_eq!(table.rows[0].name, "s\u{fffd}\u{1c}");
    }

    #[test]
    fn files_absent_empty_and_too_long() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        assert_eq!(
            read(&root),
            Err(Fault::Io { path: root.proc("diskstats").display().to_string(), errno: nix::libc::ENOENT })
        );
        std::fs::create_dir(root.proc("")).unwrap();
        std::fs::write(root.proc("diskstats"), "").unwrap();
        assert_eq!(read(&root), Ok(Table::default()));
        std::fs::write(root.proc("diskstats"), vec![b'\n'; MAX_PROC_FILE + 1]).unwrap();
        assert_eq!(read(&root).unwrap_err().class(), "parse");
        std::fs::write(root.proc("diskstats"), BASIC_LINE).unwrap();
        assert_eq!(read(&root).unwrap().rows.len(), 1);
    }

    #[test]
    fn a_denied_file_is_named() {
        if !unprivileged::go_on("diskstats::tests::a_denied_file_is_named") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir(root.proc("")).unwrap();
        std::fs::write(root.proc("diskstats"), BASIC_LINE).unwrap();
        unprivileged::deny(&root.proc("diskstats"));
        assert!(matches!(read(&root), Err(Fault::Denied { path, .. }) if path.ends_with("diskstats")));
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let table = parse("diskstats", &bytes);
            prop_assert!(table.faults.len() <= MAX_FAULTS + 1);
        }

        #[test]
        fn near_lines_parse(text in "([0-9]{1,2} [0-9]{1,2} [a-z/]{1,5}( [0-9]{1,22}){9,19}[ x\\-\0]?\n){0,30}") {
            let table = parse("diskstats", text.as_bytes());
            let lines = text.lines().count();
            prop_assert!(table.rows.len() <= lines);
            prop_assert!(table.rows.len() + table.faults.len() >= lines.min(MAX_FAULTS));
        }

        #[test]
        fn printed_numbers_come_back(numbers in proptest::collection::vec(any::<u64>(), 17)) {
            let words: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            let row = only(&format!("   8       0 sda {}\n", words.join(" ")));
            prop_assert_eq!(row.counters.reads.completed, numbers[0]);
            prop_assert_eq!(row.counters.writes.time_ms, numbers[7]);
            prop_assert_eq!(row.counters.weighted_time_ms, numbers[10]);
            prop_assert_eq!(row.counters.flushes.map(|f| f.time_ms), Some(numbers[16]));
        }
    }
}
