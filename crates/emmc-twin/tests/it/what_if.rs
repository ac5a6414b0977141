//! Answers against what the simulated life and the arithmetic say.

use emmc_card::profile::Profile;
use emmc_twin::what_if::{Change, LifeStep, Question, WhatIfError};
use emmc_units::{Bytes, Size};

use crate::card::{MIB, RATED, RATED_SLC, answers, ask, lasting, lived, rate, rate_on};

#[test]
fn the_extended_years_are_those_of_a_simulated_life() {
    for random_share in [0.0, 1.0] {
        let question = rate(random_share);
        let mut profile = lasting();
        (profile.nand.native.endurance, profile.nand.native.endurance_spread) = (150, 0.1);
        let answer = &answers(&profile, &question, &[])[0];
        assert!(answer.is_steady && answer.notes.is_empty(), "{answer:?}");
        let life = lived(&profile, &question, 1);
        let years = life.days / 365.25;
        let end = answer.years_to_end_of_life.expect("it ends");
        assert!((end / years - 1.0).abs() < 0.04, "{random_share}: {end} against {years}");
        let step = life.steps.iter().find(|step| step.register == "PRE_EOL_INFO" && step.value >= 2).expect("it warns");
        let warning = answer.years_to_pre_eol_warning.expect("it warns");
        assert!((warning * 365.25 / step.days - 1.0).abs() < 0.04, "{warning} against {}", step.days / 365.25);
    }
}

/// Small writes wear a log of few blocks first. It has no spare blocks, and the card goes on without it.
#[test]
fn a_worn_log_is_not_the_end_of_the_card() {
    let mut profile = lasting();
    let log = emmc_card::profile::shipped::named("friendlyelec-emmc-8g").unwrap().ftl.slc_cache.unwrap();
    profile.ftl.slc_cache = Some(emmc_card::profile::SlcCache { blocks: 12, ..log });
    profile.nand.slc.as_mut().unwrap().endurance = RATED_SLC;
    let question = rate_on(1.0, Size::Percent(40));
    let today = &answers(&profile, &question, &[])[0];
    assert_eq!(today.wear_register, "DEVICE_LIFE_TIME_EST_TYP_A");
    assert!(today.notes.iter().any(|note| note.starts_with("the log of small writes")), "{today:?}");
    let end = today.years_to_end_of_life.unwrap();
    assert_eq!(today.years_to_log_end, Some(end), "{today:?}");
    assert!(today.years_to_rated_erases.unwrap() > 2.0 * end, "{today:?}");
    assert!(today.years_to_read_only.is_none_or(|years| years > end), "{today:?}");
    // The register steps at the rate that the answer states, until the log is worn out: then it stands still.
    let life = lived(&profile, &question, 1);
    let steps: Vec<&LifeStep> =
        life.steps.iter().filter(|step| step.register == "DEVICE_LIFE_TIME_EST_TYP_A").collect();
    let [first, .., last] = steps[..] else { panic!("{life:?}") };
    let share_per_day = (last.used_share - first.used_share) / (last.days - first.days);
    let stated = today.wear_percent_per_day / 100.0;
    assert!((share_per_day / stated - 1.0).abs() < 0.05, "{share_per_day} and {stated} a day");
    let worn_out = life.steps.iter().find(|step| step.days > 2.0 * end * 365.25).unwrap();
    let days = worn_out.used_share / share_per_day;
    assert!((days / (end * 365.25) - 1.0).abs() < 0.05, "{days} days and {}", end * 365.25);
    assert!(life.days > 10.0 * days, "{}", life.days);
}

#[test]
fn one_bit_a_cell_is_computed_on_the_partitioned_card() {
    let question = rate_on(0.0, Size::Exact(Bytes(32 * MIB)));
    let [today, pslc] = &answers(&lasting(), &question, &["pslc=all"])[..] else { panic!("two answers") };
    assert_eq!((today.user_bytes, pslc.user_bytes, pslc.enhanced_bytes), (128 * MIB, 64 * MIB, 64 * MIB));
    let gain = pslc.life_times_today.expect("both end");
    let configured = 0.5 * f64::from(RATED_SLC) / f64::from(RATED);
    assert!((gain / configured - 1.0).abs() < 0.05, "{gain} against {configured}");
    assert_eq!(pslc.wear_register, "DEVICE_LIFE_TIME_EST_TYP_A");
    assert!(pslc.write_mb_per_s > 1.1 * today.write_mb_per_s, "{} {}", pslc.write_mb_per_s, today.write_mb_per_s);
}

#[test]
fn space_without_a_partition_is_over_provisioning_and_no_substitute_for_one_bit_a_cell() {
    let question = rate_on(1.0, Size::Percent(40));
    let found = answers(&lasting(), &question, &["unpartitioned=30%"]);
    let [today, free, pslc] = &found[..] else { panic!("one bit a cell is added: {}", found.len()) };
    assert_eq!(pslc.change, "pslc=all");
    assert!(free.write_amplification < 0.8 * today.write_amplification);
    let ratio = today.write_amplification / free.write_amplification;
    let life = free.life_times_today.expect("both end");
    assert!((life / ratio - 1.0).abs() < 0.03, "life follows amplification: {life} against {ratio}");
    assert!(pslc.life_times_today > free.life_times_today);
}

#[test]
fn cache_write_reliability_and_queue_are_the_cards_own() {
    let question = rate_on(1.0, Size::Percent(30));
    let found = answers(&lasting(), &question, &["cache=off", "cache=off,reliable=off", "cq=off", "depth=16"]);
    let [today, reliable, uncached, unqueued, deep] = &found[..] else { panic!("five answers") };
    // A durable write of 4 KiB fills a page of 16 KiB; a reliable one all pages of its word line too.
    assert!(uncached.write_amplification > 2.0 * today.write_amplification);
    assert!(reliable.write_amplification > 1.3 * uncached.write_amplification);
    assert!(uncached.write_mb_per_s < today.write_mb_per_s);
    assert!((unqueued.write_amplification / today.write_amplification - 1.0).abs() < 0.02);
    assert!(unqueued.write_mb_per_s != today.write_mb_per_s && deep.write_mb_per_s >= today.write_mb_per_s);
}

#[test]
fn a_larger_part_lives_longer() {
    let question = rate_on(0.0, Size::Percent(50));
    let [today, large] = &answers(&lasting(), &question, &["part=2x"])[..] else { panic!("two answers") };
    assert_eq!(large.user_bytes, 2 * today.user_bytes);
    let gain = large.life_times_today.expect("both end");
    assert!((gain / 2.0 - 1.0).abs() < 0.05, "{gain}");
}

#[test]
fn a_change_that_a_card_cannot_do_is_refused_before_anything_runs() {
    let refused = |profile: &Profile, question: &Question, change: &str| match ask(profile, question, &[change]) {
        Err(WhatIfError::Refused { change: of, what }) => {
            assert_eq!(of, change);
            what
        }
        found => panic!("{change}: {found:?}"),
    };
    let (mut plain, question) = (lasting(), rate_on(1.0, Size::Percent(30)));
    plain.areas.enhanced_groups_max = 0;
    assert!(refused(&plain, &question, "pslc=all").contains("MAX_ENH_SIZE_MULT is 0"));
    assert!(refused(&lasting(), &question, "pslc=65MiB").contains("the card can have 64.0 MiB"));
    assert!(refused(&lasting(), &rate(1.0), "pslc=all").contains("do not fit"));
    assert!(refused(&lasting(), &question, "unpartitioned=80%").contains("do not fit"));
    assert!(refused(&lasting(), &question, "update=4w:60MiB").contains("do not fit"));
    plain.controller.cache_bytes = 0;
    assert!(refused(&plain, &question, "cache=off").contains("no cache"));
    plain.controller.queue_depth = 0;
    assert!(refused(&plain, &question, "cq=on").contains("no command queue"));
    plain.controller.write_reliability = false;
    assert!(refused(&plain, &question, "reliable=off").contains("WR_REL_SET"));
    let both = refused(&lasting(), &question, "pslc=16MiB,unpartitioned=10%");
    assert!(both.contains("expected unpartitioned= without pslc="), "{both}");
    let never = refused(&lasting(), &question, "fs=ext4,commit=never");
    assert!(never.contains("a filesystem always commits"), "{never}");
}

#[test]
fn a_change_that_is_not_understood_says_what_is_expected() {
    for (text, expected) in [
        ("chache=off", "no such key; expected KEY=VALUE with one of pslc, reliable"),
        ("cache", "expected cache= and on or off"),
        ("cache=maybe", "on or off"),
        ("depth=0", "1 to 256"),
        ("pslc=0%", "it is nothing"),
        ("pslc=half", "half"),
        ("cq=on,cq=off", "cq is set twice"),
        ("commit=0", "1 to 86400, or never"),
        ("commit=0.4", "whole seconds"),
        ("update=4w", "WEEKSw:SIZE"),
        ("update=8:512MiB", "WEEKSw:SIZE"),
        ("part=0x", "0.1x to 64x"),
        ("part=generic-9g", "no profile"),
        ("", "no such key"),
    ] {
        let error = Change::parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
