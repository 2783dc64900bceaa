//! Identify Namespace as a sample.

use storscope_drive::IdentifyNamespace;
use storscope_model::sample::nvme::Namespace;

/// The sample of a decoded structure. `None` where the drive states a block format that does not exist: block counts
/// without a block size say nothing.
pub(super) fn sample(id: &IdentifyNamespace) -> Option<Namespace> {
    let format = id.format?;
    Some(Namespace {
        size_blocks: id.size_blocks,
        capacity_blocks: id.capacity_blocks,
        used_blocks: id.used_blocks,
        block_bytes: u64::from(format.block_bytes),
        metadata_bytes: format.metadata_bytes,
        protection: id.protection_type,
        nvm_capacity_bytes: id.capacity_bytes.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure() -> [u8; 4096] {
        let mut bytes = [0_u8; 4096];
        bytes[0..8].copy_from_slice(&1000_u64.to_le_bytes());
        bytes[8..16].copy_from_slice(&900_u64.to_le_bytes());
        bytes[16..24].copy_from_slice(&500_u64.to_le_bytes());
        bytes[25] = 1;
        bytes[26] = 1;
        bytes[29] = 2;
        bytes[48..64].copy_from_slice(&4_096_000_u128.to_le_bytes());
        bytes[130] = 9;
        bytes[132..134].copy_from_slice(&8_u16.to_le_bytes());
        bytes[134] = 12;
        bytes
    }

    #[test]
    fn sizes_and_the_format_in_use_arrive() {
        let expected = Namespace {
            size_blocks: 1000,
            capacity_blocks: 900,
            used_blocks: 500,
            block_bytes: 4096,
            metadata_bytes: 8,
            protection: 2,
            nvm_capacity_bytes: 4_096_000,
        };
        assert_eq!(sample(&IdentifyNamespace::decode(&structure()).unwrap()), Some(expected));
    }

    #[test]
    fn a_format_that_does_not_exist_is_no_sample() {
        let mut bytes = structure();
        bytes[26] = 5;
        assert_eq!(sample(&IdentifyNamespace::decode(&bytes).unwrap()), None);
    }
}
