//! What was found, as plain text for a person.

use std::fmt::Write;

/// Columns of the text; a command that is longer is not broken.
const WIDTH: usize = 100;
/// Widest first column; a longer subject has a line of its own.
const MAX_SUBJECT: usize = 16;
/// Names that are listed of a group of devices.
const MAX_NAMES: usize = 6;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// The host forbids it, or a device hangs: evidence is missing that could be had.
    Denied,
    /// The host does not have it, or has it switched off.
    Lacks,
    /// As it should be.
    Fine,
}

impl Verdict {
    const ALL: [Self; 3] = [Self::Denied, Self::Lacks, Self::Fine];

    const fn title(self) -> &'static str {
        match self {
            Self::Denied => "DENIED",
            Self::Lacks => "LACKS",
            Self::Fine => "OK",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// How it stands.
    pub(super) verdict: Verdict,
    /// What was looked at: a device, a capability, a facility.
    pub(super) subject: String,
    /// What was found, and what that means.
    pub(super) what: String,
    /// Commands that mend it, one a line.
    pub(super) mend: Vec<String>,
}

impl Check {
    /// All well.
    pub(super) fn fine(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fine, subject: subject.into(), what: what.into(), mend: Vec::new() }
    }

    /// Not there, or switched off.
    pub(super) fn lacks(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Lacks, ..Self::fine(subject, what) }
    }

    /// Forbidden, or hanging.
    pub(super) fn denied(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Denied, ..Self::fine(subject, what) }
    }

    /// Adds a command that mends it.
    pub(super) fn mend(mut self, command: impl Into<String>) -> Self {
        self.mend.push(command.into());
        self
    }

    /// Adds the commands that boot the kernel with `parameter`.
    pub(super) fn boot_with(self, parameter: &str) -> Self {
        self.mend(format!("grubby --update-kernel=ALL --args={parameter}   # Fedora, RHEL; then reboot"))
            .mend(format!("sed -i '/^GRUB_CMDLINE_LINUX=/s/=\"/=\"{parameter} /' /etc/default/grub"))
            .mend("update-grub                # both on Debian, Ubuntu; then reboot")
    }
}

/// Why a device is left out that no option adds.
pub(super) const FREE: &str = "nothing is attached; one with a size could be added with --include";

/// Devices that are not watched for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Kernel names, in order.
    pub(super) names: Vec<String>,
    /// Why.
    pub(super) why: &'static str,
}

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// What this is about.
    pub(super) heading: String,
    /// All that was looked at.
    pub(super) checks: Vec<Check>,
    /// Devices that are not watched.
    pub(super) left_out: Vec<LeftOut>,
}

impl Report {
    /// Things with this verdict.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }

    /// The text: the heading, the verdicts, worst first, then what is not watched.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for line in wrapped(&sanitised(&self.heading), WIDTH) {
            let _ = writeln!(text, "{line}");
        }
        let [denied, lacks, fine] = Verdict::ALL.map(|verdict| self.count(verdict));
        let _ = writeln!(text, "{denied} denied, {lacks} lacking, {fine} ok");
        let widest = self.checks.iter().map(|check| check.subject.chars().count()).max().unwrap_or_default();
        let column = widest.min(MAX_SUBJECT);
        for verdict in Verdict::ALL {
            let checks = self.checks.iter().filter(|check| check.verdict == verdict);
            for (index, check) in checks.enumerate() {
                if index == 0 {
                    let _ = writeln!(text, "\n{}", verdict.title());
                }
                one(&mut text, check, column);
            }
        }
        if !self.left_out.is_empty() {
            text.push_str("\nNOT WATCHED\n");
            self.left_out.iter().for_each(|group| not_watched(&mut text, group, column));
        }
        text
    }
}

fn one(text: &mut String, check: &Check, column: usize) {
    let indent = column + 4;
    let mut subject = sanitised(&check.subject);
    if subject.chars().count() > column {
        let _ = writeln!(text, "  {subject}");
        subject.clear();
    }
    for line in wrapped(&sanitised(&check.what), WIDTH - indent) {
        let _ = writeln!(text, "  {subject:<column$}  {line}");
        subject.clear();
    }
    for (index, command) in check.mend.iter().enumerate() {
        let label = if index == 0 { "mend:" } else { "" };
        let _ = writeln!(text, "  {:<column$}  {label:<5} {}", "", sanitised(command));
    }
}

fn not_watched(text: &mut String, group: &LeftOut, column: usize) {
    let shown: Vec<&str> = group.names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let more = group.names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let example = match group.names.first() {
        Some(name) if group.why != FREE => format!("; add one with --include '{}'", regex::escape(name)),
        _ => String::new(),
    };
    let what = format!("{}{more}: {}{example}", shown.join(" "), group.why);
    for line in wrapped(&sanitised(&what), WIDTH - 2 - column.min(2)) {
        let _ = writeln!(text, "  {line}");
    }
}

/// Device text may hold anything: what does not print is a question mark.
fn sanitised(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\u{fffd}' { '?' } else { c }).collect()
}

/// Lines of at most `width` characters, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            heading: "storscope doctor on a\u{1b}[31mb".to_owned(),
            checks: vec![
                Check::fine("sda", "opens"),
                Check::denied("vda", "word ".repeat(40)).mend("first command").mend("second command"),
                Check::lacks("pressure of a long name", "off"),
            ],
            left_out: vec![LeftOut { names: (0..9).map(|n| format!("loop{n}")).collect(), why: "made of files" }],
        }
    }

    #[test]
    fn worst_first_within_the_width() {
        let text = report().render();
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not in {text}"));
        assert!(at("\nDENIED\n") < at("\nLACKS\n") && at("\nLACKS\n") < at("\nOK\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("1 denied, 1 lacking, 1 ok"), "{text}");
        assert!(text.contains("mend: first command") && text.contains("      second command"), "{text}");
        assert!(text.contains("loop0 loop1 loop2 loop3 loop4 loop5 and 3 more: made of files"), "{text}");
        assert!(text.contains("--include 'loop0'"), "{text}");
    }

    #[test]
    fn text_of_devices_does_not_steer_the_terminal() {
        assert!(!report().render().contains('\u{1b}'));
    }

    #[test]
    fn a_long_subject_has_its_own_line() {
        assert!(report().render().contains("  pressure of a long name\n"));
    }
}
