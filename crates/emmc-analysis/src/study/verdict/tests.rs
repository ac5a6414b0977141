use emmc_port::{CardData, Format};
use emmc_regs::ext_csd::ExtCsd;

use super::super::{StudyOptions, study};
use super::*;

/// An eMMC 5.1 with these registers set: offset, width, value.
fn card(registers: &[(u16, u16, u64)]) -> CardData {
    let mut csd = ExtCsd::from_bytes([0; 512]);
    csd.set_uint(192, 1, 8);
    for &(offset, width, value) in registers {
        csd.set_uint(offset, width, value);
    }
    let mut card = CardData::new("card.hex", Format::ExtCsdHex);
    card.ext_csd = Some(csd);
    card
}

fn verdict_of(registers: &[(u16, u16, u64)]) -> Verdict {
    study(&card(registers), &StudyOptions::default()).verdict
}

#[test]
fn the_verdict_takes_the_more_worn_cells_and_names_the_others() {
    let health = |a, b, eol| verdict_of(&[(268, 1, a), (269, 1, b), (267, 1, eol)]).health;
    assert_eq!(health(1, 1, 1).text, "good: 0 % to 10 % of rated life used; reserved blocks normal");
    assert_eq!(
        health(1, 9, 1).text,
        "notice: 80 % to 90 % of rated life used (type B; type A: 0 % to 10 %); reserved blocks normal"
    );
    let past = health(11, 0, 3);
    assert_eq!(past.severity, Severity::Critical);
    assert!(past.text.starts_with("critical: past 100 % of rated life used (type A; type B is not known)"), "{past:?}");
    assert_eq!(health(0, 0, 0).severity, Severity::Unknown);
}

#[test]
fn losses_at_a_power_cut_follow_the_registers() {
    let safety = |cache_on: u64, wr_rel: u64| {
        verdict_of(&[(249, 4, 512 * 8), (33, 1, cache_on), (167, 1, wr_rel), (166, 1, 4)]).safety
    };
    let best = safety(0, 0x1f);
    assert_eq!(
        (best.severity, best.text.as_str()),
        (Severity::Good, "a power cut loses the write in progress, nothing older")
    );
    let words = "cache off, WR_REL on, reliable write enhanced, power-off notice off";
    assert_eq!(best.evidence.as_deref(), Some(words));
    let cached = safety(1, 0x1f);
    assert!(cached.severity == Severity::Notice && cached.text.contains("512 KiB of cached writes"), "{cached:?}");
    let worst = safety(1, 0);
    assert!(worst.severity == Severity::Warning && worst.text.contains("may damage older data"), "{worst:?}");
    let nothing = study(&CardData::new("cid", Format::RegisterHex), &StudyOptions::default()).verdict.safety;
    assert_eq!(nothing.severity, Severity::Unknown);
}

#[test]
fn the_verdict_has_one_or_two_commands() {
    for (life, wr_rel, wr_rel_param) in [(1, 0x1f, 0), (9, 0, 1), (11, 0, 1)] {
        let todo =
            verdict_of(&[(268, 1, life), (269, 1, 1), (267, 1, 1), (167, 1, wr_rel), (166, 1, wr_rel_param)]).todo;
        assert!((1..=COMMANDS_MAX).contains(&todo.len()), "{todo:?}");
        assert!(todo.iter().all(|command| command.command.contains("card.hex")), "{todo:?}");
    }
}

#[test]
fn measured_values_are_not_listed_as_unknown() {
    let unknown = |options: &StudyOptions| {
        let list = study(&card(&[]), options).verdict.cannot_tell;
        list.into_iter().map(|one| one.what).collect::<Vec<_>>()
    };
    assert!(unknown(&StudyOptions::default()).contains(&"speed".to_owned()));
    let speed = Some(Answer::new(Severity::Good, "reads 200 MB/s"));
    let measured = Measured { speed, findings: Vec::new() };
    assert!(!unknown(&StudyOptions { measured, ..StudyOptions::default() }).contains(&"speed".to_owned()));
}

#[test]
fn the_mode_in_use_and_the_possible_one_are_told_apart() {
    // HS_TIMING 1 is High Speed or DDR52; DEVICE_TYPE 0x57 offers HS400.
    let mut slow = card(&[(196, 1, 0x57), (185, 1, 1)]);
    slow.host.ios.insert("timing spec".into(), "1 (mmc high-speed)".into());
    let setup = study(&slow, &StudyOptions::default()).verdict.setup.text;
    assert!(setup.starts_with("runs in High Speed, could run HS400"), "{setup}");
}

#[test]
fn what_comes_before_a_command_is_said_with_it() {
    let options = StudyOptions {
        source: Some("saved-input".into()),
        before: Some("first save the input as saved-input".into()),
        ..StudyOptions::default()
    };
    let todo = study(&card(&[(268, 1, 1)]), &options).verdict.todo;
    assert!(todo.iter().all(|command| command.why.starts_with("first save the input as saved-input; ")), "{todo:?}");
}
