//! Random virtual cards with known parameters: what the probe finds of them. More cards: `cargo xtask probe-truth`.
#![cfg(feature = "truth")]

use emmc_port::{TargetKind, TargetShape};
use emmc_probe::truth::{TrueCapacity, TrueCard, Verdict};
use emmc_probe::{Confidence, Part, ProbeSuite, Spent};
use emmc_workload::{Options, Suite};

/// Cards of the test, by their seeds.
const CARDS: std::ops::Range<u64> = 1000..1024;

#[test]
fn values_of_high_confidence_are_true() {
    let (mut right, mut wrong, mut sure_and_wrong) = (0, Vec::new(), Vec::new());
    for seed in CARDS {
        let card = TrueCard::random(seed);
        let findings = card.probe(&[], None).expect("the card is probed");
        let verdicts = card.verdicts(&findings);
        for name in ["allocation_unit", "open_units", "open_units_random", "mapping_class", "page"] {
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
    assert!(right >= 19 * wrong.len() && right >= 80, "{right} right; wrong: {wrong:?}");
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

/// The same cards without and with a part that is another card.
#[test]
fn parts_that_differ_are_found_and_not_invented() {
    let mut right = [0, 0];
    for seed in CARDS {
        let card = TrueCard::random(seed);
        for card in [card.clone(), card.uneven()] {
            let findings = card.probe(&[Part::Regions], None).expect("the card is probed");
            let verdicts = card.verdicts(&findings);
            for (name, right) in ["regions", "fat_region"].into_iter().zip(&mut right) {
                let Some((verdict, _)) = verdicts.get(name) else { continue };
                assert_ne!(*verdict, Verdict::Wrong, "card {seed}, {:?}: {:?}", card.part, findings.parameters[name]);
                *right += usize::from(*verdict == Verdict::Right);
            }
        }
    }
    // A part of a slower card on most, and one for FATs on the others.
    assert!(right[0] >= 30 && right[1] >= 22, "{right:?}");
}

/// Cards with open units, which merge only when written, and the same cards, which also do so while they rest.
#[test]
fn merges_in_pauses_are_found_and_not_invented() {
    let mut right = [0, 0];
    for seed in CARDS.start..CARDS.start + 72 {
        let card = TrueCard::random(seed);
        // Any pause is long enough for a card that works in pauses, so that noise hides its merges.
        if card.level > 0 && seed % 3 > 0 {
            continue;
        }
        for (card, right) in [card.clone(), card.idling()].into_iter().zip(&mut right) {
            let findings = card.probe(&[Part::Idle], None).expect("the card is probed");
            let verdict = card.verdicts(&findings).get("idle_collection").map(|(verdict, _)| *verdict);
            assert_ne!(verdict, Some(Verdict::Wrong), "card {seed}: {:?}", findings.parameters["idle_collection"]);
            *right += usize::from(verdict == Some(Verdict::Right));
        }
    }
    assert!(right[0] >= 10 && right[1] >= 4, "{right:?}");
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

/// What is announced before a probe is an upper bound of what it does.
#[test]
fn a_probe_reads_and_writes_no_more_than_it_announces() {
    let shape = |size_bytes| TargetShape {
        name: "card".into(),
        kind: TargetKind::Simulated,
        size_bytes,
        sector_bytes: 512,
        depth_max: 1,
        can_trim: true,
        engine: "simulated",
    };
    let check = |parts: &[Part], size_bytes, spent: Spent, what: &str| {
        let cost = ProbeSuite::new(parts.to_vec(), None).cost(&shape(size_bytes), &Options::default());
        let cost = cost.expect("the area fits");
        assert!(spent.read_bytes <= cost.read_bytes, "{what}: {spent:?}, announced {cost:?}");
        assert!(spent.written_bytes <= cost.written_bytes, "{what}: {spent:?}, announced {cost:?}");
        // And no bound that says nothing.
        assert!(cost.read_bytes < 512 << 20, "{cost:?}");
    };
    for seed in CARDS.step_by(3) {
        let card = TrueCard::random(seed);
        let spent = card.probe(&[], None).expect("the card is probed").spent;
        check(&[], card.user_bytes, spent, &format!("card {seed}"));
        for card in [TrueCapacity::fake(seed), TrueCapacity::honest(seed)] {
            let spent = card.probe().expect("the card is probed").spent;
            check(&[Part::Capacity], card.card.user_bytes, spent, &format!("{seed}, {}", card.kind()));
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
