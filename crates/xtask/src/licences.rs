//! Licences and sources of the dependencies against `deny.toml`, read as cargo-deny reads it.
//!
//! cargo-deny itself takes several minutes to build; what is needed of it fits here: `licenses.allow`,
//! `licenses.exceptions`, `sources.allow-registry`, `bans.deny`.

use crate::steps::{cargo, repository};
use anyhow::{Context, bail};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    sources: Sources,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Sources {
    #[serde(rename = "allow-registry")]
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// Checks every package of the lock file.
///
/// # Errors
/// Names every package whose licence or source is not allowed.
pub(crate) fn run() -> anyhow::Result<()> {
    let path = repository().join("deny.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let deny: Deny = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let output = cargo(&["metadata", "--format-version", "1", "--locked"]).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let wrong: Vec<String> = metadata.packages.iter().filter_map(|package| objection(package, &deny)).collect();
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    println!("{} packages", metadata.packages.len());
    Ok(())
}

fn objection(package: &Package, deny: &Deny) -> Option<String> {
    let Package { name, version, license, source } = package;
    let named = |what: &str| Some(format!("{name} {version}: {what}"));
    if let Some(banned) = deny.bans.deny.iter().find(|banned| banned.name == *name) {
        return named(&format!("banned: {}", banned.reason));
    }
    if let Some(source) = source {
        let registry = source.strip_prefix("registry+").unwrap_or(source);
        if !deny.sources.allow_registry.iter().any(|allowed| allowed == registry) {
            return named(&format!("source {source} is not allowed"));
        }
    }
    let Some(license) = license else { return named("no licence expression") };
    let Ok(expression) = Expression::parse_mode(license, ParseMode::LAX) else {
        return named(&format!("licence {license:?} is no SPDX expression"));
    };
    let extra = deny.licenses.exceptions.iter().find(|exception| exception.name == *name);
    let allowed = |wanted: &str| {
        deny.licenses.allow.iter().chain(extra.iter().flat_map(|exception| &exception.allow)).any(|one| one == wanted)
    };
    let fits = expression.evaluate(|requirement| allowed(&requirement.to_string()));
    if fits { None } else { named(&format!("licence {license:?} is not allowed")) }
}
