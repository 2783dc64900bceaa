//! Unpacks a ttar archive: files, folders and links as plain text (github.com/ideaship/ttar).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

/// Unpacks `archive` below `into` and returns the number of files and links. Modes are not applied.
///
/// # Errors
/// What is wrong, with its line; what came before it has been unpacked.
pub(crate) fn unpack(archive: &[u8], into: &Path) -> Result<usize, String> {
    let mut lines = archive.split_inclusive(|byte| *byte == b'\n').enumerate();
    let mut count = 0;
    while let Some((number, line)) = lines.next() {
        let failed = |what: &str| format!("line {}: {what}", number + 1);
        let line = std::str::from_utf8(line).map_err(|_| failed("not UTF-8"))?.trim_end();
        if let Some(folder) = line.strip_prefix("Directory: ") {
            fs::create_dir_all(below(into, folder).ok_or_else(|| failed("not a relative path"))?)
                .map_err(|error| failed(&error.to_string()))?;
        } else if let Some(path) = line.strip_prefix("Path: ") {
            let path = below(into, path).ok_or_else(|| failed("not a relative path"))?;
            let parent = path.parent().ok_or_else(|| failed("no parent"))?;
            fs::create_dir_all(parent).map_err(|error| failed(&error.to_string()))?;
            let (_, kind) = lines.next().ok_or_else(|| failed("cut off"))?;
            let kind = std::str::from_utf8(kind).map_err(|_| failed("not UTF-8"))?.trim_end();
            if let Some(target) = kind.strip_prefix("SymlinkTo: ") {
                symlink(target, &path).map_err(|error| failed(&error.to_string()))?;
            } else {
                let length: usize = kind
                    .strip_prefix("Lines: ")
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| failed("no length"))?;
                let mut content = Vec::new();
                for _ in 0..length {
                    content.extend_from_slice(lines.next().ok_or_else(|| failed("cut off"))?.1);
                }
                fs::write(&path, decode(&content)).map_err(|error| failed(&error.to_string()))?;
            }
            count += 1;
        }
    }
    Ok(count)
}

fn below(into: &Path, path: &str) -> Option<PathBuf> {
    let normal = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    (normal && !path.is_empty()).then(|| into.join(path))
}

/// `NULLBYTE` is a byte 0, `EOF` at the very end means that there is no last newline; a backslash before either word
/// makes it that word.
fn decode(content: &[u8]) -> Vec<u8> {
    const NULL: &[u8] = b"NULLBYTE";
    const EOF: &[u8] = b"EOF\n";
    let mut bytes = Vec::with_capacity(content.len());
    let mut rest = content;
    while let [first, after @ ..] = rest {
        if rest.starts_with(b"\\NULLBYTE") || rest == b"\\EOF\n" {
            bytes.extend_from_slice(&rest[1..rest.len().min(1 + NULL.len())]);
            rest = &rest[rest.len().min(1 + NULL.len())..];
        } else if rest.starts_with(NULL) {
            bytes.push(0);
            rest = &rest[NULL.len()..];
        } else if rest == EOF {
            break;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}
