//! Generated documents: the binary prints them, this writes or compares them.

use crate::steps::{cargo, repository};
use anyhow::{Context, bail};

/// Name that the binary knows, and the file.
const DOCUMENTS: [(&str, &str); 4] = [
    ("config", "docs/CONFIG.md"),
    ("storscope.toml", "deploy/storscope.toml"),
    ("metrics", "docs/METRICS.md"),
    ("status-schema", "docs/status.schema.json"),
];

/// Writes the documents, or says which differ.
///
/// # Errors
/// With `check`, when one is not as generated.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for (name, file) in DOCUMENTS {
        let output = cargo(&["run", "--quiet", "--package", "storscope", "--", "document", name]).output()?;
        if !output.status.success() {
            bail!("document {name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let path = repository().join(file);
        if check {
            if std::fs::read(&path).ok().as_ref() != Some(&output.stdout) {
                stale.push(file);
            }
        } else {
            std::fs::write(&path, &output.stdout).with_context(|| path.display().to_string())?;
            println!("wrote {file}");
        }
    }
    if !stale.is_empty() {
        bail!("not as generated: {}; run cargo xtask docs", stale.join(", "));
    }
    Ok(())
}
