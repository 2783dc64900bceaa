//! Values as they are written in the configuration: checked on the way in, spelt on the way out.

use super::Pattern;
use regex::Regex;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use storscope_collect::select::Selection;
use toml::de::DeValue;

/// Longest regular expression, in bytes.
const MAX_PATTERN: usize = 4096;

/// Most addresses to listen on.
const MAX_LISTEN: usize = 16;

type Given<'a> = &'a DeValue<'a>;

pub(super) fn text(value: Given<'_>) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("expected a string, found {}", value.type_str()))
}

pub(super) fn boolean(value: Given<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("expected true or false, found {}", value.type_str()))
}

pub(super) fn whole(value: Given<'_>, least: u64, most: u64) -> Result<u64, String> {
    let wrong = || format!("expected a whole number from {least} to {most}");
    let integer = value.as_integer().ok_or_else(|| format!("{}, found {}", wrong(), value.type_str()))?;
    let digits = integer.as_str().replace('_', "");
    let number = u64::from_str_radix(&digits, integer.radix()).map_err(|_| wrong())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(format!("{}, found {number}", wrong())) }
}

pub(super) fn share(value: Given<'_>, most: f64) -> Result<f64, String> {
    let wrong = || format!("expected a share above 0 and at most {most}");
    let digits = match (value.as_float(), value.as_integer()) {
        (Some(float), _) => float.as_str(),
        (None, Some(integer)) => integer.as_str(),
        (None, None) => return Err(format!("{}, found {}", wrong(), value.type_str())),
    };
    let number: f64 = digits.replace('_', "").parse().map_err(|_| wrong())?;
    if number > 0.0 && number <= most { Ok(number) } else { Err(format!("{}, found {number}", wrong())) }
}

pub(super) fn duration(value: Given<'_>, least: Duration, most: Duration) -> Result<Duration, String> {
    let written = text(value)?;
    let wrong = || {
        format!(
            "expected a duration from \"{}\" to \"{}\" (units ms, s, m, h, d); found {written:?}",
            spell_duration(least),
            spell_duration(most)
        )
    };
    let parsed = parse_duration(written).ok_or_else(wrong)?;
    if (least..=most).contains(&parsed) { Ok(parsed) } else { Err(wrong()) }
}

fn parse_duration(written: &str) -> Option<Duration> {
    let digits = written.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let seconds = match &written[digits.len()..] {
        "ms" => return Some(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// The shortest spelling that [`duration`] reads back.
pub(crate) fn spell_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
        if millis >= size && millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

pub(super) fn pattern(value: Given<'_>) -> Result<Option<Pattern>, String> {
    parse_pattern(text(value)?)
}

/// A regular expression over kernel names; empty for none.
///
/// # Errors
/// What is wrong with it, for people.
pub(crate) fn parse_pattern(written: &str) -> Result<Option<Pattern>, String> {
    if written.is_empty() {
        return Ok(None);
    }
    if written.len() > MAX_PATTERN {
        return Err(format!("regular expression longer than {MAX_PATTERN} bytes"));
    }
    let wrong = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or("malformed").trim().to_owned();
        format!("regular expression {written:?}: {}", last.trim_start_matches("error: "))
    };
    let pattern = Regex::new(written).map_err(|error| wrong(&error))?;
    // As it is used, for a whole name: an expression that ends in a comment is one alone only.
    Selection::new(Some(written), None, None).map_err(|error| wrong(&error))?;
    Ok(Some(Pattern(pattern)))
}

pub(super) fn addresses(value: Given<'_>) -> Result<Vec<SocketAddr>, String> {
    let list = value.as_array().ok_or_else(|| format!("expected an array of strings, found {}", value.type_str()))?;
    check_count(list.len())?;
    let parsed = list.iter().map(|item| text(item.get_ref()).and_then(parse_address));
    let (good, bad): (Vec<_>, Vec<_>) = parsed.partition(Result::is_ok);
    if bad.is_empty() {
        return Ok(good.into_iter().flatten().collect());
    }
    Err(bad.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; "))
}

/// Whether so many addresses may be listened on.
///
/// # Errors
/// That they may not, for people.
pub(crate) fn check_count(addresses: usize) -> Result<(), String> {
    if addresses == 0 || addresses > MAX_LISTEN {
        return Err(format!("expected 1 to {MAX_LISTEN} addresses, found {addresses}"));
    }
    Ok(())
}

/// `address:port`, `[address]:port`, `:port` (every address) or `localhost:port`.
///
/// # Errors
/// What is wrong with it, for people.
pub(crate) fn parse_address(written: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("{written:?} is not an address and port such as \"127.0.0.1:10210\" or \"[::1]:10210\"");
    if let Some(port) = written.strip_prefix(':') {
        return port.parse().map(|port| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 0], port))).map_err(|_| wrong());
    }
    if let Some(port) = written.strip_prefix("localhost:") {
        return format!("127.0.0.1:{port}").to_socket_addrs().ok().and_then(|mut all| all.next()).ok_or_else(wrong);
    }
    written.parse().map_err(|_| wrong())
}

pub(super) fn directory(value: Given<'_>) -> Result<Option<PathBuf>, String> {
    parse_directory(text(value)?)
}

/// The absolute path of a directory; empty for none.
///
/// # Errors
/// What is wrong with it, for people.
pub(crate) fn parse_directory(written: &str) -> Result<Option<PathBuf>, String> {
    match written {
        "" => Ok(None),
        path if path.starts_with('/') => Ok(Some(PathBuf::from(path))),
        path => Err(format!("expected an absolute path or nothing, found {path:?}")),
    }
}

pub(super) fn choice<T: Copy>(value: Given<'_>, choices: &[(&str, T)]) -> Result<T, String> {
    let written = text(value)?;
    choices.iter().find(|(name, _)| *name == written).map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        format!("expected one of {}, found {written:?}", names.join(", "))
    })
}

/// The name of a choice, quoted for TOML.
pub(super) fn spell_choice<T: PartialEq>(chosen: &T, choices: &[(&str, T)]) -> String {
    choices.iter().find(|(_, choice)| choice == chosen).map_or_else(String::new, |(name, _)| format!("{name:?}"))
}

/// A string as a TOML literal.
pub(super) fn spell_text(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
