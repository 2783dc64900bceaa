//! What the server may reach of the file system (Landlock, `Documentation/userspace-api/landlock.rst`): one thread its state
//! directory, all others nothing.

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use std::path::Path;

/// The newest rules that are asked for; an older kernel keeps those that it knows.
const RULES: ABI = ABI::V6;

/// Takes all files from the calling thread, and from those that it starts. What could not be taken, for people.
pub(crate) fn no_files() -> Vec<String> {
    told(ruleset().and_then(restrict), "files can be opened")
}

/// Leaves the calling thread the files below `directory` and no others.
pub(crate) fn only(directory: &Path) -> Vec<String> {
    let rule = || {
        let rights = AccessFs::from_all(RULES)
            & !(AccessFs::Execute | AccessFs::IoctlDev | AccessFs::MakeChar | AccessFs::MakeBlock);
        let open = PathFd::new(directory).map_err(|error| error.to_string())?;
        ruleset()
            .and_then(|rules| rules.add_rule(PathBeneath::new(open, rights)))
            .and_then(restrict)
            .map_err(|error| error.to_string())
    };
    told(rule(), "files outside the state directory can be opened")
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()
}

fn restrict(rules: RulesetCreated) -> Result<RulesetStatus, RulesetError> {
    // That is set for the whole process already, and may not be asked for once system calls are limited.
    rules.no_new_privs(false).restrict_self().map(|done| done.ruleset)
}

fn told<E: std::fmt::Display>(outcome: Result<RulesetStatus, E>, what: &str) -> Vec<String> {
    match outcome {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => Vec::new(),
        Ok(RulesetStatus::NotEnforced) => vec![format!("{what}: the kernel has no Landlock")],
        Err(error) => vec![format!("{what}: {error}")],
    }
}
