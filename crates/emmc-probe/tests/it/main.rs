//! Random virtual cards with known parameters: what the probe finds of them. More cards: `cargo xtask probe-truth`.
#![cfg(feature = "truth")]

use emmc_probe::truth::{TrueCapacity, TrueCard, Verdict};
use emmc_probe::{Confidence, Part};

/// Cards of the test, by their seeds.
const CARDS: std::ops::Range<u64> = 1000..1024;

#[test]
fn values_of_high_confidence_are_true() {
    let (mut right, mut wrong, mut sure_and_wrong) = (0, Vec::new(), Vec::new());
    for seed in CARDS {
        let card = TrueCard::random(seed);
        let findings = card.probe(&[], None).expect("the card is probed");
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

/// Cards with a cache of single-bit cells that a sustained write shows, and all others.
#[test]
fn caches_of_single_bit_cells_are_found_and_not_invented() {
    let (mut right, mut shown) = (0, 0);
    for seed in CARDS.start..CARDS.start + 120 {
        let card = TrueCard::random(seed);
        if card.slc.is_none() && seed % 5 > 0 {
            continue;
        }
        let findings = card.probe(&[Part::Slc], None).expect("the card is probed");
        let shows = card.slc.is_some_and(|slc| slc.shows());
        let verdict = card.verdicts(&findings).get("slc_cache").map(|(verdict, _)| *verdict);
        assert_ne!(verdict, Some(Verdict::Wrong), "card {seed}: {:?}", findings.parameters["slc_cache"]);
        // More noise hides more of them; cards that fold in every pause have no fast part.
        if shows && card.level < 2 {
            shown += 1;
            right += usize::from(verdict == Some(Verdict::Right));
        }
    }
    assert!(right * 10 >= shown * 7 && shown >= 4, "{right} of {shown}");
}

#[test]
fn a_probe_repeats_itself() {
    let card = TrueCard::random(3);
    assert_eq!(card.probe(&[], None), card.probe(&[], None));
}

#[test]
fn fakes_are_found_and_honest_cards_are_not_called_fake() {
    for seed in 1000..1010 {
        for card in [TrueCapacity::fake(seed), TrueCapacity::honest(seed)] {
            let findings = card.probe().expect("the card is probed");
            let (value, is_exact) = card.verdict(&findings);
            assert!(is_exact, "{seed}, {}: {value:?} of {:?}", card.kind(), card.real_bytes);
            let is_called_fake = findings.remarks.iter().any(|remark| remark.starts_with("FAKE"));
            assert_eq!(is_called_fake, card.real_bytes.is_some(), "{seed}, {}: {:?}", card.kind(), findings.remarks);
        }
    }
}

/// Budgets end a probe with what it has.
#[test]
fn a_probe_keeps_its_budgets() {
    let card = TrueCard::random(1001);
    for seconds in [1, 5, 20] {
        let findings =
            card.probe(&[], Some((emmc_units::Nanos::from_millis(seconds * 1000), 64 << 20))).expect("it is probed");
        let spent = findings.spent;
        // The last request may end later.
        assert!(spent.time_s < seconds as f64 + 1.0, "{seconds} s: {spent:?}");
        assert!(spent.written_bytes <= 64 << 20, "{spent:?}");
        assert!(findings.parameters["allocation_unit"].cannot_tell.is_some(), "{findings:?}");
    }
}
