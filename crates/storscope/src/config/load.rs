//! Reading a configuration file: every mistake is reported at once, each with its line.

use super::Config;
use super::keys::KEYS;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Longest configuration file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// One-based line; 0 when the file as a whole is meant.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
}

/// All mistakes of one file, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistakes {
    /// The file.
    pub(crate) file: String,
    /// At least one.
    pub(crate) all: Vec<Mistake>,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { line, what }) in self.all.iter().enumerate() {
            let end = if index + 1 < self.all.len() { "\n" } else { "" };
            match line {
                0 => write!(f, "{}: {what}{end}", self.file)?,
                line => write!(f, "{}:{line}: {what}{end}", self.file)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Reads and checks `file`.
///
/// # Errors
/// Every mistake, or why the file cannot be read.
pub(crate) fn file(file: &Path) -> Result<Config, Mistakes> {
    let whole = |what: String| Mistakes { file: file.display().to_string(), all: vec![Mistake { line: 0, what }] };
    let meta = std::fs::metadata(file).map_err(|error| whole(error.to_string()))?;
    if !meta.is_file() {
        return Err(whole("not a regular file".to_owned()));
    }
    if meta.len() > MAX_FILE {
        return Err(whole(format!("longer than {MAX_FILE} bytes")));
    }
    let bytes = std::fs::read(file).map_err(|error| whole(error.to_string()))?;
    let source = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Mistakes { file: file.display().to_string(), all: vec![Mistake { line, what: "not UTF-8".to_owned() }] }
    })?;
    text(&source).map_err(|all| Mistakes { file: file.display().to_string(), all })
}

/// Checks the text of a configuration.
///
/// # Errors
/// Every mistake, in the order of lines.
pub(crate) fn text(source: &str) -> Result<Config, Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(source);
    let mut mistakes: Vec<Mistake> = errors
        .iter()
        .map(|error| Mistake {
            line: error.span().map_or(0, |span| line_of(source, &span)),
            what: error.message().to_owned(),
        })
        .collect();
    let mut config = Config::default();
    if mistakes.is_empty() {
        walk(source, "", table.get_ref(), &mut config, &mut mistakes);
        check(&config, &mut mistakes);
    }
    if mistakes.is_empty() {
        return Ok(config);
    }
    mistakes.sort_by_key(|mistake| mistake.line);
    Err(mistakes)
}

fn walk(source: &str, prefix: &str, table: &DeTable<'_>, config: &mut Config, mistakes: &mut Vec<Mistake>) {
    for (name, given) in table {
        let path = if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
        if let Some(key) = KEYS.iter().find(|key| key.path == path) {
            if let Err(what) = (key.set)(config, given.get_ref()) {
                mistakes.push(Mistake { line: line_of(source, &given.span()), what: format!("{path}: {what}") });
            }
            continue;
        }
        let is_table = KEYS.iter().any(|key| key.path.split_once('.').is_some_and(|(table, _)| table == path));
        match given.get_ref() {
            DeValue::Table(inner) if is_table => walk(source, &path, inner, config, mistakes),
            _ => {
                let what = if is_table { format!("{path} is a table") } else { unknown(&path) };
                mistakes.push(Mistake { line: line_of(source, &name.span()), what });
            }
        }
    }
}

fn check(config: &Config, mistakes: &mut Vec<Mistake>) {
    if config.devices.only.is_some() && config.devices.include.is_some() {
        let what = "devices.only and devices.include exclude each other".to_owned();
        mistakes.push(Mistake { line: 0, what });
    }
}

fn unknown(path: &str) -> String {
    let near = KEYS.iter().map(|key| (distance(path, key.path), key.path)).min();
    match near {
        Some((away, name)) if away <= 3 => format!("unknown key {path}; did you mean {name}?"),
        _ => format!("unknown key {path}"),
    }
}

fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let cost = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = cost.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

fn line_of(source: &str, span: &Range<usize>) -> usize {
    1 + source.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::docs;

    #[test]
    fn shipped_file_equals_defaults() {
        let shipped = docs::shipped();
        assert_eq!(text(&shipped), Ok(Config::default()));
        let is_key = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
        assert_eq!(shipped.lines().filter(is_key).count(), KEYS.len());
        let in_force: Vec<&str> = shipped.lines().map(|line| if is_key(&line) { &line[1..] } else { line }).collect();
        assert_eq!(text(&in_force.join("\n")), Ok(Config::default()));
    }

    #[test]
    fn every_key_round_trips_uncommented() {
        let config = Config::default();
        for key in KEYS {
            let line = format!("{} = {}", key.path, (key.get)(&config));
            assert_eq!(text(&line), Ok(Config::default()), "{line}");
        }
    }

    #[test]
    fn all_mistakes_come_at_once_with_lines() {
        let source = "listen = [\"nonsense\"]\nstate_dirr = \"/x\"\n[probe]\nburst = 0\nmax_share = \"much\"\n\n[periods]\ntick = \"5 parsecs\"\n[nowhere]\nx = 1\n";
        let mistakes = text(source).unwrap_err();
        let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [1, 2, 4, 5, 8, 9]);
        assert!(mistakes[1].what.contains("did you mean state_dir?"), "{}", mistakes[1].what);
        assert!(mistakes[4].what.contains("periods.tick"), "{}", mistakes[4].what);
    }

    #[test]
    fn syntax_errors_name_their_line() {
        let mistakes = text("listen = [\n\"127.0.0.1:1\"\n[probe\nburst = \n").unwrap_err();
        assert!(mistakes.iter().all(|mistake| mistake.line > 0), "{mistakes:?}");
    }

    #[test]
    fn values_are_taken() {
        let source = "listen = [\"[::1]:9000\", \":9001\"]\n[devices]\ninclude = \"^loop0$\"\n[probe]\nburst = 64\nengine = \"pread\"\n[periods]\ntick = \"1s\"\n";
        let config = text(source).unwrap();
        assert_eq!(config.listen.len(), 2);
        assert_eq!(config.probe.burst, 64);
        assert!(config.devices.include.unwrap().0.is_match("loop0"));
    }

    #[test]
    fn missing_and_odd_files_are_named() {
        let missing = file(Path::new("no-such-file.toml")).unwrap_err();
        assert!(missing.to_string().starts_with("no-such-file.toml: "), "{missing}");
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(file(dir.path()).unwrap_err().all[0].what, "not a regular file");
        let bad = dir.path().join("bad.toml");
        std::fs::write(&bad, b"log.level = \"info\"\n# \xff\n").unwrap();
        assert_eq!(file(&bad).unwrap_err().all, [Mistake { line: 2, what: "not UTF-8".to_owned() }]);
    }
}
