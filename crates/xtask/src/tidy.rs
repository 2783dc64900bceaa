//! The rules of the house that a machine can check.

use crate::steps::repository;
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest source file.
const MAX_LINES: usize = 600;

/// Words that must not stay behind. Written in halves, so that this file does not hold them.
const LEFT_BEHIND: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("db", "g!("),
    concat!("#[ig", "nore"),
];

/// Checks every source file that git knows.
///
/// # Errors
/// Names every file and line that breaks a rule.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = repository();
    let mut wrong = Vec::new();
    let files = sources(&root)?;
    for file in &files {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        check(file, &text, &mut wrong);
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    println!("{} files", files.len());
    Ok(())
}

fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("git").args(["ls-files", "-z", "--", "*.rs"]).current_dir(root).output()?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    }
    let names = String::from_utf8(output.stdout)?;
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

fn check(file: &Path, text: &str, wrong: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > MAX_LINES {
        wrong.push(format!("{}: {lines} lines, the limit is {MAX_LINES}", file.display()));
    }
    let may_unsafe = file.starts_with("crates/drive") || file.starts_with("crates/probe");
    let is_root = file.ends_with("root.rs");
    let is_source = file.components().any(|part| part.as_os_str() == "src") && !file.starts_with("crates/xtask");
    let mut in_tests = false;
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", file.display(), index + 1);
        in_tests |= line.contains("#[cfg(test)]");
        let code = line.split("//").next().unwrap_or_default();
        if let Some(word) = LEFT_BEHIND.iter().find(|word| line.contains(**word)) {
            wrong.push(format!("{}: {word} left behind", place()));
        }
        let unsafe_code = ["unsafe {", "unsafe fn", "unsafe impl"].iter().any(|form| code.contains(form));
        if unsafe_code && !may_unsafe && !file.starts_with("crates/xtask") {
            wrong.push(format!("{}: unsafe outside drive and probe", place()));
        }
        let kernel_path = ["\"/proc", "\"/sys", "\"/dev"].iter().any(|start| {
            code.match_indices(start).any(|(at, _)| matches!(code.as_bytes().get(at + start.len()), Some(b'/' | b'"')))
        });
        if kernel_path && is_source && !is_root && !in_tests {
            wrong.push(format!("{}: kernel path outside root.rs", place()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(file: &str, text: &str) -> usize {
        let mut wrong = Vec::new();
        check(Path::new(file), text, &mut wrong);
        wrong.len()
    }

    #[test]
    fn rules_are_seen_broken() {
        assert_eq!(complaints("crates/model/src/a.rs", "fn f() { unsafe { g() } }"), 1);
        assert_eq!(complaints("crates/drive/src/a.rs", "fn f() { unsafe { g() } }"), 0);
        assert_eq!(complaints("crates/collect/src/a.rs", "open(\"/sys/block\")"), 1);
        assert_eq!(complaints("crates/collect/src/root.rs", "open(\"/sys/block\")"), 0);
        assert_eq!(complaints("crates/model/src/a.rs", &"x\n".repeat(601)), 1);
        assert_eq!(complaints("crates/model/src/a.rs", LEFT_BEHIND[0]), 1);
        assert_eq!(complaints("crates/model/src/a.rs", "// says \"/sys/block\""), 0);
    }
}
