//! What is told of serial numbers is a choice that holds in every output.

use crate::agent::{Agent, wait};
use crate::exchange;
use crate::made_up::{Identify, Smart, diskstats, folder, nvme, pages, sata, small};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

const NVME: &str = "ZQNVME0815";
const SATA: &str = "ZQSATA77";

/// Every text under a key of `keys`, wherever it is in `value`.
fn texts(value: &Value, keys: &[&str], found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if keys.contains(&key.as_str())
                    && let Some(text) = value.as_str()
                {
                    found.insert(text.to_owned());
                }
                texts(value, keys, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, keys, found)),
        _ => {}
    }
}

/// All that the agent answers.
fn answers(agent: &Agent) -> Vec<String> {
    let mut all: Vec<String> =
        ["/metrics", "/status", "/status?all", "/status?device=nvme1n1", "/status?device=sdb", "/status.json"]
            .iter()
            .map(|path| agent.text(path))
            .collect();
    let fields = "Accept: application/openmetrics-text;version=1.0.0\r\n";
    all.push(exchange::request(agent.address(), "GET", "/metrics", fields).text().to_owned());
    all
}

#[test]
fn serial_numbers_are_told_as_they_are_by_pseudonym_or_not_at_all() {
    let host = small();
    nvme(&host, "0000:66:00.0", "nvme1", NVME, 5);
    // A critical warning, so that a finding tells of the drive as well.
    let sick = Smart { warning: 4, used: 130, ..Smart::default() };
    pages(&host, "nvme1", &Identify::new(NVME, "ACME FAST 1920G", "FW1"), &sick);
    sata(&host, 2, "sdb", SATA, true);
    host.proc("diskstats", diskstats(&["259 0 nvme0n1", "259 5 nvme1n1", "8 0 sda", "8 16 sdb"]));
    let mut secrets = BTreeSet::new();
    let mut pseudonyms = BTreeSet::new();
    for how in ["full", "hash", "none"] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "[periods]\ntick = \"1s\"\n[privacy]\nserials = \"{how}\"\n").unwrap();
        let agent = Agent::replay(Path::new(folder(&host)), &["--config", file.path().to_str().unwrap()]);
        wait("the finding", || {
            let found = agent.json()["findings"].as_array().unwrap().iter().any(|one| one["device"] == "nvme1n1");
            found.then_some(())
        });
        let all = answers(&agent);
        let of_drives = |keys: &[&str]| {
            let mut found = BTreeSet::new();
            let status = agent.json();
            for list in ["devices", "controllers"] {
                texts(&status[list], keys, &mut found);
            }
            found
        };
        match how {
            "full" => {
                secrets = of_drives(&["id", "serial", "wwid", "subsystem_nqn"]);
                secrets.extend([NVME.to_owned(), SATA.to_owned()]);
                secrets.retain(|secret| secret.len() > 4);
                assert!(all[0].contains(NVME) && all[0].contains(SATA) && all[1].contains(NVME), "{all:#?}");
            }
            _ => {
                for (answer, secret) in all.iter().flat_map(|answer| secrets.iter().map(move |it| (answer, it))) {
                    assert!(!answer.contains(secret), "{how}: {secret} is told in {answer}");
                }
                pseudonyms.insert(of_drives(&["serial"]).len());
                assert!(all[1].contains("nvme1n1"), "drives are told apart by name");
            }
        }
        agent.end();
    }
    // Four drives have a pseudonym each; without, there is nothing in its place.
    assert_eq!(pseudonyms, BTreeSet::from([0, 4]));
}
