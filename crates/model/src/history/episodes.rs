//! Findings over time: when each began, whether it lasts, and when it ended.

use super::gone::ails;
use crate::finding::{Finding, Severity, Since};
use crate::identity::Subject;
use crate::memory::{EpisodeMemory, MAX_ENTRIES, Moment};
use crate::phrase;
use crate::rules::{DEVICE_GONE, Judgement, Rule, Symptom};
use crate::time::{BootTime, ClockSync};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most closed findings that are shown.
pub const MAX_CLOSED: usize = 64;
/// Most findings of one rule that are open or about to open; further ones wait until there is room.
pub const MAX_OPEN: usize = 40_000;

#[derive(Debug, Clone)]
struct Episode {
    finding: Finding,
    clear_since: Option<BootTime>,
    unseen_since: Option<BootTime>,
}

/// Where a finding shows.
#[derive(Debug, Clone, Default)]
pub struct Bearing {
    /// Kernel name of the block device.
    pub device: Option<String>,
    /// Kernel name of the controller.
    pub controller: Option<String>,
    /// What it carries.
    pub carries: Vec<String>,
}

/// The findings of one rule, by subject.
#[derive(Debug, Clone, Default)]
struct OfRule {
    open: BTreeMap<Subject, Episode>,
    pending: BTreeMap<Subject, BootTime>,
    restored: BTreeMap<Subject, Since>,
}

/// Findings that are open, about to open, or were closed lately.
#[derive(Debug, Clone, Default)]
pub struct Episodes {
    rules: BTreeMap<&'static str, OfRule>,
    closed: VecDeque<Finding>,
}

impl Episodes {
    /// What a former run remembered; rules that this release does not have are left out.
    pub fn restore(memory: &[EpisodeMemory], rules: &'static [Rule], clock: &ClockSync) -> Self {
        let mut episodes = Self::default();
        for episode in memory.iter().take(MAX_ENTRIES) {
            if let Some(rule) = rules.iter().find(|rule| rule.id == episode.rule) {
                let since = episode.since.since(clock);
                episodes.rules.entry(rule.id).or_default().restored.insert(episode.subject.clone(), since);
            }
        }
        episodes
    }

    /// Takes in what `rule` says of `subject` now. `bearing` is asked for only when there is something to say; `wait`
    /// is how long a finding must hold before it opens.
    pub fn judge(
        &mut self,
        rule: &'static Rule,
        subject: &Subject,
        judgement: Judgement,
        wait: Duration,
        now: BootTime,
        bearing: impl FnOnce() -> Bearing,
    ) {
        match judgement {
            Judgement::Found(symptom) => {
                let of_rule = self.rules.entry(rule.id).or_default();
                of_rule.found(rule, subject, symptom, wait, now, bearing);
            }
            Judgement::Clear => {
                let Some(of_rule) = self.rules.get_mut(rule.id) else {
                    return;
                };
                of_rule.pending.remove(subject);
                of_rule.restored.remove(subject);
                let ended = of_rule.open.get_mut(subject).is_some_and(|episode| {
                    let since = *episode.clear_since.get_or_insert(now);
                    episode.unseen_since = None;
                    now.since(since) >= rule.closes_after
                });
                if ended && let Some(episode) = of_rule.open.remove(subject) {
                    self.close(episode, now);
                }
            }
            Judgement::Unknown => {
                let episode = self.rules.get_mut(rule.id).and_then(|of_rule| of_rule.open.get_mut(subject));
                if let Some(episode) = episode {
                    episode.unseen_since.get_or_insert(now);
                }
            }
        }
    }

    fn close(&mut self, mut episode: Episode, now: BootTime) {
        episode.finding.ended = Some(now);
        self.closed.push_front(episode.finding);
        self.closed.truncate(MAX_CLOSED);
    }

    /// Ends what is about subjects that are gone, and says so; the absence itself ends when `stays` says so.
    pub fn retain(&mut self, now: BootTime, stays: impl Fn(&'static str, &Subject) -> bool) {
        let mut gone = Vec::new();
        for (rule, of_rule) in &mut self.rules {
            of_rule.pending.retain(|subject, _| stays(rule, subject));
            if *rule == DEVICE_GONE {
                of_rule.restored.retain(|subject, _| stays(rule, subject));
            }
            gone.extend(of_rule.open.extract_if(.., |subject, _| !stays(rule, subject)));
        }
        for (_, mut episode) in gone {
            if episode.finding.rule != DEVICE_GONE {
                episode.finding.title.push_str(" (the device is gone)");
            }
            self.close(episode, now);
        }
    }

    /// The worst open finding of each subject that has a warning or worse, without what may come of its vanishing.
    pub fn troubles(&self, now: BootTime) -> BTreeMap<&Subject, &Finding> {
        let mut worst: BTreeMap<&Subject, &Finding> = BTreeMap::new();
        for (subject, episode) in self.rules.values().flat_map(|of_rule| &of_rule.open) {
            let finding = &episode.finding;
            if finding.severity > Severity::Info
                && ails(finding, now)
                && worst.get(subject).is_none_or(|known| known.severity < finding.severity)
            {
                worst.insert(subject, finding);
            }
        }
        worst
    }

    /// How bad the open finding of `rule` about `subject` is.
    pub fn severity(&self, rule: &'static str, subject: &Subject) -> Option<Severity> {
        self.rules.get(rule)?.open.get(subject).map(|episode| episode.finding.severity)
    }

    /// Open findings, worst first, then oldest, then by rule and subject.
    ///
    /// One whose source gives nothing now stays, and says since when it was not seen again.
    pub fn open(&self, now: BootTime, wall_offset_ns: i128) -> Vec<Finding> {
        let mut all: Vec<Finding> = self
            .rules
            .values()
            .flat_map(|of_rule| of_rule.open.values())
            .map(|episode| {
                let mut finding = episode.finding.clone();
                if let Some(since) = episode.unseen_since {
                    let ago = phrase::duration(now.since(since));
                    finding.evidence.push(format!("as last seen {ago} ago: its source gives nothing now"));
                }
                finding
            })
            .collect();
        let age = |finding: &Finding| finding.since.elapsed(now, wall_offset_ns);
        all.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| age(b).cmp(&age(a))));
        all
    }

    /// Findings closed by this process, newest first.
    pub fn closed(&self) -> Vec<Finding> {
        self.closed.iter().cloned().collect()
    }

    /// What the next run should remember: what is open, and what was restored and not judged yet.
    pub fn memory(&self, clock: &ClockSync) -> Vec<EpisodeMemory> {
        let mut all = Vec::new();
        for (rule, of_rule) in &self.rules {
            let open = of_rule.open.iter().map(|(subject, episode)| (subject, episode.finding.since));
            let waiting = of_rule.restored.iter().map(|(subject, since)| (subject, *since));
            all.extend(open.chain(waiting).map(|(subject, since)| EpisodeMemory {
                rule: (*rule).to_owned(),
                subject: subject.clone(),
                since: Moment::of(since, clock),
            }));
        }
        all.truncate(MAX_ENTRIES);
        all
    }
}

impl OfRule {
    fn found(
        &mut self,
        rule: &Rule,
        subject: &Subject,
        symptom: Symptom,
        wait: Duration,
        now: BootTime,
        bearing: impl FnOnce() -> Bearing,
    ) {
        if let Some(episode) = self.open.get_mut(subject) {
            let finding = finding(rule, subject, symptom, episode.finding.since, bearing());
            *episode = Episode { finding, clear_since: None, unseen_since: None };
            return;
        }
        if self.open.len() + self.pending.len() >= MAX_OPEN {
            return;
        }
        let first = *self.pending.entry(subject.clone()).or_insert(now);
        let restored = self.restored.get(subject).copied();
        if restored.is_none() && !symptom.at_once && now.since(first) < wait {
            return;
        }
        self.pending.remove(subject);
        self.restored.remove(subject);
        let since = restored.or(symptom.since).unwrap_or(Since::Boot(first));
        let finding = finding(rule, subject, symptom, since, bearing());
        self.open.insert(subject.clone(), Episode { finding, clear_since: None, unseen_since: None });
    }
}

fn finding(rule: &Rule, subject: &Subject, symptom: Symptom, since: Since, bearing: Bearing) -> Finding {
    Finding {
        rule: rule.id,
        severity: symptom.severity,
        subject: subject.clone(),
        device: bearing.device,
        controller: bearing.controller,
        since,
        ended: None,
        title: symptom.title,
        evidence: symptom.evidence,
        carries: bearing.carries,
        next: symptom.next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::DeviceId;
    use crate::rules::RULES;

    fn rule() -> &'static Rule {
        &RULES[0]
    }

    fn subject() -> Subject {
        Subject::Device(DeviceId("model serial 1".to_owned()))
    }

    fn found(severity: Severity) -> Judgement {
        Judgement::Found(Symptom { severity, title: "sick".to_owned(), ..Symptom::default() })
    }

    fn judge(episodes: &mut Episodes, judgement: Judgement, wait: u64, at: u64) {
        let wait = Duration::from_secs(wait);
        episodes.judge(rule(), &subject(), judgement, wait, BootTime::from_secs(at), Bearing::default);
    }

    fn open(episodes: &Episodes, at: u64) -> Vec<Finding> {
        episodes.open(BootTime::from_secs(at), 0)
    }

    #[test]
    fn a_finding_opens_after_its_wait_and_remembers_when_it_began() {
        let mut episodes = Episodes::default();
        judge(&mut episodes, found(Severity::Warning), 10, 100);
        judge(&mut episodes, found(Severity::Warning), 10, 109);
        assert!(open(&episodes, 109).is_empty());
        judge(&mut episodes, found(Severity::Warning), 10, 110);
        judge(&mut episodes, found(Severity::Critical), 10, 115);
        let [finding] = &open(&episodes, 115)[..] else { panic!("one finding") };
        assert_eq!((finding.since, finding.severity), (Since::Boot(BootTime::from_secs(100)), Severity::Critical));
        assert_eq!(episodes.severity(rule().id, &subject()), Some(Severity::Critical));
    }

    #[test]
    fn what_clears_in_between_begins_anew() {
        let mut episodes = Episodes::default();
        judge(&mut episodes, found(Severity::Warning), 10, 100);
        judge(&mut episodes, Judgement::Clear, 10, 105);
        judge(&mut episodes, found(Severity::Warning), 10, 108);
        judge(&mut episodes, found(Severity::Warning), 10, 112);
        assert!(open(&episodes, 112).is_empty());
    }

    #[test]
    fn silence_keeps_an_open_finding_and_says_so() {
        let mut episodes = Episodes::default();
        judge(&mut episodes, found(Severity::Critical), 0, 100);
        judge(&mut episodes, Judgement::Unknown, 0, 200);
        judge(&mut episodes, Judgement::Unknown, 0, 500);
        let finding = open(&episodes, 500).remove(0);
        assert_eq!(finding.evidence, ["as last seen 5 min ago: its source gives nothing now"]);
        judge(&mut episodes, Judgement::Unknown, 0, 600);
        assert_eq!(open(&episodes, 600).len(), 1);
        let mut fresh = Episodes::default();
        judge(&mut fresh, Judgement::Unknown, 0, 100);
        assert!(open(&fresh, 100).is_empty(), "silence opens nothing");
    }

    #[test]
    fn closed_findings_have_an_end_and_are_bounded() {
        let mut episodes = Episodes::default();
        for n in 0..200 {
            judge(&mut episodes, found(Severity::Warning), 0, n * 1000);
            judge(&mut episodes, Judgement::Clear, 0, n * 1000 + 500);
            judge(&mut episodes, Judgement::Clear, 0, n * 1000 + 900);
        }
        assert!(open(&episodes, 200_000).is_empty());
        let closed = episodes.closed();
        assert_eq!(closed.len(), MAX_CLOSED);
        assert!(closed[0].ended > closed[1].ended);
    }

    #[test]
    fn what_is_gone_ends() {
        let mut episodes = Episodes::default();
        judge(&mut episodes, found(Severity::Warning), 0, 100);
        episodes.retain(BootTime::from_secs(150), |_, _| false);
        assert!(open(&episodes, 150).is_empty());
        let closed = episodes.closed().remove(0);
        assert_eq!(
            (closed.ended, closed.title.as_str()),
            (Some(BootTime::from_secs(150)), "sick (the device is gone)")
        );
    }

    #[test]
    fn an_episode_goes_on_over_a_reboot() {
        let clock = ClockSync { boot_id: "one".to_owned(), wall_offset_ns: 1_000_000_000_000 };
        let mut episodes = Episodes::default();
        judge(&mut episodes, found(Severity::Warning), 0, 100);
        let memory = episodes.memory(&clock);
        let next = ClockSync { boot_id: "two".to_owned(), wall_offset_ns: 2_000_000_000_000 };
        let mut restored = Episodes::restore(&memory, RULES, &next);
        assert_eq!(restored.memory(&next)[0].since.wall_ns, 1_100_000_000_000, "not judged yet, not forgotten");
        judge(&mut restored, found(Severity::Warning), 1000, 20);
        assert_eq!(open(&restored, 20)[0].since, Since::Wall(1_100_000_000_000));
        let unknown = EpisodeMemory { rule: "no_such_rule".to_owned(), ..memory[0].clone() };
        assert!(Episodes::restore(&[unknown], RULES, &next).memory(&next).is_empty());
    }
}
