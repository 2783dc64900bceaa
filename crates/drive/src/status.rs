//! NVMe completion status (Base Specification, "Status Field Definition").

use std::fmt;

/// Bits 10:0 of a status: status code 7:0, status code type 10:8.
const CODE_MASK: u16 = 0x07ff;
/// More: the error log holds more about this command.
const MORE: u16 = 0x2000;
/// Do Not Retry: the same command will fail again.
const DO_NOT_RETRY: u16 = 0x4000;

/// What a controller said about a command, without the phase bit: as the pass-through ioctl returns it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

/// Which table a status code belongs to (bits 10:8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusType {
    /// 0h: generic command status.
    Generic,
    /// 1h: specific to the command.
    CommandSpecific,
    /// 2h: media and data integrity.
    Media,
    /// 3h: path related; partly set by the host itself.
    Path,
    /// 7h: the vendor's own.
    Vendor,
    /// 4h to 6h.
    Reserved(u8),
}

impl Status {
    /// 001h: the controller does not know the opcode.
    pub const INVALID_OPCODE: Self = Self(0x001);
    /// 002h: a field of the command is not valid for this controller.
    pub const INVALID_FIELD: Self = Self(0x002);
    /// 109h: the log page does not exist.
    pub const INVALID_LOG_PAGE: Self = Self(0x109);

    /// From the positive return value of the pass-through ioctl.
    #[must_use]
    pub fn from_ioctl(value: u16) -> Self {
        Self(value)
    }

    /// From a completion queue entry or an error log entry, where bit 0 is the phase tag.
    #[must_use]
    pub fn from_completion(field: u16) -> Self {
        Self(field >> 1)
    }

    /// Type and code, 11 bits: `0x281` is printed "281h" in the standard's tables.
    #[must_use]
    pub fn code(self) -> u16 {
        self.0 & CODE_MASK
    }

    /// The value with its More, Do Not Retry and retry-delay bits.
    #[must_use]
    pub fn raw(self) -> u16 {
        self.0
    }

    /// The error log holds more about this command.
    #[must_use]
    pub fn more(self) -> bool {
        self.0 & MORE != 0
    }

    /// The same command will fail again.
    #[must_use]
    pub fn do_not_retry(self) -> bool {
        self.0 & DO_NOT_RETRY != 0
    }

    /// The command succeeded.
    #[must_use]
    pub fn is_success(self) -> bool {
        self.code() == 0
    }

    /// The table that the code belongs to.
    #[must_use]
    pub fn status_type(self) -> StatusType {
        match self.code() >> 8 {
            0 => StatusType::Generic,
            1 => StatusType::CommandSpecific,
            2 => StatusType::Media,
            3 => StatusType::Path,
            7 => StatusType::Vendor,
            4 => StatusType::Reserved(4),
            5 => StatusType::Reserved(5),
            _ => StatusType::Reserved(6),
        }
    }

    /// The controller will refuse this command for as long as it runs this firmware.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        let code = Self(self.code());
        code == Self::INVALID_OPCODE || code == Self::INVALID_FIELD || code == Self::INVALID_LOG_PAGE
    }

    /// The name in the standard, where it has one that a person can use.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let code = self.code();
        NAMES.binary_search_by_key(&code, |(known, _)| *known).ok().map(|index| NAMES[index].1)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code();
        match (self.name(), self.status_type()) {
            (Some(name), _) => write!(f, "{name} ({code:03x}h)"),
            (None, StatusType::Vendor) => write!(f, "vendor status ({code:03x}h)"),
            (None, _) => write!(f, "status {code:03x}h"),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:#06x}: {self})", self.0)
    }
}

/// Codes by number, sorted. From the Base Specification 2.0 and the NVM command set.
const NAMES: &[(u16, &str)] = &[
    (0x000, "success"),
    (0x001, "invalid command opcode"),
    (0x002, "invalid field in command"),
    (0x003, "command id conflict"),
    (0x004, "data transfer error"),
    (0x005, "aborted: power loss notification"),
    (0x006, "internal error"),
    (0x007, "abort requested"),
    (0x008, "aborted: queue deleted"),
    (0x009, "aborted: fused command failed"),
    (0x00a, "aborted: fused command missing"),
    (0x00b, "invalid namespace or format"),
    (0x00c, "command sequence error"),
    (0x00d, "invalid SGL segment descriptor"),
    (0x00e, "invalid number of SGL descriptors"),
    (0x00f, "data SGL length invalid"),
    (0x010, "metadata SGL length invalid"),
    (0x011, "SGL descriptor type invalid"),
    (0x012, "invalid use of controller memory buffer"),
    (0x013, "PRP offset invalid"),
    (0x014, "atomic write unit exceeded"),
    (0x015, "operation denied"),
    (0x016, "SGL offset invalid"),
    (0x018, "host identifier inconsistent format"),
    (0x019, "keep alive timer expired"),
    (0x01a, "keep alive timeout invalid"),
    (0x01b, "aborted: preempt and abort"),
    (0x01c, "sanitize failed"),
    (0x01d, "sanitize in progress"),
    (0x01e, "SGL data block granularity invalid"),
    (0x01f, "command not supported for queue in CMB"),
    (0x020, "namespace is write protected"),
    (0x021, "command interrupted"),
    (0x022, "transient transport error"),
    (0x023, "prohibited by command and feature lockdown"),
    (0x024, "admin command media not ready"),
    (0x080, "LBA out of range"),
    (0x081, "capacity exceeded"),
    (0x082, "namespace not ready"),
    (0x083, "reservation conflict"),
    (0x084, "format in progress"),
    (0x100, "completion queue invalid"),
    (0x101, "invalid queue identifier"),
    (0x102, "invalid queue size"),
    (0x103, "abort command limit exceeded"),
    (0x105, "asynchronous event request limit exceeded"),
    (0x106, "invalid firmware slot"),
    (0x107, "invalid firmware image"),
    (0x108, "invalid interrupt vector"),
    (0x109, "invalid log page"),
    (0x10a, "invalid format"),
    (0x10b, "firmware activation requires conventional reset"),
    (0x10c, "invalid queue deletion"),
    (0x10d, "feature identifier not saveable"),
    (0x10e, "feature not changeable"),
    (0x10f, "feature not namespace specific"),
    (0x110, "firmware activation requires NVM subsystem reset"),
    (0x111, "firmware activation requires controller level reset"),
    (0x112, "firmware activation requires maximum time violation"),
    (0x113, "firmware activation prohibited"),
    (0x114, "overlapping range"),
    (0x115, "namespace insufficient capacity"),
    (0x116, "namespace identifier unavailable"),
    (0x118, "namespace already attached"),
    (0x119, "namespace is private"),
    (0x11a, "namespace not attached"),
    (0x11b, "thin provisioning not supported"),
    (0x11c, "controller list invalid"),
    (0x11d, "device self-test in progress"),
    (0x11e, "boot partition write prohibited"),
    (0x11f, "invalid controller identifier"),
    (0x120, "invalid secondary controller state"),
    (0x121, "invalid number of controller resources"),
    (0x122, "invalid resource identifier"),
    (0x123, "sanitize prohibited while persistent memory region is enabled"),
    (0x124, "ANA group identifier invalid"),
    (0x125, "ANA attach failed"),
    (0x180, "conflicting attributes"),
    (0x181, "invalid protection information"),
    (0x182, "attempted write to read only range"),
    (0x183, "command size limit exceeded"),
    (0x280, "write fault"),
    (0x281, "unrecovered read error"),
    (0x282, "end-to-end guard check error"),
    (0x283, "end-to-end application tag check error"),
    (0x284, "end-to-end reference tag check error"),
    (0x285, "compare failure"),
    (0x286, "access denied"),
    (0x287, "deallocated or unwritten logical block"),
    (0x288, "end-to-end storage tag check error"),
    (0x300, "internal path error"),
    (0x301, "asymmetric access persistent loss"),
    (0x302, "asymmetric access inaccessible"),
    (0x303, "asymmetric access transition"),
    (0x360, "controller pathing error"),
    (0x370, "host pathing error"),
    (0x371, "command aborted by host"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_table_is_sorted_and_within_eleven_bits() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(NAMES.iter().all(|(code, _)| code & !CODE_MASK == 0));
    }

    #[test]
    fn more_and_do_not_retry_are_kept_apart_from_the_code() {
        // 8457 as an ioctl returned it (FIELD-CASES D11): 2109h.
        let status = Status::from_ioctl(8457);
        assert_eq!(status.code(), 0x109);
        assert!(status.more() && !status.do_not_retry());
        assert!(status.is_refusal());
        assert_eq!(status.to_string(), "invalid log page (109h)");
        let final_word = Status::from_ioctl(0x4002);
        assert!(final_word.do_not_retry() && !final_word.more() && final_word.is_refusal());
    }

    #[test]
    fn the_phase_bit_of_a_log_entry_is_not_part_of_the_status() {
        let status = Status::from_completion(0x4004);
        assert_eq!(status.code(), 0x002);
        assert!(status.more());
        assert_eq!(Status::from_completion(0x0503).to_string(), "unrecovered read error (281h)");
    }

    #[test]
    fn unknown_codes_still_print() {
        assert_eq!(Status::from_ioctl(0x0ff).to_string(), "status 0ffh");
        assert_eq!(Status::from_ioctl(0x7c1).to_string(), "vendor status (7c1h)");
        assert_eq!(Status::from_ioctl(0x281).status_type(), StatusType::Media);
        assert_eq!(Status::from_ioctl(0x500).status_type(), StatusType::Reserved(5));
        assert!(!Status::from_ioctl(0x281).is_refusal());
    }
}
