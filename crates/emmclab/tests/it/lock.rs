//! `lock` on virtual cards: status, passwords, refusals, interruptions, documents.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::keys;
use crate::support::hold::{Hold, with_default_signals};
use crate::support::{Run, command, emmclab, emmclab_with_input, run, save, scratch, virtual_cards};

const SERIAL: &str = "0x12345678";

/// A card in a folder, with the files of passwords `one` and `two`.
struct Card {
    folder: PathBuf,
    card: String,
}

impl Card {
    /// `registers`: lines that the profile gets.
    fn new(test: &str, registers: &str) -> Self {
        let folder = scratch(test);
        let card = virtual_cards::in_folder(&folder, registers);
        let this = Self { folder, card };
        this.save("one", "first secret\n");
        this.save("two", "second secret");
        this
    }

    /// A file that only its owner can read.
    fn save(&self, name: &str, content: &str) -> String {
        let file = save(&self.folder, name, content);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }

    /// The words of a command line, `CARD` and files of passwords by name.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let word = |word: &&str| match *word {
            "CARD" => self.card.clone(),
            word if self.folder.join(word).is_file() => self.folder.join(word).display().to_string(),
            word => word.to_owned(),
        };
        ["lock".to_owned()].into_iter().chain(words.iter().map(word)).collect()
    }

    fn lock(&self, words: &[&str]) -> Run {
        emmclab(self.words(words).iter().map(String::as_str))
    }

    fn is_locked(&self) -> bool {
        let run = self.lock(&["status", "CARD", "--json"]);
        let found = run.json();
        let is_locked = found["locked"].as_bool().unwrap();
        let has_password = if is_locked { true.into() } else { serde_json::Value::Null };
        assert_eq!(found["has_password"], has_password, "{found}");
        run.exits(i32::from(is_locked));
        is_locked
    }
}

const SET: [&str; 6] = ["set", "CARD", "--password", "one", "--permanent", SERIAL];

#[track_caller]
fn complains(run: &Run, phrase: &str) {
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("emmclab: ") && last.contains(phrase), "{}: no {phrase:?} in {}", run.args, run.stderr);
    assert_eq!(run.stdout, "", "{}", run.args);
    assert!(!run.stderr.contains("secret"), "{}: {}", run.args, run.stderr);
}

#[test]
fn a_password_locks_the_card_at_every_power_up_until_it_is_removed() {
    let card = Card::new("lock_good", "");
    card.lock(&["status", "CARD"])
        .exits(0)
        .says(&["The card is not locked.", "a card that is not locked does not say"]);
    assert!(!card.is_locked());
    card.lock(&SET).exits(0).says(&["The card has the password. It is not locked until the next power-up."]);
    assert!(card.is_locked());
    let status = card.lock(&["status", "CARD"]).exits(1);
    status.says(&["The card is locked", "lock off", "lock force-erase"]);
    card.lock(&["on", "CARD", "--password", "one"]).exits(0).says(&["locked already", "the password was not tried"]);
    let off = card.lock(&["off", "CARD", "--password", "one"]).exits(0);
    off.says(&[
        "The card is not locked until the next power-up.",
        "Warning: a virtual card is powered off",
        "has a password yes",
    ]);
    assert!(card.is_locked());
    // Another password, and no password.
    let wrong = card.lock(&["off", "CARD", "--password", "two"]).exits(1);
    wrong.says(&["The card did not do it.", "Reason: the password is not the card's."]);
    let replaced = ["set", "CARD", "--old", "one", "--password", "two", "--lock", "--permanent", SERIAL, "--json"];
    let replaced = card.lock(&replaced).exits(0).json();
    assert_eq!((&replaced["ended"], &replaced["locked"]), (&"done".into(), &true.into()), "{replaced}");
    assert_eq!((&replaced["was_locked"], &replaced["has_password"]), (&true.into(), &true.into()), "{replaced}");
    card.lock(&["clear", "CARD", "--password", "one"]).exits(1).says(&["the password is not the card's"]);
    card.lock(&["clear", "CARD", "--password", "two"]).exits(0).says(&["The card has no password, and is not locked."]);
    assert!(!card.is_locked());
    let none = card.lock(&["clear", "CARD", "--password", "two"]).exits(1);
    none.says(&["the password is not the card's, or the card has none"]);
    card.lock(&["off", "CARD", "--password", "two"]).exits(0).says(&["not locked. Nothing was sent"]);
    let on = card.lock(&["on", "CARD", "--password", "two"]).exits(1);
    on.says(&["the password is not the card's, or the card has none"]);
    // The standard input, with an end of line or without.
    for content in ["first secret", "first secret\r\n"] {
        let mut words = SET.to_vec();
        words[3] = "-";
        let words = card.words(&words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let run = emmclab_with_input(&words, content.as_bytes()).exits(0);
        assert!(run.stderr.is_empty() || !run.stderr.contains("secret"), "{}", run.stderr);
        card.lock(&["clear", "CARD", "--password", "one"]).exits(0);
    }
}

#[test]
fn a_forced_erase_needs_a_locked_card_and_consent() {
    let card = Card::new("lock_force", "");
    let erase = ["force-erase", "CARD", "--destroy"];
    card.lock(&erase).exits(1).says(&["the card is not locked: `erase` erases it"]);
    card.lock(&SET).exits(0);
    let without = card.lock(&["force-erase", "CARD"]).exits(4);
    complains(&without, "--destroy allows that; nothing was sent");
    assert!(without.stderr.contains("the content of the user area"), "{}", without.stderr);
    complains(&card.lock(&["force-erase", "CARD", "--destroy", "--yes-i-mean", "mmcblk0"]).exits(4), "its name is");
    assert!(card.is_locked());
    card.lock(&erase).exits(0).says(&["The card is erased, has no password, and is not locked."]);
    assert!(!card.is_locked());
}

#[test]
fn nothing_is_sent_without_the_serial_number_or_without_a_password() {
    let card = Card::new("lock_refused", "");
    let asked = card.lock(&["set", "CARD", "--password", "one"]).exits(4);
    complains(&asked, &format!("use --permanent {SERIAL}; nothing was sent"));
    for phrase in ["ELTEST, serial number 0x12345678", "only a forced erase, which loses it, unlocks the card then"] {
        assert!(asked.stderr.contains(phrase), "{phrase}: {}", asked.stderr);
    }
    for given in ["", "yes", "12345679"] {
        let run = card.lock(&["set", "CARD", "--password", "one", "--permanent", given]).exits(4);
        complains(&run, "nothing was sent");
    }
    card.save("none", "\n");
    card.save("long", "more than secret bytes");
    for (file, phrase) in
        [("none", "nothing; expected 1 to 16 bytes"), ("long", "bytes"), ("no-such-file", "No such file"), (".", ".")]
    {
        complains(&card.lock(&["set", "CARD", "--password", file, "--permanent", SERIAL]).exits(2), phrase);
        complains(&card.lock(&["off", "CARD", "--password", file]).exits(2), phrase);
    }
    for words in [
        &["set", "CARD", "--permanent", SERIAL][..],
        &["clear", "CARD"],
        &["off", "CARD", "first secret"],
        &["force-erase", "CARD", "--destroy", "--password", "one"],
        &["set", "CARD", "--password", "-", "--old", "-", "--permanent", SERIAL],
        &["CARD"],
    ] {
        card.lock(words).exits(2);
    }
    assert!(!card.is_locked());
    // A card with a password needs it.
    card.lock(&SET).exits(0);
    let mut other = SET;
    other[3] = "two";
    card.lock(&other).exits(1).says(&["The password is not set.", "it has a password, which is needed", "lock off"]);
    // Others can read it.
    let open = save(&card.folder, "open", "first secret");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let warned = card.lock(&["off", "CARD", "--password", "open", "--json"]).exits(0);
    assert!(warned.stderr.contains("other users can read this password (mode 0644)"), "{}", warned.stderr);
    assert!(warned.json()["warnings"][0].as_str().unwrap().contains("chmod 600"));
    let disabled = Card::new("lock_disabled", "USER_WP = 0x80");
    disabled.lock(&["status", "CARD"]).exits(0).says(&["passwords are switched off for ever"]);
    complains(&disabled.lock(&SET).exits(4), "switched off for ever (USER_WP); nothing was sent");
}

/// `lock` held at a point for the `count`-th time.
fn held(card: &Card, words: &[&str], point: &str, count: u32) -> (Hold, Child) {
    let mut lock = with_default_signals(command().get_program());
    lock.args(card.words(words)).stdout(Stdio::piped()).stderr(Stdio::null());
    let hold = Hold::at(&mut lock, point, count, &card.folder);
    let mut child = lock.spawn().unwrap();
    hold.wait(&mut child);
    (hold, child)
}

#[test]
fn a_stopped_or_killed_set_leaves_no_password_or_the_new_one() {
    // Points: before each request, and after it.
    for (index, (point, count, has_password)) in [
        ("step", 1, false),
        ("step", 2, true),
        ("step", 3, true),
        ("written", 1, true),
        ("written", 2, true),
        ("written", 3, true),
    ]
    .into_iter()
    .enumerate()
    {
        let card = Card::new(&format!("lock_killed_{index}"), "");
        let (_hold, mut child) = held(&card, &SET, point, count);
        // Two at once: the folder is locked.
        complains(&card.lock(&SET).exits(4), "in use by another process; nothing was sent");
        child.kill().unwrap();
        child.wait().unwrap();
        // The process's end is a power cut for the card.
        assert_eq!(card.is_locked(), has_password, "{point} {count}");
        if has_password {
            card.lock(&["off", "CARD", "--password", "one"]).exits(0);
        }
        let again = if has_password { [&SET[..], &["--old", "one"]].concat() } else { SET.to_vec() };
        card.lock(&again).exits(0);
        assert!(card.is_locked());
    }
    for (count, ended, has_password) in [(1, "stopped", false), (2, "stopped", true)] {
        let card = Card::new(&format!("lock_stopped_{count}"), "");
        let (_hold, child) = held(&card, &[&SET[..], &["--json"]].concat(), "step", count);
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &document["ended"]), (Some(1), &ended.into()), "{document}");
        assert_eq!(card.is_locked(), has_password, "{document}");
        assert!(document["next"][0].as_str().unwrap().contains("lock status"), "{document}");
    }
}

#[test]
fn wrong_targets_are_one_error_each() {
    let card = Card::new("lock_targets", "");
    let empty = card.folder.join("empty").display().to_string();
    std::fs::create_dir(&empty).unwrap();
    let file = card.folder.join("one").display().to_string();
    for (target, code, phrase) in [
        ("/dev/mmcblk249", 3, "No such file"),
        ("/dev/mmcblk249p1", 4, "name the whole card"),
        ("/dev/mmcblk249boot0", 4, "name the whole card"),
        ("/dev/null", 3, "expected /dev/mmcblkN"),
        ("sim:generic-8g", 3, "sim create"),
        (empty.as_str(), 3, "no folder of a virtual card"),
        (file.as_str(), 3, "expected /dev/mmcblkN"),
    ] {
        complains(&card.lock(&["set", target, "--password", "one", "--permanent", SERIAL]).exits(code), phrase);
        let status = card.lock(&["status", target]);
        assert!(matches!(status.code, 2..=4), "{target}: {}", status.code);
        assert_eq!(status.stdout, "", "{target}");
    }
}

#[test]
fn lock_documents_keep_their_keys() {
    let card = Card::new("lock_documents", "");
    let all = [card.words(&["status", "CARD"]), card.words(&SET), card.words(&["force-erase", "CARD", "--destroy"])];
    keys::documents("lock", &all);
    let mut quiet = command();
    quiet.args(card.words(&["set", "CARD", "--password", "one", "--json"]));
    let quiet = run(quiet).exits(4);
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains("emmclab.error/1"), "{quiet:?}");
    assert!(quiet.stderr.contains("lost: with the password, all content"), "{quiet:?}");
}
