//! Asking a drive: NVMe admin pass-through and ATA CHECK POWER MODE, and the pages that come back, decoded.
//!
//! Three layers, each usable alone:
//!
//! 1. [`AdminChannel`] carries one [`AdminCommand`]: [`Controller`] to a live NVMe controller, [`Replay`] to a directory
//!    of captured pages. Only Identify and Get Log Page exist as commands, so nothing here can change a drive.
//! 2. One decoder a page ([`SmartHealth`], [`ErrorLog`], …): bytes in, a plain struct with units out, or a reason.
//! 3. [`Survey`], [`Plan`] and [`Query`]: what this drive may be asked at all, and asking it that way.
//!
//! The crate names no device file: every path comes from the caller.
#![deny(unsafe_code)]

mod admin;
mod ata_power;
mod buffer;
mod command;
mod denied;
mod effects;
mod error;
mod error_log;
mod firmware_slots;
mod identify_controller;
mod identify_namespace;
#[allow(unsafe_code, reason = "the one file that talks to the kernel by ioctl")]
mod ioctl;
mod layout;
mod ocp_smart;
mod policy;
mod query;
mod refusals;
mod replay;
mod self_test;
mod smart_health;
mod status;
mod supported_pages;
mod uuid_list;

pub use admin::{AdminChannel, CommandReport, Controller, Outcome};
pub use ata_power::{AtaDevice, PowerMode, power_mode_from_sense};
pub use buffer::PageBuffer;
pub use command::{
    AdminCommand, CommandId, GetLog, Identify, LogPage, MAX_TRANSFER_DWORDS, NSID_ALL, Opcode, UuidIndex,
};
pub use denied::{DENIED_LISTING, as_captured, denied_at, denied_by, denied_target};
pub use effects::{CommandEffects, Effects};
pub use error::{Capability, CommandError, FaultClass, Implausible, PageError};
pub use error_log::{ERROR_ENTRY_BYTES, ErrorEntry, ErrorLog};
pub use firmware_slots::{FIRMWARE_SLOTS, FirmwareSlots};
pub use identify_controller::{ControllerType, IdentifyController, PowerState, Version};
pub use identify_namespace::{BlockFormat, IdentifyNamespace};
pub use layout::drive_text;
pub use ocp_smart::{DssdVersion, Normalised, OCP_GUID, OcpSmart};
pub use policy::{Evidence, Plan, WhyNot};
pub use query::{Query, QueryError, Survey};
pub use refusals::{DriveKind, MAX_REFUSALS, Refusal, Refusals};
pub use replay::{MAX_CAPTURED_PAGE_BYTES, Replay};
pub use self_test::{SelfTestKind, SelfTestLog, SelfTestOutcome, SelfTestResult};
pub use smart_health::{CriticalWarning, DATA_UNIT_BYTES, SmartHealth, celsius};
pub use status::{Status, StatusType};
pub use supported_pages::SupportedPages;
pub use uuid_list::{OCP_UUID, UuidList};
