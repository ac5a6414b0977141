//! Card scripts: every file of `tests/scripts` is a dialogue with a card: commands and expected responses.
//!
//! # The format
//! One step a line; `#` starts a comment. Numbers of commands are decimal, everything else is hexadecimal.
//!
//! | line | meaning |
//! |---|---|
//! | `profile NAME` | which card, from `tests/scripts/profiles/NAME.toml`; first line, absent: `sector` |
//! | `no data` | the card keeps no data (plain simulation); second line |
//! | `identify` | CMD0, CMD1 until the card is ready, CMD2, CMD3, CMD7: the card is in `tran` at address 1 |
//! | `CMD6 03B30100 -> R1b 00000900` | a command and its response, as a word |
//! | `CMD13 00010000 -> R1 tran SWITCH_ERROR` | a response in words: the state, then every bit but READY_FOR_DATA |
//! | `CMD17 0 -> none` | no response |
//! | `CMD2 0 -> R2 *` | any value; `R2 fe014e*` starts so |
//! | `CMD8 0 -> R1 tran, read 200 x 1` | data follows: direction, bytes a block, blocks (`inf`: until CMD12) |
//! | `CMD13! 0` | the command arrives with a wrong checksum and gets no response |
//! | `data 01 00*1ff -> ok` | a block to the card: `ok`, `busy` (taken, and the card is busy), `rejected`, `ignored`; or nothing |
//! | `data! 00*200 -> rejected` | a block with a wrong checksum |
//! | `data @5 -> ok` | 512 bytes of pattern 5; patterns differ |
//! | `expect 00*200`, `expect @5`, `expect nothing` | the next data of the card |
//! | `expect ~2 0b` | the next block has these bytes at its byte 2 |
//! | `wait`, `wait 5ms` | until the card is no longer busy; for this time |
//! | `start`, `took > 5ms`, `took < 5ms` | the time of the steps since `start` |
//! | `state tran` | the state; `none`: no state |
//! | `ext_csd[179] == 1`, `ext_csd[212..216] == 00100000`, `ext_csd[246] & 3 == 1` | bytes as CMD8 would return them |
//! | `power off`, `power on`, `reset` | power, RST_n |
//! | `cut N` | power is lost at the Nth program or erase from now |
//! | `spoil 10` | the flash page that holds this sector of the user area stops reading |
//! | `repeat N` ... `end` | steps repeated N times; N is decimal; `$` in an argument or pattern is the round, from 0 |
//!
//! Time passes between steps: 10 microseconds each.

use crate::harness;
use std::path::PathBuf;

use emmc_regs::CardKind;
use emmc_regs::r1::R1;

fn scripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

#[test]
fn every_script_passes() {
    play_all(false);
}

/// Whatever survives power survives in an image too.
#[test]
fn every_script_passes_with_a_restored_image_at_each_power_off() {
    play_all(true);
}

fn play_all(through_images: bool) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(scripts())
        .expect("the scripts are there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "script"))
        .collect();
    paths.sort();
    let only = std::env::var("SCRIPT").unwrap_or_default();
    let mut faults = Vec::new();
    let mut count = 0;
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(&only) {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(path).expect("a readable script");
        if let Err(fault) = harness::run(&scripts().join("profiles"), &text, through_images) {
            faults.push(format!("{name}:{fault}"));
        }
    }
    assert!(faults.is_empty(), "{} of {count} scripts fail:\n{}", faults.len(), faults.join("\n"));
    println!("{count} scripts");
    assert!(count > 0, "no script is called {only}");
    assert!(count >= 150 || !only.is_empty(), "{count} scripts are fewer than the 150 that there were");
}

/// Bits that the card never sets: all its faults are those of the flash, and streams were removed from the standard.
const NEVER_TOLD: [&str; 3] = ["CC_ERROR", "UNDERRUN", "OVERRUN"];

#[test]
fn every_status_bit_occurs_in_a_script() {
    let is_script = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "script");
    let paths =
        std::fs::read_dir(scripts()).expect("the scripts are there").filter_map(|entry| Some(entry.ok()?.path()));
    let texts: Vec<String> = paths.filter(is_script).filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    // READY_FOR_DATA is compared in responses written as a word.
    let silent = |name: &str| name == "READY_FOR_DATA" || NEVER_TOLD.contains(&name);
    for bit in R1::defined(CardKind::Emmc).iter().filter(|bit| !silent(bit.name)) {
        let told = |text: &String| text.lines().any(|line| line.contains("-> R1") && line.contains(bit.name));
        assert!(texts.iter().any(told), "no script expects {}", bit.name);
    }
}

#[test]
fn a_wrong_script_fails_and_names_its_line() {
    for (text, fault) in [
        (
            "identify\nCMD13 10000 -> R1 stby",
            "2: CMD13 10000: expected R1 stby, found R1 tran READY_FOR_DATA (00000900)",
        ),
        ("identify\nCMD13 10000 -> R1 00000901", "2: CMD13 10000: expected R1 00000901, found R1 tran READY_FOR_DATA"),
        ("identify\n\next_csd[192] == 7", "3: ext_csd[192]: expected 07, found 08"),
        ("identify\nCMD17 0 -> R1 tran\nexpect @1", "3: expected 512 bytes, first other byte 0: "),
        ("identify\nstate stby", "2: expected state stby, found tran"),
        ("identify\nCMD99", "2: "),
        ("identfy", "1: no such step"),
        ("repeat 3\nidentify", "1: repeat without end"),
    ] {
        let found = harness::run(&scripts().join("profiles"), text, false).expect_err(text);
        assert!(found.starts_with(fault), "{text:?}: {found:?} does not start with {fault:?}");
    }
}
