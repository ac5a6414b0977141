//! The stages of btt, counted as btt does: for every bio.

use emmc_units::Nanos;

use super::result::Stage;
use crate::request::{Request, since};

#[derive(Clone, Copy)]
struct Sum {
    min: u64,
    max: u64,
    sum: u128,
    count: u64,
}

impl Sum {
    const NONE: Self = Self { min: u64::MAX, max: 0, sum: 0, count: 0 };

    #[inline]
    fn add(&mut self, shortest: u64, longest: u64, sum: u128, count: u64) {
        self.min = self.min.min(shortest);
        self.max = self.max.max(longest);
        self.sum += sum;
        self.count += count;
    }

    #[inline]
    fn one(&mut self, time: Nanos) {
        self.add(time.0, time.0, u128::from(time.0), 1);
    }
}

/// Q2G, G2I, I2D, D2C and Q2C.
pub(super) struct Stages([Sum; 5]);

const NAMES: [&str; 5] = ["Q2G", "G2I", "I2D", "D2C", "Q2C"];

impl Default for Stages {
    fn default() -> Self {
        Self([Sum::NONE; 5])
    }
}

impl Stages {
    pub(super) fn add(&mut self, request: &Request) {
        let [q2g, g2i, i2d, d2c, q2c] = &mut self.0;
        let Some(queued) = request.queued else { return };
        if let Some(got) = request.got {
            q2g.one(since(queued, got));
            if let Some(inserted) = request.inserted {
                g2i.one(since(got, inserted));
            }
        }
        if let Some(inserted) = request.inserted {
            i2d.one(since(inserted, request.issued));
        }
        let bios = u64::from(request.bios.0) + 1;
        let device = request.device_time().0;
        let first = since(queued, request.completed).0;
        if bios == 1 {
            d2c.one(Nanos(device));
            return q2c.one(Nanos(first));
        }
        d2c.add(device, device, u128::from(device) * u128::from(bios), bios);
        let last = since(request.queued_last, request.completed).0.min(first);
        let sum = (u128::from(first) * u128::from(bios)).saturating_sub(u128::from(request.bios.1));
        q2c.add(last, first, sum, bios);
    }

    pub(super) fn rows(&self) -> Vec<Stage> {
        let row = |(name, sum): (&&'static str, &Sum)| {
            (sum.count > 0).then(|| Stage {
                name,
                min_s: sum.min as f64 / 1e9,
                mean_s: sum.sum as f64 / sum.count as f64 / 1e9,
                max_s: sum.max as f64 / 1e9,
                count: sum.count,
            })
        };
        NAMES.iter().zip(&self.0).filter_map(row).collect()
    }
}
