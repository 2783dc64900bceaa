//! Lines of a terminal: what is printable, how wide it is, where it breaks.

use std::borrow::Cow;
use storscope_model::finding::{Severity, Verdict};

/// Colours of a terminal (ECMA-48, SGR), or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub(super) colour: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn severity(self, severity: Severity, text: &str) -> String {
        match severity {
            Severity::Critical => self.with("1;31", text),
            Severity::Warning => self.with("33", text),
            Severity::Info => self.with("36", text),
        }
    }

    pub(super) fn verdict(self, verdict: Verdict, text: &str) -> String {
        match verdict {
            Verdict::Ok => self.with("32", text),
            Verdict::Degraded => self.with("33", text),
            Verdict::Critical => self.with("1;31", text),
            Verdict::Unknown => self.with("35", text),
        }
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }
}

/// Scripts written from right to left, and marks that join to what stands before: they would move other text.
fn moves_text(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}'
        | '\u{0590}'..='\u{08FF}'
        | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FB1D}'..='\u{FDFF}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FE20}'..='\u{FE2F}'
        | '\u{FE70}'..='\u{FEFF}'
        | '\u{FFF0}'..='\u{FFFB}'
        | '\u{10800}'..='\u{10FFF}'
        | '\u{1E800}'..='\u{1EFFF}'
        | '\u{E0000}'..='\u{E0FFF}')
}

fn harmless(c: char) -> bool {
    let plain = c.is_ascii_graphic() || c == ' ';
    plain || !(c.is_control() || c.is_whitespace() || moves_text(c))
}

/// Text from outside, made printable: what could move the cursor, break the line or turn the direction is escaped.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if harmless(c) => safe.push(c),
            c if c.is_ascii() => safe.extend(c.escape_default()),
            c => safe.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(safe)
}

/// Columns of a character: two for the wide ones of East Asia (UAX #11) and emoji.
fn columns(c: char) -> usize {
    let wide = matches!(c,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{A4CF}'
        | '\u{A960}'..='\u{A97F}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}'
        | '\u{16FE0}'..='\u{1B2FF}'
        | '\u{1F000}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFD}');
    if wide { 2 } else { 1 }
}

/// Columns of a text that is clean.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The text with blanks up to `to` columns.
pub(super) fn pad(text: &str, to: usize) -> String {
    let blanks = to.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(blanks))
}

/// The text moved right to end at `to` columns.
pub(super) fn right(text: &str, to: usize) -> String {
    let blanks = to.saturating_sub(width(text));
    format!("{}{text}", " ".repeat(blanks))
}

/// The beginning of a text that fits into `room` columns, ending in `~` when something is cut.
pub(super) fn cut(text: &str, room: usize) -> Cow<'_, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    let (head, _) = split(text, room.saturating_sub(1));
    Cow::Owned(format!("{head}~"))
}

fn split(text: &str, room: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += columns(c);
        if used > room {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// The text, made printable, in lines of at most `room` columns, broken at blanks; a word that is longer is broken
/// within. Runs of blanks are kept inside a line. At least one line.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let text = clean(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut blanks = 0;
    for word in text.trim().split(' ') {
        if word.is_empty() {
            blanks += 1;
            continue;
        }
        if !line.is_empty() && width(&line) + blanks + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push_str(&" ".repeat(blanks));
        }
        blanks = 1;
        let mut rest = word;
        while width(rest) > room {
            let (head, tail) = split(rest, room);
            lines.push(head.to_owned());
            rest = tail;
        }
        line.push_str(rest);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_blanks_and_within_long_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("a  b   c", 4), ["a  b", "c"]);
    }

    #[test]
    fn foreign_text_cannot_move_the_cursor() {
        assert_eq!(clean("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(clean("x\u{202e}y\u{200b}z"), "x\\u{202e}y\\u{200b}z");
        assert_eq!(clean("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(clean("Größe 3.5\" \\"), "Größe 3.5\" \\");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("磁盘"), 4);
        assert_eq!(pad("磁盘", 6), "磁盘  ");
        assert_eq!(cut("磁盘磁盘", 5), "磁盘~");
    }
}
