//! Latency distributions as sparse, sorted buckets: what crosses the codec and what quantiles are computed from.

use serde::{Deserialize, Serialize};

/// Most distinct buckets that a distribution may carry (1 % precision from 1 µs to 60 s needs about 2,000).
pub const MAX_BUCKETS: usize = 4096;

/// Buckets that are added one by one; more are merged with all others at once.
const FEW_BUCKETS: usize = 64;

/// One bucket: `count` latencies of at most `upper_ns` nanoseconds, and above the bucket below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Highest latency of the bucket in nanoseconds.
    pub upper_ns: u64,
    /// How many fell into it.
    pub count: u64,
}

/// A cumulative latency distribution: buckets sorted by strictly rising bound, none empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Distribution {
    buckets: Vec<Bucket>,
    /// Exact sum of the latencies in nanoseconds.
    sum_ns: u64,
}

impl Distribution {
    /// A distribution from buckets in any order; equal bounds are added up, empty buckets left out, and what is past
    /// [`MAX_BUCKETS`] is counted in the last bucket kept.
    pub fn new(mut buckets: Vec<Bucket>, sum_ns: u64) -> Self {
        buckets.retain(|bucket| bucket.count > 0);
        buckets.sort_by_key(|bucket| bucket.upper_ns);
        let mut merged: Vec<Bucket> = Vec::with_capacity(buckets.len().min(MAX_BUCKETS));
        for bucket in buckets {
            let full = merged.len() == MAX_BUCKETS;
            match merged.last_mut() {
                Some(last) if full || last.upper_ns == bucket.upper_ns => {
                    last.upper_ns = bucket.upper_ns;
                    last.count = last.count.saturating_add(bucket.count);
                }
                _ => merged.push(bucket),
            }
        }
        Self { buckets: merged, sum_ns }
    }

    /// The buckets, sorted by bound.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Sum of all latencies in nanoseconds.
    pub const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// How many latencies are in it.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, bucket| sum.saturating_add(bucket.count))
    }

    /// How many latencies are at most `bound_ns`, up to the precision of the buckets.
    pub fn count_up_to(&self, bound_ns: u64) -> u64 {
        self.buckets
            .iter()
            .take_while(|bucket| bucket.upper_ns <= bound_ns)
            .fold(0, |sum, bucket| sum.saturating_add(bucket.count))
    }

    /// The latency in nanoseconds below which a share `q` (0–1) lies; `None` when empty.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let count = self.count();
        let wanted = share_of(count, q).max(1);
        let mut seen = 0_u64;
        for bucket in &self.buckets {
            seen = seen.saturating_add(bucket.count);
            if seen >= wanted {
                return Some(bucket.upper_ns);
            }
        }
        self.buckets.last().map(|bucket| bucket.upper_ns)
    }

    /// The latencies in nanoseconds below which the shares `qs`, in rising order, lie; `None` for all when empty.
    pub fn quantiles_ns<const N: usize>(&self, qs: [f64; N]) -> [Option<u64>; N] {
        let count = self.count();
        let last = self.buckets.last().map(|bucket| bucket.upper_ns);
        let mut buckets = self.buckets.iter();
        let (mut seen, mut upper) = (0_u64, None);
        qs.map(|q| {
            let wanted = share_of(count, q).max(1);
            while seen < wanted {
                let Some(bucket) = buckets.next() else {
                    return last;
                };
                seen = seen.saturating_add(bucket.count);
                upper = Some(bucket.upper_ns);
            }
            upper
        })
    }

    /// What was added since `earlier`, a former state of the same cumulative distribution; `None` when `earlier` holds
    /// something that this one does not, as after a restart of the counting side.
    pub fn minus(&self, earlier: &Self) -> Option<Self> {
        let mut rest = self.buckets.iter().copied().peekable();
        let mut buckets = Vec::new();
        for old in &earlier.buckets {
            loop {
                let new = rest.next()?;
                if new.upper_ns < old.upper_ns {
                    buckets.push(new);
                    continue;
                }
                if new.upper_ns > old.upper_ns {
                    return None;
                }
                let count = new.count.checked_sub(old.count)?;
                if count > 0 {
                    buckets.push(Bucket { upper_ns: new.upper_ns, count });
                }
                break;
            }
        }
        buckets.extend(rest);
        Some(Self { buckets, sum_ns: self.sum_ns.checked_sub(earlier.sum_ns)? })
    }

    /// Adds `other` to this one.
    pub fn add(&mut self, other: &Self) {
        let sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        if other.buckets.len() <= FEW_BUCKETS && self.buckets.len() + other.buckets.len() <= MAX_BUCKETS {
            for bucket in &other.buckets {
                match self.buckets.binary_search_by_key(&bucket.upper_ns, |known| known.upper_ns) {
                    Ok(at) => self.buckets[at].count = self.buckets[at].count.saturating_add(bucket.count),
                    Err(at) => self.buckets.insert(at, *bucket),
                }
            }
            self.sum_ns = sum_ns;
            return;
        }
        let mut all = std::mem::take(&mut self.buckets);
        all.extend_from_slice(&other.buckets);
        *self = Self::new(all, sum_ns);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "q is clamped to 0..=1, so the product lies within u64; counts past 2^53 lose only low digits"
)]
fn share_of(count: u64, q: f64) -> u64 {
    (count as f64 * q.clamp(0.0, 1.0)).ceil() as u64
}
