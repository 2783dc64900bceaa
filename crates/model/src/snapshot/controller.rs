//! Everything known of one NVMe controller.

use super::{SourceStats, SourceStatus, Trouble, settle};
use crate::device::Controller;
use crate::event::Outcome;
use crate::reading::Reading;
use crate::sample::{Sample, Source, nvme, pcie, power};
use crate::time::BootTime;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Everything known of one NVMe controller.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are the sources")]
pub struct ControllerState {
    pub controller: Arc<Controller>,
    /// When it was first seen by this process under this identity.
    pub appeared: BootTime,
    pub state: Reading<nvme::ControllerState>,
    pub power: Reading<power::RuntimePower>,
    pub link: Reading<pcie::PcieLink>,
    pub aer: Reading<pcie::Aer>,
    pub identify: Reading<nvme::Identify>,
    pub smart: Reading<nvme::SmartHealth>,
    pub error_log: Reading<nvme::ErrorLog>,
    pub firmware: Reading<nvme::FirmwareSlots>,
    pub self_test: Reading<nvme::SelfTestLog>,
    pub ocp: Reading<nvme::OcpSmart>,
    pub commands: Reading<nvme::DriveCommands>,
    pub stats: BTreeMap<Source, SourceStats>,
}

impl ControllerState {
    pub(super) fn new(controller: Controller, now: BootTime) -> Self {
        Self {
            controller: Arc::new(controller),
            appeared: now,
            state: Reading::Never,
            power: Reading::Never,
            link: Reading::Never,
            aer: Reading::Never,
            identify: Reading::Never,
            smart: Reading::Never,
            error_log: Reading::Never,
            firmware: Reading::Never,
            self_test: Reading::Never,
            ocp: Reading::Never,
            commands: Reading::Never,
            stats: BTreeMap::new(),
        }
    }

    /// The state of every source that was asked for or answered.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let stats = &self.stats;
        let mut all = vec![
            SourceStatus::of(Source::ControllerState, &self.state, stats),
            SourceStatus::of(Source::Power, &self.power, stats),
            SourceStatus::of(Source::PcieLink, &self.link, stats),
            SourceStatus::of(Source::PcieAer, &self.aer, stats),
            SourceStatus::of(Source::Identify, &self.identify, stats),
            SourceStatus::of(Source::SmartHealth, &self.smart, stats),
            SourceStatus::of(Source::ErrorLog, &self.error_log, stats),
            SourceStatus::of(Source::FirmwareSlots, &self.firmware, stats),
            SourceStatus::of(Source::SelfTest, &self.self_test, stats),
            SourceStatus::of(Source::OcpSmart, &self.ocp, stats),
        ];
        all.retain(|status| status.state != "never");
        all
    }

    /// The sources that were asked in vain the last time; allocates nothing when there is none.
    pub fn troubles(&self) -> Vec<Trouble<'_>> {
        let mut all = Vec::new();
        Trouble::note(&mut all, Source::ControllerState, &self.state);
        Trouble::note(&mut all, Source::Power, &self.power);
        Trouble::note(&mut all, Source::PcieLink, &self.link);
        Trouble::note(&mut all, Source::PcieAer, &self.aer);
        Trouble::note(&mut all, Source::Identify, &self.identify);
        Trouble::note(&mut all, Source::SmartHealth, &self.smart);
        Trouble::note(&mut all, Source::ErrorLog, &self.error_log);
        Trouble::note(&mut all, Source::FirmwareSlots, &self.firmware);
        Trouble::note(&mut all, Source::SelfTest, &self.self_test);
        Trouble::note(&mut all, Source::OcpSmart, &self.ocp);
        all
    }

    pub(super) fn apply(&mut self, source: Source, began: BootTime, ended: BootTime, outcome: Outcome) -> bool {
        macro_rules! take {
            ($field:ident, $pattern:pat => $value:expr) => {
                settle(&mut self.$field, began, ended, outcome, |sample| match sample {
                    $pattern => Some($value),
                    _ => None,
                })
            };
        }
        match source {
            Source::ControllerState => take!(state, Sample::ControllerState(value) => value),
            Source::Power => take!(power, Sample::Power(value) => value),
            Source::PcieLink => take!(link, Sample::PcieLink(value) => value),
            Source::PcieAer => take!(aer, Sample::PcieAer(value) => value),
            Source::Identify => take!(identify, Sample::Identify(value) => *value),
            Source::SmartHealth => take!(smart, Sample::SmartHealth(value) => *value),
            Source::ErrorLog => take!(error_log, Sample::ErrorLog(value) => value),
            Source::FirmwareSlots => take!(firmware, Sample::FirmwareSlots(value) => value),
            Source::SelfTest => take!(self_test, Sample::SelfTest(value) => value),
            Source::OcpSmart => take!(ocp, Sample::OcpSmart(value) => *value),
            Source::DriveCommands => take!(commands, Sample::DriveCommands(value) => value),
            _ => false,
        }
    }

    pub(super) fn stall(&mut self, source: Source, since: BootTime) -> bool {
        match source {
            Source::ControllerState => self.state.stall(since),
            Source::Power => self.power.stall(since),
            Source::PcieLink => self.link.stall(since),
            Source::PcieAer => self.aer.stall(since),
            Source::Identify => self.identify.stall(since),
            Source::SmartHealth => self.smart.stall(since),
            Source::ErrorLog => self.error_log.stall(since),
            Source::FirmwareSlots => self.firmware.stall(since),
            Source::SelfTest => self.self_test.stall(since),
            Source::OcpSmart => self.ocp.stall(since),
            Source::DriveCommands => self.commands.stall(since),
            _ => return false,
        }
        true
    }

    pub(super) fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> Duration) {
        self.state.expire(now, limit(Source::ControllerState));
        self.power.expire(now, limit(Source::Power));
        self.link.expire(now, limit(Source::PcieLink));
        self.aer.expire(now, limit(Source::PcieAer));
        self.identify.expire(now, limit(Source::Identify));
        self.smart.expire(now, limit(Source::SmartHealth));
        self.error_log.expire(now, limit(Source::ErrorLog));
        self.firmware.expire(now, limit(Source::FirmwareSlots));
        self.self_test.expire(now, limit(Source::SelfTest));
        self.ocp.expire(now, limit(Source::OcpSmart));
        self.commands.expire(now, limit(Source::DriveCommands));
    }
}
