//! Numbers in few columns. A point is the decimal mark everywhere, whatever the locale.

use std::time::Duration;

/// More than nothing, in [`short`] and in [`percent`].
pub(super) const TRACE: &str = "<0.1";
/// See [`TRACE`].
pub(super) const TRACE_PERCENT: &str = "<1%";

const STEPS: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// Three significant digits at most: `0`, `0.2`, `5.2`, `110`, `12.3k`.
pub(super) fn short(value: f64) -> String {
    if value < 999.5 {
        return digits(value);
    }
    let (unit, letter) = STEPS.into_iter().find(|(unit, _)| value >= *unit * 0.9995).unwrap_or((1.0, ""));
    format!("{}{letter}", digits(value / unit))
}

fn digits(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value < 0.05 {
        TRACE.to_owned()
    } else if value < 9.95 || value < 99.95 && (0.05..0.95).contains(&value.fract()) {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A latency: `92us`, `0.85ms`, `12.0ms`, `1.40s`.
pub(super) fn latency(seconds: f64) -> String {
    if seconds < 0.000_5 {
        format!("{:.0}us", seconds * 1e6)
    } else if seconds < 0.009_995 {
        format!("{:.2}ms", seconds * 1e3)
    } else if seconds < 0.099_95 {
        format!("{:.1}ms", seconds * 1e3)
    } else if seconds < 0.999_5 {
        format!("{:.0}ms", seconds * 1e3)
    } else if seconds < 9.995 {
        format!("{seconds:.2}s")
    } else {
        format!("{seconds:.0}s")
    }
}

/// A latency below `seconds`, which is rounded up to one digit: `<4us`, `<0.5ms`, `<1ms`.
pub(super) fn below(seconds: f64) -> String {
    let microseconds = (seconds * 1e6).max(1.0);
    // What floating point adds to a whole digit is not rounded up to the next one.
    let step = 10_f64.powf((microseconds * (1.0 + 1e-9)).log10().floor());
    let bound = (microseconds / step - 1e-9).ceil() * step;
    if bound < 100.0 { format!("<{bound:.0}us") } else { format!("<{}ms", digits(bound / 1e3).trim_end_matches(".0")) }
}

/// A span in its largest unit: `41 s`, `34 min`, `5 h`, `3 d`.
pub(super) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A share as percent: `22%`; a trace is not shown as none.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.5 { TRACE_PERCENT.to_owned() } else { format!("{percent:.0}%") }
}

/// A share as percent with one decimal: `3.1 %`.
pub(super) fn percent_fine(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A size in decimal units: `3.84 TB`.
#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
pub(super) fn capacity(bytes: u128) -> String {
    let bytes = bytes as f64;
    let (unit, letter) = STEPS.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1.0, ""));
    format!("{:.2} {letter}B", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown: Vec<String> =
            [0.0, 0.01, 0.2, 9.96, 30.0, 52.34, 110.0, 999.7, 12_340.0, 1.5e6, 7.2e12].map(short).to_vec();
        assert_eq!(shown, ["0", "<0.1", "0.2", "10", "30", "52.3", "110", "1.0k", "12.3k", "1.5M", "7.2T"]);
    }

    #[test]
    fn latencies_keep_two_digits() {
        let shown: Vec<String> = [92e-6, 310e-6, 850e-6, 1.4e-3, 12e-3, 0.25, 1.4, 30.0].map(latency).to_vec();
        assert_eq!(shown, ["92us", "310us", "0.85ms", "1.40ms", "12.0ms", "250ms", "1.40s", "30s"]);
    }

    #[test]
    fn a_bound_is_rounded_up() {
        let shown: Vec<String> =
            [1e-3, 1e-3 / 2.0, 1e-3 / 3.0, 1e-3 / 10.0, 1e-3 / 11.0, 1e-3 / 5000.0, 0.010, 0.002].map(below).to_vec();
        assert_eq!(shown, ["<1ms", "<0.5ms", "<0.4ms", "<0.1ms", "<0.1ms", "<1us", "<10ms", "<2ms"]);
    }

    #[test]
    fn spans_take_their_largest_unit() {
        let shown: Vec<String> = [41, 119, 2040, 7199, 7200, 200_000].map(|s| span(Duration::from_secs(s))).to_vec();
        assert_eq!(shown, ["41 s", "119 s", "34 min", "119 min", "2 h", "2 d"]);
    }
}
