//! Where to read: random blocks, near blocks that are known to hold data.
//!
//! An unwritten block answers without touching the medium, so an evenly spread choice on a half-empty drive measures
//! the drive's tables half of the time. A bounded set of places that returned data is kept, and most reads go near one
//! of them: not to the very block, which the drive's own cache would answer, but to another one of its neighbourhood,
//! which was most likely written with it. The rest goes anywhere and finds new places.

use fastrand::Rng;

/// Places remembered.
const MAX_PLACES: usize = 256;
/// Size in bytes of the neighbourhood of a place.
const NEIGHBOURHOOD: u64 = 1 << 20;
/// One read in this many goes anywhere.
const EXPLORE: u8 = 4;

/// A block to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Offset in bytes, a multiple of the block size; the whole block lies on the device.
    pub(crate) offset: u64,
    /// Index of the place that it is near to.
    near: Option<usize>,
}

/// The choice of offsets on one device.
pub(crate) struct Offsets {
    rng: Rng,
    block: u64,
    blocks: u64,
    /// Numbers of blocks that returned data.
    places: Vec<u64>,
}

impl Offsets {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed), block: 1, blocks: 0, places: Vec::new() }
    }

    /// Adapts to the device's size and block size in bytes; returns false when not one block fits.
    pub(crate) fn resize(&mut self, size: u64, block: u32) -> bool {
        let block = u64::from(block.max(1));
        if block != self.block {
            self.places.clear();
        }
        self.block = block;
        self.blocks = size / block;
        self.places.retain(|place| *place < self.blocks);
        self.blocks > 0
    }

    /// The next block to read; `None` on a device without one.
    pub(crate) fn choose(&mut self) -> Option<Choice> {
        if self.blocks == 0 {
            return None;
        }
        if self.places.is_empty() || self.rng.u8(..EXPLORE) == 0 {
            let number = self.rng.u64(..self.blocks);
            return Some(Choice { offset: number * self.block, near: None });
        }
        let index = self.rng.usize(..self.places.len());
        let place = self.places.get(index).copied()?;
        Some(Choice { offset: self.neighbour(place) * self.block, near: Some(index) })
    }

    /// Another block of the neighbourhood of `place`, or `place` itself where it has none.
    fn neighbour(&mut self, place: u64) -> u64 {
        let span = (NEIGHBOURHOOD / self.block).max(2);
        let first = place.saturating_sub(span / 2);
        let last = place.saturating_add(span / 2).min(self.blocks - 1);
        if first == last {
            return place;
        }
        let number = self.rng.u64(first..last);
        // One number fewer than there are blocks: the place itself is stepped over.
        if number >= place { number + 1 } else { number }
    }

    /// Learns whether the block held data. A place whose neighbour did not is forgotten: it was discarded since, or
    /// stands alone.
    pub(crate) fn learn(&mut self, choice: Choice, data: bool) {
        match (data, choice.near) {
            (true, _) => {
                let number = choice.offset / self.block;
                if self.places.len() < MAX_PLACES {
                    self.places.push(number);
                } else {
                    let index = self.rng.usize(..MAX_PLACES);
                    if let Some(place) = self.places.get_mut(index) {
                        *place = number;
                    }
                }
            }
            (false, Some(index)) if index < self.places.len() => {
                self.places.swap_remove(index);
            }
            (false, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn every_block_is_aligned_and_whole(
            seed: u64,
            size in 4096_u64..1 << 50,
            block in prop::sample::select(vec![4096_u32, 8192, 65_536]),
            data in prop::collection::vec(any::<bool>(), 1..600),
        ) {
            let mut offsets = Offsets::new(seed);
            prop_assert_eq!(offsets.resize(size, block), size >= u64::from(block));
            for data in data {
                let Some(choice) = offsets.choose() else {
                    prop_assert!(size < u64::from(block));
                    break;
                };
                prop_assert_eq!(choice.offset % u64::from(block), 0);
                prop_assert!(choice.offset + u64::from(block) <= size);
                offsets.learn(choice, data);
                prop_assert!(offsets.places.len() <= MAX_PLACES);
            }
        }

        #[test]
        fn a_neighbour_is_near_and_another(seed: u64, blocks in 2_u64..100_000, at in 0.0_f64..1.0) {
            let mut offsets = Offsets::new(seed);
            offsets.resize(blocks * 4096, 4096);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "test data below 2^17")]
            let place = (blocks as f64 * at) as u64;
            let other = offsets.neighbour(place);
            prop_assert_ne!(other, place);
            prop_assert!(other.abs_diff(place) * 4096 <= NEIGHBOURHOOD / 2);
            prop_assert!(other < blocks);
        }
    }

    #[test]
    fn a_device_of_one_block_is_read_at_its_beginning() {
        for size in [4096, 4097, 8191] {
            let mut offsets = Offsets::new(1);
            assert!(offsets.resize(size, 4096));
            for _ in 0..20 {
                let choice = offsets.choose().unwrap();
                assert_eq!(choice.offset, 0);
                offsets.learn(choice, true);
            }
        }
    }

    #[test]
    fn a_device_smaller_than_a_block_has_none() {
        for size in [0, 512, 4095] {
            let mut offsets = Offsets::new(1);
            assert!(!offsets.resize(size, 4096));
            assert_eq!(offsets.choose(), None);
        }
    }

    #[test]
    fn most_reads_go_where_the_data_is() {
        const SIZE: u64 = 1 << 40;
        const WRITTEN: u64 = SIZE / 50;
        let mut offsets = Offsets::new(7);
        offsets.resize(SIZE, 4096);
        let mut hits = 0;
        for _ in 0..4000 {
            let choice = offsets.choose().unwrap();
            let data = choice.offset < WRITTEN;
            offsets.learn(choice, data);
            hits += u32::from(data);
        }
        assert!(hits > 2400, "{hits} of 4000 on a drive that is 2 % full");
    }

    #[test]
    fn the_same_seed_gives_the_same_offsets_and_few_repeat() {
        let run = |seed| {
            let mut offsets = Offsets::new(seed);
            offsets.resize(1 << 38, 4096);
            (0..1000)
                .map(|_| {
                    let choice = offsets.choose().unwrap();
                    offsets.learn(choice, true);
                    choice.offset
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
        let distinct: BTreeSet<_> = run(3).into_iter().collect();
        assert!(distinct.len() > 900, "{}", distinct.len());
    }

    #[test]
    fn a_discarded_place_is_forgotten() {
        let mut offsets = Offsets::new(5);
        offsets.resize(1 << 30, 4096);
        let first = offsets.choose().unwrap();
        offsets.learn(first, true);
        assert_eq!(offsets.places.len(), 1);
        let near = std::iter::repeat_with(|| offsets.choose().unwrap()).find(|choice| choice.near.is_some()).unwrap();
        offsets.learn(near, false);
        assert!(offsets.places.is_empty());
    }
}
