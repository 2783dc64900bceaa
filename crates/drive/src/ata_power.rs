//! ATA CHECK POWER MODE (ACS-4, 7.3): is the drive asleep? Asking this does not wake it; asking anything else may.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use crate::admin::{CommandReport, Outcome, open_device};
use crate::command::CommandId;
use crate::error::CommandError;
use crate::ioctl;

const ATA_STATUS_RETURN_DESCRIPTOR: u8 = 0x09;
const ATA_STATUS_RETURN_BYTES: usize = 14;
/// ERR, DRQ, DF and BSY of the ATA status register: the registers hold no result.
const ATA_FAILED: u8 = 0x01 | 0x08 | 0x20 | 0x80;
/// ATA PASS-THROUGH INFORMATION AVAILABLE.
const PASS_THROUGH_INFORMATION: [u8; 2] = [0x00, 0x1d];

/// What a drive answered, from the count register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerMode {
    /// 00h, 01h: standby; the medium does not turn.
    Standby,
    /// 40h: the non-volatile cache serves, the spindle is stopped or stopping.
    SpunDown,
    /// 41h: the non-volatile cache serves, the spindle turns.
    SpunUp,
    /// 80h to 83h: idle; heads may be parked, the medium turns.
    Idle,
    /// FFh: active or idle.
    Active,
    /// Any other value: not known, so not to be touched.
    Unknown(u8),
}

impl PowerMode {
    /// From the count register.
    #[must_use]
    pub fn from_count(count: u8) -> Self {
        match count {
            0x00 | 0x01 => Self::Standby,
            0x40 => Self::SpunDown,
            0x41 => Self::SpunUp,
            0x80..=0x83 => Self::Idle,
            0xff => Self::Active,
            other => Self::Unknown(other),
        }
    }

    /// Another command would neither wake the drive nor keep it from going to sleep for a reason that is not known.
    #[must_use]
    pub fn may_be_asked(self) -> bool {
        matches!(self, Self::SpunUp | Self::Idle | Self::Active)
    }

    /// The drive sleeps.
    #[must_use]
    pub fn is_asleep(self) -> bool {
        matches!(self, Self::Standby | Self::SpunDown)
    }
}

/// A live ATA drive behind a SCSI device file. Drop it after each poll.
#[derive(Debug)]
pub struct AtaDevice {
    file: File,
}

impl AtaDevice {
    /// Opens a device file read-only, without waiting for a medium.
    ///
    /// # Errors
    /// [`CommandError::Open`].
    pub fn open(path: &Path) -> Result<Self, CommandError> {
        Ok(Self { file: open_device(path)? })
    }

    /// Sends CHECK POWER MODE. A failure means that the mode is not known: do not touch the drive.
    pub fn power_mode(&self) -> (Result<PowerMode, CommandError>, CommandReport) {
        let command = CommandId::CheckPowerMode;
        let began = Instant::now();
        let reply = ioctl::ata_check_power_mode(self.file.as_fd());
        let took = began.elapsed();
        let (outcome, result) = match reply {
            Err(errno) => {
                let errno = errno as i32;
                (Outcome::Errno(errno), Err(CommandError::Errno { command, errno }))
            }
            Ok(reply) => match power_mode_from_sense(&reply.sense[..reply.sense_length]) {
                Some(mode) if reply.host == 0 => (Outcome::Done, Ok(mode)),
                _ => (
                    Outcome::Scsi(reply.scsi),
                    Err(CommandError::Scsi {
                        command,
                        scsi: reply.scsi,
                        host: reply.host,
                        driver: reply.driver,
                        sense_key: sense_key(&reply.sense[..reply.sense_length]),
                    }),
                ),
            },
        };
        (result, CommandReport { command, took, outcome })
    }
}

/// The power mode in the sense data of CHECK POWER MODE (SAT-5, 12.2.2): `None` where the registers are not there or
/// say that the command failed.
///
/// Kernels answer in descriptor format; since 6.10 in fixed format where the drive's D_SENSE bit is clear.
#[must_use]
pub fn power_mode_from_sense(sense: &[u8]) -> Option<PowerMode> {
    let (status, count) = match sense.first()? & 0x7f {
        0x72 | 0x73 => registers_of_descriptor(sense)?,
        0x70 | 0x71 => {
            let information = sense.get(12..14)?;
            if information != PASS_THROUGH_INFORMATION {
                return None;
            }
            (*sense.get(4)?, *sense.get(6)?)
        }
        _ => return None,
    };
    (status & ATA_FAILED == 0).then(|| PowerMode::from_count(count))
}

/// Sense key (SPC-5, 4.4).
fn sense_key(sense: &[u8]) -> Option<u8> {
    let at = match sense.first()? & 0x7f {
        0x70 | 0x71 => 2,
        0x72 | 0x73 => 1,
        _ => return None,
    };
    sense.get(at).map(|byte| byte & 0xf)
}

fn registers_of_descriptor(sense: &[u8]) -> Option<(u8, u8)> {
    let mut rest = sense.get(8..)?;
    while let [kind, length, ..] = *rest {
        let size = usize::from(length) + 2;
        if kind == ATA_STATUS_RETURN_DESCRIPTOR {
            let descriptor = rest.get(..ATA_STATUS_RETURN_BYTES)?;
            return Some((descriptor[13], descriptor[5]));
        }
        rest = rest.get(size..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor_sense(status: u8, count: u8) -> Vec<u8> {
        let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 12];
        sense.resize(22, 0);
        sense[13] = count;
        sense[21] = status;
        sense
    }

    #[test]
    fn modes_follow_the_count_register() {
        let cases = [
            (0x00, PowerMode::Standby, false),
            (0x01, PowerMode::Standby, false),
            (0x40, PowerMode::SpunDown, false),
            (0x41, PowerMode::SpunUp, true),
            (0x80, PowerMode::Idle, true),
            (0x83, PowerMode::Idle, true),
            (0xff, PowerMode::Active, true),
            (0x5a, PowerMode::Unknown(0x5a), false),
        ];
        for (count, mode, may_be_asked) in cases {
            assert_eq!(power_mode_from_sense(&descriptor_sense(0x50, count)), Some(mode));
            assert_eq!(mode.may_be_asked(), may_be_asked, "{mode:?}");
        }
        assert!(PowerMode::Standby.is_asleep() && !PowerMode::Unknown(2).is_asleep());
    }

    #[test]
    fn the_descriptor_is_found_behind_others() {
        let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 26, 0x00, 0x0a];
        sense.resize(20, 0xee);
        sense.extend(&descriptor_sense(0x50, 0xff)[8..]);
        assert_eq!(power_mode_from_sense(&sense), Some(PowerMode::Active));
    }

    #[test]
    fn fixed_format_is_understood_only_with_pass_through_information() {
        let mut sense = vec![0xf0, 0, 1, 0, 0x50, 0, 0x80, 10, 0, 0, 0, 0, 0x00, 0x1d];
        assert_eq!(power_mode_from_sense(&sense), Some(PowerMode::Idle));
        // An ordinary "not ready" would read as standby.
        sense[12..14].copy_from_slice(&[0x04, 0x01]);
        assert_eq!(power_mode_from_sense(&sense), None);
    }

    #[test]
    fn the_sense_key_is_found_in_both_formats() {
        assert_eq!(sense_key(&[0x70, 0, 0x65, 0]), Some(5));
        assert_eq!(sense_key(&[0x72, 0x02]), Some(2));
        assert_eq!(sense_key(&[0x00, 5, 5]), None);
        assert_eq!(sense_key(&[0x70]), None);
        assert_eq!(sense_key(&[]), None);
    }

    #[test]
    fn failed_and_damaged_answers_are_unknown() {
        assert_eq!(power_mode_from_sense(&descriptor_sense(0x51, 0x00)), None);
        assert_eq!(power_mode_from_sense(&descriptor_sense(0xd0, 0x00)), None);
        let whole = descriptor_sense(0x50, 0xff);
        for length in 0..whole.len() {
            assert_eq!(power_mode_from_sense(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(power_mode_from_sense(&[0; 64]), None);
        // A descriptor of length 0 and unknown kind must not loop.
        assert_eq!(power_mode_from_sense(&[0x72; 64]), None);
    }

    #[test]
    fn a_file_that_is_no_drive_fails_and_is_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let device = AtaDevice::open(file.path()).unwrap();
        let (result, report) = device.power_mode();
        assert!(result.is_err());
        assert_eq!(report.command, CommandId::CheckPowerMode);
        assert!(matches!(report.outcome, Outcome::Errno(_)));
    }
}
