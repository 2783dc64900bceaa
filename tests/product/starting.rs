//! The first seconds of an agent: it claims nothing of what it has not read.

use crate::agent::{Agent, run, told, wait};
use crate::made_up::{folder, small};
use serde_json::Value;

fn has(of: &Value, wanted: &[&str]) -> bool {
    let sources: Vec<&str> =
        of["sources"].as_array().into_iter().flatten().filter_map(|source| source["source"].as_str()).collect();
    wanted.iter().all(|source| sources.contains(source))
}

/// True when everything that the verdict is about was read.
fn was_read(status: &Value) -> bool {
    let all = |list: &str, wanted: &[&str]| {
        let list = status[list].as_array().unwrap();
        !list.is_empty() && list.iter().all(|one| has(one, wanted))
    };
    all("devices", &["diskstats", "queue"]) && all("controllers", &["identify", "smart_health"])
}

#[test]
fn health_is_claimed_of_what_was_read_and_readiness_means_the_same() {
    let host = small();
    let agent = Agent::serve(&["--root", folder(&host), "--listen", "127.0.0.1:0"]);
    wait("ready", || {
        let ready = agent.get("/readyz");
        let answer = agent.get("/status.json");
        if answer.status == 200 {
            let status: Value = serde_json::from_str(answer.text()).unwrap();
            assert!(status["verdict"] != "ok" || was_read(&status), "{status:#}");
            assert!(ready.status != 200 || was_read(&status), "{status:#}");
        }
        assert!(ready.status == 200 || ready.text().starts_with("starting: "), "{}", ready.text());
        (ready.status == 200).then_some(())
    });
    let status = agent.json();
    assert_eq!((&status["verdict"], &status["exit_status"]), (&Value::from("ok"), &Value::from(0)), "{status:#}");
    let output = run(&["status", "--url", &agent.url()]);
    assert_eq!(told(&output).0, Some(0));
}
