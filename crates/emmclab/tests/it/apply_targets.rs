//! `apply` on wrong targets, without consent, twice at once, killed and stopped, and what other tools do by accident:
//! one clear error, its exit code, and nothing changed.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::hold::{Hold, with_default_signals};
use crate::support::{Run, command, emmclab, run, save, scratch};

const SERIAL: &str = "0x12345678";

/// A new card in a folder.
fn card(folder: &Path) -> String {
    let card = folder.join("card").display().to_string();
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/guest/small.toml").display().to_string();
    emmclab(["sim", "create", &card, "--profile", &profile]).exits(0);
    card
}

/// A plan for the card, saved.
fn planned(folder: &Path, card: &str, words: &str) -> String {
    let file = folder.join("plan.json").display().to_string();
    let source = format!("sim:{card}");
    let mut words = words.split(' ');
    let verb = words.next().unwrap();
    emmclab(["plan", verb, &source, "-o", &file, "--force"].into_iter().chain(words)).exits(0);
    file
}

/// The registers, as saved.
fn registers(card: &str) -> String {
    emmclab(["snapshot", &format!("sim:{card}")]).exits(0).json()["ext_csd"].as_str().unwrap().to_owned()
}

fn apply(words: &[&str]) -> Run {
    emmclab(["apply"].iter().chain(words))
}

#[track_caller]
fn complains(run: &Run, phrase: &str) {
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("emmclab: ") && last.contains(phrase), "{}: no {phrase:?} in {}", run.args, run.stderr);
}

#[test]
fn nothing_permanent_is_sent_without_the_serial_number() {
    let folder = scratch("consent");
    let card = card(&folder);
    let plan = planned(&folder, &card, "hwpart --enh-user max --wrrel off");
    let before = registers(&card);
    complains(&apply(&[&plan, &card]).exits(4), &format!("use --permanent {SERIAL}"));
    for given in ["", "yes", "0", "12345679", "305419896"] {
        complains(&apply(&[&plan, &card, "--permanent", given]).exits(4), "nothing was sent");
    }
    assert_eq!(registers(&card), before);
    assert!(!folder.join("plan.before.json").exists());
    let applied = apply(&[&plan, &card, "--permanent", SERIAL, "--json"]).exits(0).json();
    assert_eq!((&applied["ended"], &applied["standing"]["stand"]), (&"complete".into(), &"done".into()));
    // What the card was is saved, and is a source.
    let saved = folder.join("plan.before.json").display().to_string();
    assert_eq!(emmclab(["snapshot", &saved]).exits(0).json()["ext_csd"].as_str(), Some(before.as_str()));
    // A second attempt, a second layout, and the card as planned.
    complains(
        &apply(&[&plan, &card, "--permanent", SERIAL]).exits(4),
        "done: the card is as planned; nothing was sent",
    );
    emmclab(["plan", "hwpart", &format!("sim:{card}"), "--gp", "1:8MiB"]).exits(4).says(&["already partitioned"]);
    let verified = apply(&["--verify", &plan, &card, "--json"]).exits(0).json();
    assert_eq!((&verified["standing"]["stand"], &verified["user_bytes"]), (&"done".into(), &1_207_959_552.into()));
}

#[test]
fn reversible_changes_are_made_without_a_question_and_twice() {
    let folder = scratch("reversible");
    let card = card(&folder);
    let plan = planned(&folder, &card, "boot --from boot1 --ack on");
    apply(&[&plan, &card]).exits(0).says(&["done: the card is as planned"]);
    let again = apply(&[&plan, &card, "--json"]).exits(0).json();
    assert!(again["ended"].is_null() && again["sent"].as_array().unwrap().is_empty(), "{again}");
    // What a power cycle clears is done, although the card is off at the end.
    let cache = planned(&folder, &card, "cache on");
    apply(&[&cache, &card]).exits(0).says(&["done: the card is as planned", "powered off when the command ends"]);
    apply(&["--verify", &cache, &card]).exits(1).says(&["may have been done and have lapsed"]);
    let plan = planned(&folder, &card, "boot --switch");
    apply(&[&plan, &format!("sim:{card}")]).exits(0);
    let field = emmclab(["show", &format!("sim:{card}"), "--field", "PARTITION_CONFIG", "--json"]).exits(0).json();
    assert_eq!(field["fields"][0]["raw"], 0x50, "{field}");
    // The first plan is for another state of the card now.
    emmclab(["plan", "boot", &format!("sim:{card}"), "--from", "user", "-o", &plan, "--force"]).exits(0);
    apply(&[&plan, &card]).exits(0);
}

#[test]
fn wrong_targets_are_one_error_each() {
    let folder = scratch("targets");
    let card = card(&folder);
    let plan = planned(&folder, &card, "boot --from boot1");
    let file = save(&folder, "file", "");
    let empty = folder.join("empty").display().to_string();
    std::fs::create_dir(&empty).unwrap();
    for (target, code, phrase) in [
        ("/dev/mmcblk249", 3, "No such file"),
        ("mmcblk249", 3, "No such file"),
        ("/dev/mmcblk249p1", 4, "name the whole card, /dev/mmcblk249"),
        ("/dev/mmcblk249boot0", 4, "name the whole card, /dev/mmcblk249"),
        ("/dev/null", 3, "not the device of an eMMC"),
        ("/dev/no-such-device", 3, "not the device of an eMMC"),
        ("sim:generic-8g", 3, "sim create"),
        (empty.as_str(), 3, "no folder of a virtual card"),
        (file.as_str(), 3, "not a card"),
        ("no-such-file", 3, "not a card"),
    ] {
        let run = apply(&[&plan, target]).exits(code);
        complains(&run, phrase);
        assert_eq!(run.stdout, "", "{target}");
    }
    // Another card, and other values than the plan's.
    let before = registers(&card);
    let other = folder.join("other").display().to_string();
    emmclab(["sim", "create", &other, "--profile", "generic-8g"]).exits(0);
    complains(&apply(&[&plan, &other]).exits(4), "not the card of the plan: the CID is");
    complains(&apply(&["--verify", &plan, &other]).exits(4), "not the card of the plan: the CID is");
    assert_eq!(registers(&card), before);
    let switched = folder.join("switched.json").display().to_string();
    emmclab(["plan", "boot", &format!("sim:{card}"), "--from", "boot2", "-o", &switched]).exits(0);
    apply(&[&switched, &card]).exits(0);
    complains(&apply(&[&plan, &card]).exits(4), "PARTITION_CONFIG[179] 0x00 -> 0x08: the card holds 0x10");
    apply(&["--verify", &plan, &card]).exits(1).says(&["differs"]);
}

#[test]
fn what_is_no_plan_is_refused() {
    let folder = scratch("plans");
    let card = card(&folder);
    let plan = planned(&folder, &card, "hwreset enable");
    let text = std::fs::read_to_string(&plan).unwrap();
    let before = registers(&card);
    for (name, content, code) in [
        ("empty", String::new(), 2),
        ("snapshot", emmclab(["snapshot", &format!("sim:{card}")]).stdout, 2),
        ("newer", text.replace("emmclab.plan/1", "emmclab.plan/2"), 2),
        // A step that claims to be reversible, goes past byte 191, or to another register.
        ("claims", text.replace("\"one_time\": true", "\"one_time\": false"), 2),
        ("wraps", text.replace("\"offset\": 162", "\"offset\": 418"), 2),
        ("moved", text.replace("\"offset\": 162", "\"offset\": 155"), 2),
        ("mask", text.replace("\"mask\": 3", "\"mask\": 0"), 2),
        ("anonymous", text.replace("\"cid\": \"", "\"other\": \""), 2),
    ] {
        let file = save(&folder, name, content);
        let run = apply(&[&file, &card, "--permanent", SERIAL]);
        assert!(run.code == code || run.code == 4, "{name}: {run:?}");
        assert_eq!(
            run.stderr.lines().filter(|line| !line.starts_with("emmclab:   ")).count(),
            1,
            "{name}: {}",
            run.stderr
        );
    }
    // A refused plan is no plan to carry out.
    let refused = folder.join("refused.json").display().to_string();
    emmclab(["plan", "hwpart", &format!("sim:{card}"), "--enh-user", "4MiB", "-o", &refused]).exits(4);
    complains(&apply(&[&refused, &card, "--permanent", SERIAL]).exits(4), "the plan was refused");
    // A plan of registers without a CID names no card, but can be rehearsed.
    let dump = save(&folder, "dump.hex", &before);
    let nameless = folder.join("nameless.json").display().to_string();
    emmclab(["plan", "hwreset", &dump, "enable", "-o", &nameless]).exits(0);
    complains(&apply(&[&nameless, &card, "--permanent", SERIAL]).exits(4), "does not say which card it is for");
    apply(&["--rehearse", &nameless, &dump]).exits(0).says(&["done: the card is as planned"]);
    assert_eq!(registers(&card), before);
}

/// `apply` held before its `count`-th step; its folder is the test's own.
fn held(folder: &Path, plan: &str, card: &str, count: u32) -> (Hold, Child) {
    let program = command().get_program().to_owned();
    let mut apply = with_default_signals(program);
    apply.args(["apply", plan, card, "--permanent", SERIAL]).stdout(Stdio::null()).stderr(Stdio::null());
    let hold = Hold::at(&mut apply, "step", count, folder);
    let mut child = apply.spawn().unwrap();
    hold.wait(&mut child);
    (hold, child)
}

#[test]
fn two_at_once_are_one_and_a_refusal() {
    let folder = scratch("two");
    let card = card(&folder);
    let plan = planned(&folder, &card, "hwpart --enh-user 64MiB");
    let (hold, mut child) = held(&folder, &plan, &card, 2);
    complains(&apply(&[&plan, &card, "--permanent", SERIAL]).exits(4), "in use by another process; nothing was sent");
    drop(hold);
    assert!(child.wait().unwrap().success());
    apply(&["--verify", &plan, &card]).exits(0);
}

#[test]
fn a_killed_or_stopped_apply_is_told_and_completed() {
    let folder = scratch("killed");
    for step in 1..=4 {
        for signal in [Signal::KILL, Signal::TERM] {
            let _ = std::fs::remove_dir_all(folder.join("card"));
            let _ = std::fs::remove_file(folder.join("plan.before.json"));
            let card = card(&folder);
            let plan = planned(&folder, &card, "hwpart --enh-user 64MiB");
            let (_hold, mut child) = held(&folder, &plan, &card, step);
            kill_process(Pid::from_child(&child), signal).unwrap();
            let status = child.wait().unwrap();
            assert!(!status.success(), "step {step}, {signal:?}: {status}");
            let say = format!("step {step}, {signal:?}");
            // The end of the process is a power cut for the card: before the commit nothing is left.
            let standing = apply(&["--verify", &plan, &card, "--json"]).exits(1).json();
            assert_eq!(standing["standing"]["stand"], "nothing-done", "{say}: {standing}");
            apply(&[&plan, &card, "--permanent", SERIAL]).exits(0);
            apply(&["--verify", &plan, &card]).exits(0);
            assert!(folder.join("plan.before.json").exists(), "{say}");
        }
    }
}

#[test]
fn a_snapshot_that_cannot_be_saved_prevents_the_change() {
    let folder = scratch("snapshot");
    let card = card(&folder);
    let plan = planned(&folder, &card, "boot --from boot1");
    let before = registers(&card);
    let nowhere = folder.join("nowhere/before.json").display().to_string();
    complains(&apply(&[&plan, &card, "--snapshot", &nowhere]).exits(4), "--snapshot");
    let other = save(&folder, "other.json", emmclab(["snapshot", "sim:generic-8g"]).stdout);
    complains(&apply(&[&plan, &card, "--snapshot", &other]).exits(4), "is of another card");
    assert_eq!(registers(&card), before);
}

/// What mmc-utils does by accident: refused, or done right.
#[test]
fn accidents_of_other_tools_do_not_happen() {
    let folder = scratch("accidents");
    let card = card(&folder);
    let source = format!("sim:{card}");
    let digest = || -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = std::fs::read_dir(&card).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
    };
    let before = digest();
    let plan = |words: &str| {
        emmclab(["plan"].into_iter().chain(words.split(' ').map(|word| if word == "CARD" { &source } else { word })))
    };
    // `-n` writes all but the last byte: here nothing is written, whatever is planned.
    plan("hwpart CARD --enh-user max --gp 1:8MiB:enh --wrrel off").exits(0);
    plan("hwpart CARD --enh-user 50% --gp 1:8MiB:enh --wrrel off").exits(0);
    // A start inside a group; a length that is rounded; a maximum that is noticed after the sizes are written.
    plan("hwpart CARD --enh-user 4MiB:8MiB").exits(4).says(&["does not start and end on a write-protect group"]);
    plan("hwpart CARD --enh-user 0s:4MiB").exits(4).says(&["does not start and end on a write-protect group"]);
    plan("hwpart CARD --enh-user 2GiB").exits(4).says(&["more than the part allows"]);
    // An index that wraps to GP_SIZE_MULT; a commit without a word.
    plan("set CARD 400=1").exits(4).says(&["CMD6 writes bytes 0 to 191 only"]);
    plan("set CARD 155=1").exits(4).says(&["plan hwpart"]);
    plan("set CARD 512=1").exits(2);
    // Sanitize without a question; values without a meaning; a read-only byte.
    plan("set CARD SANITIZE_START=1").exits(4).says(&["starts an action"]);
    plan("set CARD RST_n_FUNCTION=3").exits(4).says(&["has no meaning"]);
    plan("set CARD PARTITION_CONFIG.BOOT_PARTITION_ENABLE=3").exits(4);
    plan("set CARD SEC_COUNT=1").exits(4);
    plan("wp CARD --user 4MiB:8MiB --as permanent").exits(4).says(&["not one of whole write-protect groups"]);
    plan("wp CARD --user 0:4GiB --as temporary").exits(4).says(&["past the user area"]);
    assert_eq!(digest(), before, "planning writes nothing");
    // One-time settings that other tools make without a question.
    for words in ["hwreset enable", "hwreset disable", "bkops --manual", "wrrel user=off"] {
        let plan = planned(&folder, &card, words);
        complains(&apply(&[&plan, &card]).exits(4), "cannot be reverted");
    }
    // Protection of groups although ERASE_GROUP_DEF is 0: set, and found.
    let plan = planned(&folder, &card, "wp --user 64MiB:16MiB --as temporary");
    apply(&[&plan, &card]).exits(0);
    apply(&["--verify", &plan, &card]).exits(0).says(&["2 temporary"]);
    let free = planned(&folder, &card, "wp --user 64MiB:16MiB --as none");
    apply(&[&free, &card]).exits(0);
    // Part by part write reliability is one plan, not one one-time write after the other.
    let plan = planned(&folder, &card, "wrrel user=off");
    apply(&[&plan, &card, "--permanent", SERIAL]).exits(0);
    let mut show = command();
    show.args(["show", &source, "--field", "WR_REL_SET", "--json"]);
    assert_eq!(run(show).exits(0).json()["fields"][0]["raw"], 0x1e);
}
