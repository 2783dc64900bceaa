//! Everything known of one NVMe controller.

use super::SourceStats;
use super::readings::readings;
use crate::device::Controller;
use crate::reading::Reading;
use crate::sample::{Sample, Source, nvme, pcie, power};
use crate::time::BootTime;
use std::collections::BTreeMap;
use std::sync::Arc;

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
}

readings! {
    ControllerState {
        state: ControllerState = Sample::ControllerState(value) => value,
        power: Power = Sample::Power(value) => value,
        link: PcieLink = Sample::PcieLink(value) => value,
        aer: PcieAer = Sample::PcieAer(value) => value,
        identify: Identify = Sample::Identify(value) => *value,
        smart: SmartHealth = Sample::SmartHealth(value) => *value,
        error_log: ErrorLog = Sample::ErrorLog(value) => value,
        firmware: FirmwareSlots = Sample::FirmwareSlots(value) => value,
        self_test: SelfTest = Sample::SelfTest(value) => value,
        ocp: OcpSmart = Sample::OcpSmart(value) => *value,
        commands: DriveCommands = Sample::DriveCommands(value) => value,
    }
}
