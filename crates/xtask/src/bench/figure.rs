//! One measured figure beside its goal, and the table of them.

use std::fmt::Write;

/// What a figure says about its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The goal is met.
    Met,
    /// The goal is missed.
    Missed,
    /// There is no goal.
    Stated,
    /// Something that the measurement needs is not on this host.
    NotRun,
    /// The measurement broke.
    Failed,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Stated => "",
            Self::NotRun => "not run",
            Self::Failed => "FAILED",
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Figure {
    what: String,
    value: String,
    goal: String,
    /// How it stands to its goal.
    pub(super) verdict: Verdict,
}

impl Figure {
    /// A value that may be `limit` at most.
    pub(super) fn at_most(what: impl Into<String>, value: f64, limit: f64, unit: &str) -> Self {
        let verdict = if value <= limit { Verdict::Met } else { Verdict::Missed };
        Self { what: what.into(), value: amount(value, unit), goal: format!("<= {}", amount(limit, unit)), verdict }
    }

    /// A value without a goal.
    pub(super) fn stated(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), goal: String::new(), verdict: Verdict::Stated }
    }

    /// A statement that holds or does not.
    pub(super) fn holds(what: impl Into<String>, value: impl Into<String>, goal: &str, met: bool) -> Self {
        let verdict = if met { Verdict::Met } else { Verdict::Missed };
        Self { what: what.into(), value: value.into(), goal: goal.to_owned(), verdict }
    }

    /// What could not be measured here, and why.
    pub(super) fn not_run(why: impl Into<String>) -> Self {
        Self { what: why.into(), value: String::new(), goal: String::new(), verdict: Verdict::NotRun }
    }

    /// A part that broke.
    pub(super) fn failed(error: &anyhow::Error) -> Self {
        Self { what: format!("{error:#}"), value: String::new(), goal: String::new(), verdict: Verdict::Failed }
    }
}

fn amount(value: f64, unit: &str) -> String {
    let digits = if value.abs() >= 100.0 { 0 } else { 2 };
    format!("{value:.digits$}{}{unit}", if unit.is_empty() { "" } else { " " })
}

/// The figures of all parts, one a line.
pub(super) fn table(parts: &[(&str, Vec<Figure>)]) -> String {
    let figures = || parts.iter().flat_map(|(_, figures)| figures);
    let widest = |of: fn(&Figure) -> usize| figures().filter(|one| !one.value.is_empty()).map(of).max().unwrap_or(0);
    let (what, value, goal) =
        (widest(|one| one.what.len()), widest(|one| one.value.len()), widest(|one| one.goal.len()));
    let mut out = String::new();
    for (part, figures) in parts {
        let _ = writeln!(out, "{part}");
        for one in figures {
            let line = if one.value.is_empty() {
                format!("   {}: {}", one.verdict.as_str(), one.what)
            } else {
                format!("   {:<what$}  {:>value$}  {:<goal$}  {}", one.what, one.value, one.goal, one.verdict.as_str())
            };
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}

/// The middle of `values`; `None` when there are none.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(upper, *values.get(middle.checked_sub(1)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_itself_is_met_and_more_is_missed() {
        assert_eq!(Figure::at_most("x", 4.0, 4.0, "").verdict, Verdict::Met);
        assert_eq!(Figure::at_most("x", 4.1, 4.0, "").verdict, Verdict::Missed);
        assert_eq!(Figure::at_most("x", f64::NAN, 4.0, "").verdict, Verdict::Missed);
    }

    #[test]
    fn the_middle_of_an_even_count_lies_between() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn what_was_not_run_does_not_read_as_met() {
        let parts = [("b", vec![Figure::not_run("fio is missing"), Figure::at_most("ratio", 1.0, 1.15, "")])];
        assert_eq!(table(&parts), "b\n   not run: fio is missing\n   ratio  1.00  <= 1.15  met\n");
    }
}
