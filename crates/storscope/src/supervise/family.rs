//! All processes of the agent: which run, which are to be started again and when, and what joins them.

use super::backoff::Backoff;
use super::child::{Child, Ended, News};
use crate::config::Config;
use crate::parts::order::{Order, Setup};
use crate::parts::{Part, SUPERVISOR};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use std::{io, process};
use storscope_collect::clock;
use storscope_collect::former::{self, Former};
use storscope_collect::root::Root;
use storscope_model::time::BootTime;
use storscope_model::view::PartState;
use tokio::sync::mpsc;

/// News that wait.
const WAITING: usize = 64;

/// One part, whether it runs or not.
#[derive(Debug)]
struct Member {
    child: Option<Child>,
    /// When it is started again.
    due: Option<Instant>,
    backoff: Backoff,
    restarts: u64,
    /// Since when it runs or does not.
    since: BootTime,
    /// How it last ended.
    fault: Option<String>,
    /// Why it said that it would end.
    said: Option<String>,
}

/// The processes.
#[derive(Debug)]
pub(super) struct Family {
    setup: Setup,
    listeners: Vec<TcpListener>,
    members: BTreeMap<Part, Member>,
    news: mpsc::Receiver<News>,
    out: mpsc::Sender<News>,
    /// Processes started so far.
    started: u64,
    former: Vec<Former>,
    /// What is wrong with the newest configuration, if it is not used.
    refused: Vec<String>,
}

impl Family {
    /// Of nobody yet. The server will answer on `listeners`.
    pub(super) fn new(setup: Setup, listeners: Vec<TcpListener>) -> Self {
        let (out, news) = mpsc::channel(WAITING);
        let members = BTreeMap::new();
        let names = Part::ALL.map(Part::comm);
        let former = former::look(&Root::live(), &names, SUPERVISOR);
        for former in &former {
            tracing::warn!(process = former.name, pid = former.pid, "of a former agent, still stuck in the kernel");
        }
        Self { setup, listeners, members, news, out, started: 0, former, refused: Vec::new() }
    }

    /// The configuration in use.
    pub(super) const fn config(&self) -> &Config {
        &self.setup.config
    }

    /// Whether `part` runs or is to be started again.
    pub(super) fn runs(&self, part: Part) -> bool {
        self.members.contains_key(&part)
    }

    /// Starts `part` and joins it to the others.
    ///
    /// # Errors
    /// A want of processes, descriptors or threads.
    pub(super) fn start(&mut self, part: Part) -> io::Result<()> {
        self.started += 1;
        let child = Child::start(part, self.started, self.out.clone())?;
        tracing::debug!(process = part.as_str(), pid = child.pid, "started");
        let member = self.members.entry(part).or_insert_with(|| Member {
            child: None,
            due: None,
            backoff: Backoff::default(),
            restarts: 0,
            since: clock::now(),
            fault: None,
            said: None,
        });
        member.child = Some(child);
        member.due = None;
        member.since = clock::now();
        self.order(part, &Order::Begin(Box::new(self.setup.clone())));
        if part == Part::Server {
            for listener in &self.listeners {
                self.pass(part, &Order::Listen, Some(listener.as_fd()));
            }
            if !self.refused.is_empty() {
                self.order(part, &Order::Refused(self.refused.clone()));
            }
            for other in [Part::Collector, Part::Prober] {
                self.join(other)?;
            }
        } else {
            self.join(part)?;
        }
        self.tell_states();
        Ok(())
    }

    /// Starts `part` at the next look.
    pub(super) fn start_soon(&mut self, part: Part) {
        if let Err(error) = self.start(part) {
            tracing::error!(%error, process = part.as_str(), "cannot be started");
        }
    }

    /// Makes a new link between the server and `part`, if both run.
    fn join(&self, part: Part) -> io::Result<()> {
        if self.child(part).is_none() || self.child(Part::Server).is_none() {
            return Ok(());
        }
        let (servers, parts) = UnixStream::pair()?;
        self.pass(Part::Server, &Order::Link(part), Some(servers.as_fd()));
        self.pass(part, &Order::Link(Part::Server), Some(parts.as_fd()));
        Ok(())
    }

    fn child(&self, part: Part) -> Option<&Child> {
        self.members.get(&part)?.child.as_ref()
    }

    /// Gives an order, if `part` runs.
    pub(super) fn order(&self, part: Part, order: &Order) {
        self.pass(part, order, None);
    }

    fn pass(&self, part: Part, order: &Order, passed: Option<BorrowedFd<'_>>) {
        let Some(child) = self.child(part) else { return };
        // One that takes no order has ended, which is told soon, or is stuck.
        if let Err(error) = child.order(order, passed) {
            tracing::debug!(%error, process = part.as_str(), "takes no order");
        }
    }

    /// The next thing that is heard of the parts.
    pub(super) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// Takes note of an end.
    pub(super) fn ended(&mut self, ended: Ended) {
        let Ended { part, number, status } = ended;
        let Some(member) = self.members.get_mut(&part) else { return };
        let Some(child) = member.child.take_if(|child| child.number == number) else { return };
        let status = match status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let now = Instant::now();
        let due = member.backoff.after(child.began, now, self.setup.config.longest_pause);
        member.due = Some(due);
        member.since = clock::now();
        // What it said itself tells more than its exit status.
        let how = member.said.take().unwrap_or(status);
        let seconds = due.saturating_duration_since(now).as_secs_f64();
        tracing::error!(process = part.as_str(), pid = child.pid, how, "ended; started again in {seconds} s");
        member.fault = Some(how);
        self.tell_states();
    }

    /// Takes note that `part` said something.
    pub(super) fn heard(&mut self, part: Part) {
        if let Some(child) = self.members.get_mut(&part).and_then(|member| member.child.as_mut()) {
            child.heard = Instant::now();
        }
    }

    /// Takes note of why `part` is about to end.
    pub(super) fn failing(&mut self, part: Part, why: String) {
        if let Some(member) = self.members.get_mut(&part) {
            member.said = Some(why);
        }
    }

    /// Ends those of `parts` that have said nothing for `limit`.
    pub(super) fn end_stuck(&mut self, parts: &[Part], limit: Duration) {
        for part in parts {
            let Some(child) = self.members.get_mut(part).and_then(|member| member.child.as_mut()) else { continue };
            if child.heard.elapsed() >= limit {
                tracing::error!(process = part.as_str(), pid = child.pid, "says nothing and is ended");
                child.kill();
                child.heard = Instant::now();
            }
        }
    }

    /// Forgets processes of a former agent that are gone.
    pub(super) fn look_for_former(&mut self) {
        let before = self.former.len();
        self.former.retain(|former| former.is_there(&Root::live()));
        if self.former.len() != before {
            self.tell_states();
        }
    }

    /// When the next part is due to be started again.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.members.values().filter_map(|member| member.due).min()
    }

    /// Starts what is due.
    pub(super) fn start_due(&mut self) {
        let now = Instant::now();
        let due = self.members.iter().filter(|(_, member)| member.due.is_some_and(|due| due <= now));
        let due: Vec<Part> = due.map(|(part, _)| *part).collect();
        for part in due {
            if let Some(member) = self.members.get_mut(&part) {
                member.restarts = member.restarts.saturating_add(1);
            }
            if let Err(error) = self.start(part) {
                tracing::error!(%error, process = part.as_str(), "cannot be started again");
                if let Some(member) = self.members.get_mut(&part) {
                    member.due = Some(member.backoff.after(now, now, self.setup.config.longest_pause));
                    member.fault = Some(error.to_string());
                }
            }
        }
    }

    /// Ends `part` and starts it with the configuration in use, without counting that as a failure.
    pub(super) fn replace(&mut self, part: Part) {
        let Some(member) = self.members.get_mut(&part) else { return };
        if let Some(mut child) = member.child.take() {
            child.kill();
        }
        self.start_soon(part);
    }

    /// Tells that the newest configuration is not used, and why.
    pub(super) fn refuse(&mut self, mistakes: Vec<String>) {
        self.order(Part::Server, &Order::Refused(mistakes.clone()));
        self.refused = mistakes;
    }

    /// Uses `config` from now on.
    pub(super) fn configure(&mut self, config: &Config) {
        self.refused.clear();
        self.setup.config = config.clone();
        for part in Part::ALL {
            self.order(part, &Order::Use(Box::new(config.clone())));
        }
    }

    /// How all processes fare, this one first.
    fn states(&self) -> Vec<PartState> {
        let own = PartState {
            name: "supervisor".to_owned(),
            pid: Some(process::id()),
            since: self.setup.started,
            restarts: 0,
            fault: None,
        };
        let members = self.members.iter().map(|(part, member)| PartState {
            name: part.as_str().to_owned(),
            pid: member.child.as_ref().map(|child| child.pid),
            since: member.since,
            restarts: member.restarts,
            fault: member.fault.clone(),
        });
        std::iter::once(own).chain(members).collect()
    }

    fn tell_states(&self) {
        let former = self.former.iter().map(|former| (former.name.clone(), former.pid)).collect();
        let order = Order::Parts { own: self.states(), former };
        for part in [Part::Server, Part::Collector] {
            self.order(part, &order);
        }
    }

    /// The state of all in one sentence, for the service manager.
    pub(super) fn sentence(&self) -> String {
        let down = self.members.iter().filter(|(_, member)| member.child.is_none());
        let down: Vec<&str> = down.map(|(part, _)| part.as_str()).collect();
        if down.is_empty() { "all processes run".to_owned() } else { format!("not running: {}", down.join(", ")) }
    }

    /// Asks everyone to end, and ends after `grace` who has not. Who is stuck in the kernel is left behind.
    pub(super) async fn end(mut self, grace: Duration) {
        for part in Part::ALL {
            self.order(part, &Order::End);
        }
        let all_gone = async {
            while self.members.values().any(|member| member.child.is_some()) {
                let Some(news) = self.news.recv().await else { return };
                if let News::Ended(Ended { part, number, .. }) = news
                    && let Some(member) = self.members.get_mut(&part)
                {
                    member.child.take_if(|child| child.number == number);
                }
            }
        };
        if tokio::time::timeout(grace, all_gone).await.is_ok() {
            return;
        }
        for (part, member) in &mut self.members {
            if let Some(child) = &mut member.child {
                tracing::warn!(process = part.as_str(), pid = child.pid, "did not end in time");
                child.kill();
            }
        }
        // The signals are sent by tasks.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
