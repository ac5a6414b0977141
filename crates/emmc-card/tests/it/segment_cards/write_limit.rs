//! The slowest write ends before a host that computes its timeout from the CSD gives up.

use emmc_card::profile::RegisterImage;
use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::csd::mmc::R2W_FACTOR;
use emmc_units::{Nanos, Rng};

use crate::segment_cards::host::{Host, named};

/// 4 KiB writes to 64 MiB that were written before: each closes an allocation unit and opens another in its middle.
#[test]
fn random_writes_of_segment_cards_end_within_the_limit_of_their_csd() {
    for name in ["sandisk-20au", "toshiba-7au"] {
        let profile = named(name);
        let csd = Csd::new(CardKind::Emmc, RegisterImage::new(&profile).csd);
        let limit_ns = 10.0 * csd.taac_ns().unwrap() * f64::from(1u32 << csd.get(R2W_FACTOR));
        let mut host = Host::new(name);
        host.fill(0, 64 << 20);
        let (mut rng, mut slowest) = (Rng::new(1), Nanos::ZERO);
        for _ in 0..500 {
            let before = host.now;
            host.write(rng.below(64 << 8) << 12, 4096);
            slowest = slowest.max(host.now.since(before));
        }
        assert!((slowest.0 as f64) < limit_ns, "{name}: {slowest:?} of {limit_ns} ns");
        // The limit is of the card's kind, and not any large number.
        assert!((slowest.0 as f64) * 8.0 > limit_ns, "{name}: {slowest:?} of {limit_ns} ns");
    }
}
