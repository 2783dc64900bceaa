//! Numbers in words, as findings say them.

use std::cmp::Ordering;
use std::fmt::Display;
use std::time::Duration;

/// A duration in its largest fitting unit: `45 s`, `34 min`, `5 h`, `3 d`.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// `1 drive`, `2 drives`.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// At most `most` names, and how many more there are: `nvme0, nvme1 and 22 more`.
pub fn names<T: Display>(all: &[T], most: usize) -> String {
    let shown: Vec<String> = all.iter().take(most).map(ToString::to_string).collect();
    let more = all.len().saturating_sub(most);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// Name and meaning of the errno(3) values that block devices give (`blk_errors` in `block/blk-core.c`).
pub const fn errno(value: i32) -> Option<(&'static str, &'static str)> {
    Some(match value {
        1 => ("EPERM", "not permitted"),
        5 => ("EIO", "input/output error"),
        6 => ("ENXIO", "no such device or address"),
        11 => ("EAGAIN", "would block"),
        12 => ("ENOMEM", "out of memory"),
        13 => ("EACCES", "permission denied"),
        16 => ("EBUSY", "device or resource busy"),
        19 => ("ENODEV", "device is offline"),
        22 => ("EINVAL", "invalid request"),
        28 => ("ENOSPC", "no space"),
        52 => ("EBADE", "reservation conflict"),
        61 => ("ENODATA", "medium error, write fault or locked range"),
        67 => ("ENOLINK", "transport error"),
        84 => ("EILSEQ", "protection information does not match"),
        95 => ("EOPNOTSUPP", "not supported"),
        110 => ("ETIMEDOUT", "timed out"),
        121 => ("EREMOTEIO", "target error"),
        123 => ("ENOMEDIUM", "no medium"),
        _ => return None,
    })
}

/// `EIO (input/output error)`, or the number where it has no name here.
pub fn errno_words(value: i32) -> String {
    errno(value).map_or_else(|| format!("errno {value}"), |(name, meaning)| format!("{name} ({meaning})"))
}

/// Compares names as people order them: `nvme2n1` before `nvme10n1`, `sdz` before `sdaa`.
pub fn natural_order(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one, other);
    while !a.is_empty() && !b.is_empty() {
        let (part_a, rest_a) = split_part(a);
        let (part_b, rest_b) = split_part(b);
        let digits = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        let order = if digits(part_a) && digits(part_b) {
            by_length(part_a.trim_start_matches('0'), part_b.trim_start_matches('0'))
        } else if part_a.starts_with("sd") && part_b.starts_with("sd") {
            by_length(part_a, part_b)
        } else {
            part_a.cmp(part_b)
        };
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.len().cmp(&b.len()).then_with(|| one.cmp(other))
}

fn by_length(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The leading run of digits, or of anything else, and the rest.
fn split_part(name: &str) -> (&str, &str) {
    let digit = name.starts_with(|c: char| c.is_ascii_digit());
    name.split_at(name.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_the_kernel_counts() {
        let mut names =
            ["sdaa", "nvme10n1", "sdb", "nvme2n1", "sdz", "nvme2n10", "md127", "nvme2n2", "sda", "vda", "sdb1"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names.join(" "), "md127 nvme2n1 nvme2n2 nvme2n10 nvme10n1 sda sdb sdb1 sdz sdaa vda");
        assert!(natural_order("nvme0n1", "nvme00n1").is_ne());
    }

    #[test]
    fn durations_counts_and_names_read_well() {
        let said = [0, 45, 119, 120, 2040, 7199, 7200, 172_799, 172_800].map(|s| duration(Duration::from_secs(s)));
        assert_eq!(said.join(", "), "0 s, 45 s, 119 s, 2 min, 34 min, 119 min, 2 h, 47 h, 2 d");
        assert_eq!(count(1, "drive"), "1 drive");
        assert_eq!(count(0, "drive"), "0 drives");
        assert_eq!(names(&["a", "b", "c"], 2), "a, b and 1 more");
        assert_eq!(errno_words(61), "ENODATA (medium error, write fault or locked range)");
        assert_eq!(errno_words(9999), "errno 9999");
    }
}
