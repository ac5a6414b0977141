//! Random virtual cards with known parameters: what the probe finds of them. More cards: `cargo xtask probe-truth`.
#![cfg(feature = "truth")]

use emmc_probe::Confidence;
use emmc_probe::truth::{TrueCard, Verdict};

/// Cards of the test, by their seeds.
const CARDS: std::ops::Range<u64> = 1000..1024;

#[test]
fn values_of_high_confidence_are_true() {
    let (mut right, mut wrong, mut sure_and_wrong) = (0, Vec::new(), Vec::new());
    for seed in CARDS {
        let card = TrueCard::random(seed);
        let findings = card.probe().expect("the card is probed");
        let verdicts = card.verdicts(&findings);
        for name in ["allocation_unit", "open_units", "page"] {
            match verdicts.get(name) {
                Some((Verdict::Right, _)) => right += 1,
                Some((Verdict::Wrong, confidence)) => {
                    wrong.push((seed, name));
                    if *confidence == Some(Confidence::High) {
                        sure_and_wrong.push((seed, name));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(sure_and_wrong.is_empty(), "{sure_and_wrong:?}");
    assert!(right >= 19 * wrong.len() && right >= 40, "{right} right; wrong: {wrong:?}");
}

#[test]
fn a_probe_repeats_itself() {
    let card = TrueCard::random(3);
    assert_eq!(card.probe(), card.probe());
}
