//! The two ioctls: `NVME_IOCTL_ADMIN_CMD` (`linux/nvme_ioctl.h`) and `SG_IO` (`scsi/sg.h`). All `unsafe` of the crate.
//!
//! Time-outs are always 0, which means the kernel's default. A shorter one is an attack on the drive: when an admin
//! command passes its time-out the kernel disables and resets the controller, and the SCSI layer resets the link.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use nix::errno::Errno;

use crate::buffer::PageBuffer;
use crate::command::AdminCommand;

const KERNEL_DEFAULT_TIMEOUT: u32 = 0;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
struct NvmePassthruCmd {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10_to_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// `SG_IO` (`scsi/sg.h`): a bare number, older than the `_IOWR` encoding.
const SG_IO: u32 = 0x2285;
const SG_DXFER_NONE: i32 = -1;
const SG_INTERFACE_ID: i32 = b'S' as i32;

/// `struct sg_io_hdr`.
#[repr(C)]
struct SgIoHdr {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut c_void,
    cmdp: *mut u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut c_void,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

#[allow(
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    reason = "the bodies are the macros'; each call says why it is sound"
)]
mod request {
    use super::{NvmePassthruCmd, SG_IO, SgIoHdr};
    nix::ioctl_readwrite!(nvme_admin_cmd, b'N', 0x41, NvmePassthruCmd);
    nix::ioctl_readwrite_bad!(sg_io, SG_IO, SgIoHdr);
}

/// Sends an admin command. The positive return value is the controller's status, 0 is success.
///
/// # Errors
/// The error number of the kernel; `EINVAL` if the buffer does not present what the command returns.
pub(crate) fn nvme_admin(
    controller: BorrowedFd<'_>,
    command: &AdminCommand,
    buffer: &mut PageBuffer,
) -> Result<u16, Errno> {
    let data = buffer.as_mut_bytes();
    if data.len() != command.length() {
        return Err(Errno::EINVAL);
    }
    let mut passthru = NvmePassthruCmd {
        opcode: command.opcode() as u8,
        flags: 0,
        rsvd1: 0,
        nsid: command.nsid(),
        cdw2: 0,
        cdw3: 0,
        metadata: 0,
        addr: data.as_mut_ptr().expose_provenance() as u64,
        metadata_len: 0,
        data_len: u32::try_from(data.len()).map_err(|_| Errno::EINVAL)?,
        cdw10_to_15: command.dwords_10_to_15(),
        timeout_ms: KERNEL_DEFAULT_TIMEOUT,
        result: 0,
    };
    // SAFETY: `passthru` is a live `struct nvme_passthru_cmd` (layout asserted below) for the whole call. `addr` and
    // `data_len` describe `data`, borrowed exclusively until the call returns, and the kernel returns only when the
    // command is over. Both opcodes move data from the controller and no more than the `data_len` bytes that their
    // dwords ask for (Identify: 4096; Get Log Page: NUMD + 1 dwords), so nothing else is written.
    let returned = unsafe { request::nvme_admin_cmd(controller.as_raw_fd(), &raw mut passthru) }?;
    u16::try_from(returned).map_err(|_| Errno::EOVERFLOW)
}

/// What came back from [`ata_check_power_mode`].
pub(crate) struct SgReply {
    pub(crate) scsi: u8,
    pub(crate) host: u16,
    pub(crate) driver: u16,
    /// Sense data; only the first `sense_length` bytes were written.
    pub(crate) sense: [u8; SENSE_BYTES],
    pub(crate) sense_length: usize,
}

pub(crate) const SENSE_BYTES: usize = 64;

/// ATA PASS-THROUGH(16) (SAT-3, 12.2.2): protocol 3 (non-data), `CK_COND` so that the registers come back as sense,
/// command E5h CHECK POWER MODE, which does not wake a drive.
const CHECK_POWER_MODE_CDB: [u8; 16] = [0x85, 3 << 1, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe5, 0];

/// Sends CHECK POWER MODE, the only SCSI command that exists here.
///
/// # Errors
/// The error number of the kernel.
pub(crate) fn ata_check_power_mode(device: BorrowedFd<'_>) -> Result<SgReply, Errno> {
    let mut cdb = CHECK_POWER_MODE_CDB;
    let mut sense = [0_u8; SENSE_BYTES];
    let mut header = SgIoHdr {
        interface_id: SG_INTERFACE_ID,
        dxfer_direction: SG_DXFER_NONE,
        cmd_len: 16,
        mx_sb_len: 64,
        iovec_count: 0,
        dxfer_len: 0,
        dxferp: ptr::null_mut(),
        cmdp: cdb.as_mut_ptr(),
        sbp: sense.as_mut_ptr(),
        timeout: KERNEL_DEFAULT_TIMEOUT,
        flags: 0,
        pack_id: 0,
        usr_ptr: ptr::null_mut(),
        status: 0,
        masked_status: 0,
        msg_status: 0,
        sb_len_wr: 0,
        host_status: 0,
        driver_status: 0,
        resid: 0,
        duration: 0,
        info: 0,
    };
    // SAFETY: `header` is a live `struct sg_io_hdr` (layout asserted below). `cmdp` and `sbp` point to `cdb` and
    // `sense`, which outlive the call and are at least `cmd_len` and `mx_sb_len` long; there is no data transfer, so
    // the null `dxferp` is never followed.
    unsafe { request::sg_io(device.as_raw_fd(), &raw mut header) }?;
    Ok(SgReply {
        scsi: header.status,
        host: header.host_status,
        driver: header.driver_status,
        sense,
        sense_length: usize::from(header.sb_len_wr).min(SENSE_BYTES),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::{offset_of, size_of};
    use std::os::fd::AsFd;

    use super::*;
    use crate::command::Identify;

    #[test]
    fn the_admin_request_is_that_of_the_kernel_header() {
        let code = nix::request_code_readwrite!(b'N', 0x41, size_of::<NvmePassthruCmd>());
        assert_eq!(code, 0xc048_4e41);
    }

    #[test]
    fn nvme_passthru_cmd_has_the_kernels_layout() {
        assert_eq!(size_of::<NvmePassthruCmd>(), 72);
        let offsets = [
            offset_of!(NvmePassthruCmd, opcode),
            offset_of!(NvmePassthruCmd, flags),
            offset_of!(NvmePassthruCmd, rsvd1),
            offset_of!(NvmePassthruCmd, nsid),
            offset_of!(NvmePassthruCmd, cdw2),
            offset_of!(NvmePassthruCmd, cdw3),
            offset_of!(NvmePassthruCmd, metadata),
            offset_of!(NvmePassthruCmd, addr),
            offset_of!(NvmePassthruCmd, metadata_len),
            offset_of!(NvmePassthruCmd, data_len),
            offset_of!(NvmePassthruCmd, cdw10_to_15),
            offset_of!(NvmePassthruCmd, timeout_ms),
            offset_of!(NvmePassthruCmd, result),
        ];
        assert_eq!(offsets, [0, 1, 2, 4, 8, 12, 16, 24, 32, 36, 40, 64, 68]);
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn sg_io_hdr_has_the_kernels_layout() {
        assert_eq!(size_of::<SgIoHdr>(), 88);
        let offsets = [
            offset_of!(SgIoHdr, cmd_len),
            offset_of!(SgIoHdr, dxfer_len),
            offset_of!(SgIoHdr, dxferp),
            offset_of!(SgIoHdr, cmdp),
            offset_of!(SgIoHdr, sbp),
            offset_of!(SgIoHdr, timeout),
            offset_of!(SgIoHdr, flags),
            offset_of!(SgIoHdr, pack_id),
            offset_of!(SgIoHdr, usr_ptr),
            offset_of!(SgIoHdr, status),
            offset_of!(SgIoHdr, sb_len_wr),
            offset_of!(SgIoHdr, host_status),
            offset_of!(SgIoHdr, driver_status),
            offset_of!(SgIoHdr, resid),
            offset_of!(SgIoHdr, duration),
            offset_of!(SgIoHdr, info),
        ];
        assert_eq!(offsets, [8, 12, 16, 24, 32, 40, 44, 48, 56, 64, 67, 68, 70, 72, 76, 80]);
    }

    #[test]
    fn the_only_scsi_command_is_check_power_mode() {
        assert_eq!(CHECK_POWER_MODE_CDB[0], 0x85);
        assert_eq!(CHECK_POWER_MODE_CDB[1] >> 1 & 0xf, 3);
        assert_eq!(CHECK_POWER_MODE_CDB[14], 0xe5);
    }

    #[test]
    fn a_file_that_is_no_device_answers_with_an_errno() {
        let file = File::open("Cargo.toml").unwrap();
        let mut buffer = PageBuffer::zeroed(4096);
        let command = AdminCommand::Identify(Identify::Controller);
        assert_eq!(nvme_admin(file.as_fd(), &command, &mut buffer), Err(Errno::ENOTTY));
        assert!(ata_check_power_mode(file.as_fd()).is_err());
        let mut short = PageBuffer::zeroed(512);
        assert_eq!(nvme_admin(file.as_fd(), &command, &mut short), Err(Errno::EINVAL));
    }
}
