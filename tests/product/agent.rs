//! A running `storscope serve`, ended by its own process id.

use crate::exchange::{self, Answer};
use crate::figures::Figures;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// What is waited for and does not come in this time does not come at all.
const LIMIT: Duration = Duration::from_secs(60);

/// Pause between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(20);

/// The binary.
pub(crate) fn storscope() -> Command {
    Command::new(env!("CARGO_BIN_EXE_storscope"))
}

/// Runs the binary to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    storscope().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// What a command wrote, and its exit status.
pub(crate) fn told(output: &Output) -> (Option<i32>, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Lines of a log as they come.
#[derive(Debug, Default)]
struct Lines {
    lines: Mutex<(Vec<String>, bool)>,
    came: Condvar,
}

/// A running agent.
pub(crate) struct Agent {
    child: Child,
    log: Arc<Lines>,
    /// Its configuration, read again on SIGHUP.
    quick: Option<tempfile::NamedTempFile>,
    /// Where it listens.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Agent {
    /// Replays the host in `root`, listening on a free port of the loopback. Without a configuration of the caller it
    /// looks at everything every second that may be looked at so often.
    pub(crate) fn replay(root: &Path, more: &[&str]) -> Self {
        let arguments = [&["--root", root.to_str().unwrap(), "--listen", "127.0.0.1:0"], more].concat();
        let quick = quick();
        let mut agent = match more.contains(&"--config") {
            true => Self::serve(&arguments),
            false => Self::serve(&[&arguments[..], &["--config", quick.path().to_str().unwrap()]].concat()),
        };
        agent.quick = Some(quick);
        agent.wait_ready();
        agent
    }

    /// Starts `serve` with `arguments` and waits until it listens on every address that they name.
    pub(crate) fn serve(arguments: &[&str]) -> Self {
        Self::start(storscope().arg("serve").args(arguments), arguments)
    }

    /// The same with a command of the caller.
    pub(crate) fn start(command: &mut Command, arguments: &[&str]) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Lines::default());
        let reader = BufReader::new(child.stderr.take().unwrap());
        let lines = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                lines.lines.lock().unwrap().0.push(line);
                lines.came.notify_all();
            }
            lines.lines.lock().unwrap().1 = true;
            lines.came.notify_all();
        });
        let mut agent = Self { child, log, quick: None, addresses: Vec::new() };
        let wanted = arguments.iter().filter(|argument| **argument == "--listen").count().max(1);
        agent.wait_log("/status", wanted);
        agent.addresses = agent
            .log()
            .iter()
            .filter_map(|line| line.split_once("listening on http://")?.1.strip_suffix("/status")?.parse().ok())
            .collect();
        agent
    }

    /// The log so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lines.lock().unwrap().0.clone()
    }

    /// Waits until `count` lines of the log hold `part`.
    pub(crate) fn wait_log(&self, part: &str, count: usize) {
        let enough = |lines: &[String]| lines.iter().filter(|line| line.contains(part)).count() >= count;
        let guard = self.log.lines.lock().unwrap();
        let (guard, _) =
            self.log.came.wait_timeout_while(guard, LIMIT, |(lines, ended)| !enough(lines) && !*ended).unwrap();
        assert!(enough(&guard.0), "not {count} times {part:?} in {:#?}", guard.0);
    }

    /// The first address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Its URL for `status --url`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        exchange::get(self.address(), path)
    }

    /// `GET path`, which must succeed.
    pub(crate) fn text(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.text().to_owned()
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures::parse(&self.text("/metrics"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text("/status.json")).unwrap()
    }

    /// Waits until the first scan is there.
    pub(crate) fn wait_ready(&self) {
        wait("ready", || (self.get("/readyz").status == 200).then_some(()));
    }

    /// Waits until `/metrics` satisfies `enough`, and gives it.
    pub(crate) fn wait_figures(&self, what: &str, enough: impl Fn(&Figures) -> bool) -> Figures {
        self.wait_ready();
        wait(what, || Some(self.figures()).filter(|figures| enough(figures)))
    }

    /// Waits until everything was looked at and the next look changed nothing in what can be read, and gives the
    /// figures.
    pub(crate) fn wait_settled(&self) -> Figures {
        self.wait_ready();
        let mut before = (Value::Null, Vec::new());
        wait("every source", || {
            let status = self.json();
            let states = states(&status);
            let waiting = states.iter().any(|(_, source, state)| state == "never" && source != "probe");
            let now = (status["time"].clone(), states);
            if waiting || before.1 != now.1 {
                before = now;
                return None;
            }
            (before.0 != now.0).then(|| self.figures())
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by SIGTERM and gives its log; it must end well.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.signal(Signal::SIGTERM);
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{status}: {:#?}", self.log());
        self.log()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the agent:\n{}", self.log().join("\n"));
        }
    }
}

/// A configuration with the shortest periods.
fn quick() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let text = "[periods]\ntick = \"1s\"\nlink = \"1s\"\nqueue = \"1s\"\nsmart = \"5s\"\nrescan = \"5s\"\n";
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Subject, name and state of every source in a status.
fn states(status: &Value) -> Vec<(String, String, String)> {
    let empty = Vec::new();
    let of = |list: &str| status[list].as_array().unwrap_or(&empty).iter();
    let subjects = std::iter::once(&status["host"]).chain(of("devices")).chain(of("controllers"));
    let text = |value: &Value| value.as_str().unwrap_or("host").to_owned();
    let sources = |subject: &Value| {
        let all = subject["sources"].as_array().unwrap().iter();
        all.map(|one| (text(&subject["name"]), text(&one["source"]), text(&one["state"]))).collect::<Vec<_>>()
    };
    subjects.flat_map(sources).collect()
}

/// Looks again and again until `look` finds something.
pub(crate) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}
