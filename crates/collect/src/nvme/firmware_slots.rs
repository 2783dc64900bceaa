//! Log page 03h as a sample.

use storscope_drive as drive;
use storscope_model::sample::nvme::FirmwareSlots;

/// The sample of a decoded page.
pub(super) fn sample(page: drive::FirmwareSlots) -> FirmwareSlots {
    FirmwareSlots { active: page.active, next: page.next, revisions: page.revisions }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_the_pending_one_arrive() {
        let mut bytes = [0_u8; 512];
        bytes[0] = 0x31;
        bytes[8..16].copy_from_slice(b"OLD1    ");
        bytes[24..32].copy_from_slice(b"NEW2\0\0\0\0");
        let sample = sample(drive::FirmwareSlots::decode(&bytes).unwrap());
        assert_eq!((sample.active, sample.next), (1, Some(3)));
        assert_eq!(sample.revisions[0].as_deref(), Some("OLD1"));
        assert_eq!(sample.revisions[1], None);
        assert_eq!(sample.revisions[2].as_deref(), Some("NEW2"));
    }
}
