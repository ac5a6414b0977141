//! `rpmb` on virtual cards: the key once, replies that are checked, consent, interruptions, wrong targets and keys.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::keys;
use crate::support::hold::{Hold, with_default_signals};
use crate::support::{Run, command, emmclab, run, save, scratch, virtual_cards};

const SERIAL: &str = "0x12345678";
const KEY: &[u8; 32] = b"AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH";
const BLOCK: usize = 256;

/// A card in a folder, with a key file and one of another key.
struct Card {
    folder: std::path::PathBuf,
    card: String,
    key: String,
    other: String,
}

fn private(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let file = save(folder, name, content);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file
}

impl Card {
    fn new(test: &str, is_large: bool) -> Self {
        let folder = scratch(test);
        // EN_RPMB_REL_WR.
        let card = virtual_cards::in_folder(&folder, if is_large { "WR_REL_PARAM = 0x15" } else { "" });
        let [key, other] = [("key", KEY), ("other", b"XAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH")]
            .map(|(name, content)| private(&folder, name, content));
        Self { folder, card, key, other }
    }

    fn with_key(test: &str, is_large: bool) -> Self {
        let card = Self::new(test, is_large);
        card.rpmb(&["key", "CARD", "--key", "KEY", "--permanent", SERIAL]).exits(0).says(&["The key is programmed"]);
        card
    }

    /// The words with the card and its keys in them.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let word = |word: &&str| match *word {
            "CARD" => self.card.clone(),
            "KEY" => self.key.clone(),
            "OTHER" => self.other.clone(),
            word => word.to_owned(),
        };
        ["rpmb".to_owned()].into_iter().chain(words.iter().map(word)).collect()
    }

    fn rpmb(&self, words: &[&str]) -> Run {
        emmclab(self.words(words).iter().map(String::as_str))
    }

    fn counter(&self) -> u64 {
        let found = self.rpmb(&["counter", "CARD", "--key", "KEY", "--json"]).exits(0).json();
        assert_eq!(found["authenticated"], true, "{found}");
        found["counter"].as_u64().unwrap()
    }

    fn content(&self, address: usize, count: usize) -> Vec<u8> {
        let back = self.folder.join("back").display().to_string();
        let [address, count] = [address, count].map(|number| number.to_string());
        let words = ["read", "CARD", &address, &count, "-o", &back, "--force", "--key", "KEY"];
        self.rpmb(&words).exits(0).says(&["Authenticated"]);
        std::fs::read(back).unwrap()
    }

    fn save(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        save(&self.folder, name, content)
    }
}

/// Blocks of which each byte names its block.
fn blocks(count: usize, from: u8) -> Vec<u8> {
    (0..count * BLOCK).map(|at| from.wrapping_add((at / BLOCK) as u8)).collect()
}

#[track_caller]
fn complains(run: &Run, phrase: &str) {
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("emmclab: ") && last.contains(phrase), "{}: no {phrase:?} in {}", run.args, run.stderr);
    assert_eq!(run.stdout, "", "{}", run.args);
}

#[test]
fn a_key_is_programmed_once_and_with_the_serial_number_only() {
    let card = Card::new("rpmb_key", false);
    card.rpmb(&["counter", "CARD"]).exits(0).says(&["No key is programmed"]);
    card.rpmb(&["counter", "CARD", "--key", "KEY"]).exits(1).says(&["nothing can be checked"]);
    complains(&card.rpmb(&["read", "CARD", "0", "1", "-o", "-"]).exits(3), "no key is programmed");
    complains(&card.rpmb(&["key", "CARD", "--key", "KEY"]).exits(4), &format!("use --permanent {SERIAL}"));
    for given in ["", "yes", "0", "12345679"] {
        let run = card.rpmb(&["key", "CARD", "--key", "KEY", "--permanent", given]).exits(4);
        complains(&run, "nothing was sent");
    }
    card.rpmb(&["counter", "CARD"]).exits(0).says(&["No key is programmed"]);
    let done = card.rpmb(&["key", "CARD", "--key", "KEY", "--permanent", SERIAL, "--json"]).exits(0).json();
    assert_eq!((&done["has_key"], &done["counter"], &done["authenticated"]), (&true.into(), &0.into(), &true.into()));
    for key in ["KEY", "OTHER"] {
        let again = card.rpmb(&["key", "CARD", "--key", key, "--permanent", SERIAL]).exits(4);
        complains(&again, "a key is programmed already");
    }
    card.rpmb(&["counter", "CARD"]).exits(0).says(&["A key is programmed. Write counter: 0", "Not authenticated"]);
    card.rpmb(&["counter", "CARD", "--key", "OTHER"]).exits(1).says(&["the MAC of the reply is wrong"]);
    assert_eq!(card.counter(), 0);
}

#[test]
fn blocks_are_written_with_destroy_and_read_back() {
    for (test, is_large, writes) in [("rpmb_write", false, 22), ("rpmb_write_large", true, 7)] {
        let card = Card::with_key(test, is_large);
        let file = card.save("blocks", blocks(42, 1));
        complains(&card.rpmb(&["write", "CARD", "31", &file, "--key", "KEY"]).exits(4), "--destroy allows that");
        complains(
            &card.rpmb(&["write", "CARD", "31", &file, "--key", "OTHER", "--destroy"]).exits(4),
            "the MAC of the reply is wrong",
        );
        assert_eq!((card.counter(), card.content(0, 512)), (0, vec![0; 512 * BLOCK]));
        let done = card.rpmb(&["write", "CARD", "0x1f", &file, "--key", "KEY", "--destroy", "--json"]).exits(0).json();
        let [written, counter] = [&done["written_blocks"], &done["counter"]].map(|value| value.as_u64().unwrap());
        // Aligned pairs, or 32 blocks at a multiple of 32, and single blocks at the ends.
        assert_eq!((written, counter, card.counter()), (42, writes, writes), "{done}");
        let mut expected = vec![0; 512 * BLOCK];
        expected[31 * BLOCK..73 * BLOCK].copy_from_slice(&blocks(42, 1));
        assert!(card.content(0, 512) == expected, "{test}");
        // What would be lost is counted.
        let one = card.save("one", blocks(1, 9));
        let asked = card.rpmb(&["write", "CARD", "31", &one, "--key", "KEY"]).exits(4);
        assert!(asked.stderr.contains("1 of 1 blocks hold something else now"), "{}", asked.stderr);
    }
}

#[test]
fn a_read_says_what_is_proved_and_saves_nothing_else() {
    let card = Card::with_key("rpmb_read", false);
    let file = card.save("blocks", blocks(4, 1));
    card.rpmb(&["write", "CARD", "0", &file, "--key", "KEY", "--destroy"]).exits(0);
    let out = card.folder.join("out").display().to_string();
    card.rpmb(&["read", "CARD", "0", "4", "-o", &out]).exits(0).says(&["Not authenticated"]);
    assert_eq!(std::fs::read(&out).unwrap(), blocks(4, 1));
    let existing = card.rpmb(&["read", "CARD", "0", "4", "-o", &out]).exits(2);
    complains(&existing, "--force replaces it");
    let forged = card.folder.join("forged").display().to_string();
    card.rpmb(&["read", "CARD", "0", "4", "-o", &forged, "--key", "OTHER"]).exits(1).says(&["not authentic"]);
    assert!(!Path::new(&forged).exists());
    complains(&card.rpmb(&["read", "CARD", "0", "4", "-o", "-", "--key", "OTHER"]).exits(1), "the MAC of the reply");
    complains(&card.rpmb(&["read", "CARD", "0", "4", "-o", "KEY", "--force", "--key", "KEY"]).exits(4), "itself");
    assert_eq!(std::fs::read(&card.key).unwrap(), KEY);
    for [address, count, code, phrase] in [
        ["510", "3", "4", "blocks 510 to 512 end behind its 512"],
        ["0x10000", "1", "4", "end behind"],
        ["0", "0", "4", "no blocks"],
        ["65537", "1", "2", "up to 65536"],
        ["+1", "1", "2", "expected a number"],
    ] {
        let run = card.rpmb(&["read", "CARD", address, count, "-o", "-"]).exits(code.parse().unwrap());
        assert!(run.stderr.contains(phrase), "{}: {}", run.args, run.stderr);
    }
    let mut read = command();
    read.args(card.words(&["read", "CARD", "1", "2", "-o", "-", "--key", "KEY"]));
    assert_eq!(read.output().unwrap().stdout, blocks(2, 2));
}

#[test]
fn a_key_comes_from_a_file_or_standard_input_and_is_never_shown() {
    let card = Card::new("rpmb_key_forms", false);
    let digits: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut program = command();
    program.args(card.words(&["key", "CARD", "--key", "-", "--permanent", SERIAL])).stdin(Stdio::piped());
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{digits}\n").as_bytes()).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    let file = private(&card.folder, "digits", &digits);
    card.rpmb(&["counter", "CARD", "--key", &file]).exits(0).says(&["Authenticated"]);
    for (content, phrase) in [
        (&KEY[..31], "31 bytes; expected exactly 32 bytes"),
        (&[KEY, b"\n".as_slice()].concat(), "33 bytes"),
        (&digits.as_bytes()[..63], "63 bytes"),
        (digits.replace("41", "4z").as_bytes(), "character 2 is no hexadecimal digit"),
        (&[7; 4096], "at most 66 bytes"),
        (b"", "0 bytes"),
    ] {
        let file = private(&card.folder, "bad", content);
        let run = card.rpmb(&["counter", "CARD", "--key", &file]).exits(2);
        complains(&run, phrase);
        assert!(!run.stderr.contains("AAAA") && !run.stderr.contains("4141"), "{}", run.stderr);
    }
    complains(&card.rpmb(&["counter", "CARD", "--key", "/dev/zero"]).exits(2), "expected a file or a pipe");
    complains(&card.rpmb(&["counter", "CARD", "--key", "no such file"]).exits(2), "cannot read");
    let both = ["write", "CARD", "0", "-", "--key", "-", "--destroy"];
    complains(&card.rpmb(&both).exits(2), "cannot both be standard input");
    // Other users must not read it.
    std::fs::set_permissions(&card.key, PermissionsExt::from_mode(0o644)).unwrap();
    card.rpmb(&["counter", "CARD", "--key", "KEY"]).exits(0).says(&["other users can read this key (mode 0644)"]);
    let json = card.rpmb(&["counter", "CARD", "--key", "KEY", "--json"]).exits(0);
    assert!(json.json()["warnings"][0].as_str().unwrap().contains("mode 0644"));
    assert!(json.stderr.contains("warning: "), "{}", json.stderr);
    for text in [&json.stdout, &json.stderr] {
        assert!(!text.contains("AAAABBBB") && !text.contains(&digits), "{text}");
    }
}

/// `rpmb write` held at a point for the `count`-th time.
fn held(card: &Card, words: &[&str], point: &str, count: u32) -> (Hold, Child) {
    let mut write = with_default_signals(command().get_program());
    write.args(card.words(words)).stdout(Stdio::piped()).stderr(Stdio::null());
    let hold = Hold::at(&mut write, point, count, &card.folder);
    let mut child = write.spawn().unwrap();
    hold.wait(&mut child);
    (hold, child)
}

#[test]
fn a_stopped_write_says_how_many_blocks_are_written_and_is_resumed() {
    let card = Card::with_key("rpmb_stopped", false);
    let file = card.save("blocks", blocks(8, 1));
    let words = ["write", "CARD", "0", &file, "--key", "KEY", "--destroy", "--json"];
    let (_hold, child) = held(&card, &words, "step", 3);
    // Two at once: the folder is locked.
    complains(&card.rpmb(&["counter", "CARD"]).exits(4), "in use by another process; nothing was sent");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &document["ended"]), (Some(1), &"stopped".into()), "{document}");
    assert_eq!((&document["written_blocks"], card.counter()), (&4.into(), 2), "{document}");
    assert_eq!(card.content(0, 8), [blocks(4, 1), vec![0; 4 * BLOCK]].concat());
    let next = document["next"][0].as_str().unwrap().strip_prefix("resume: emmclab ").unwrap();
    emmclab(next.split(' ')).exits(0).says(&["Complete: 8 of 8 blocks"]);
    assert_eq!((card.content(0, 8), card.counter()), (blocks(8, 1), 4));
}

#[test]
fn a_killed_write_leaves_whole_writes_and_the_same_command_completes_it() {
    for (index, (point, count, done)) in [("step", 2, 1), ("written", 2, 2), ("written", 4, 4)].into_iter().enumerate()
    {
        let card = Card::with_key(&format!("rpmb_killed_{index}"), false);
        let file = card.save("blocks", blocks(8, 1));
        let words = ["write", "CARD", "0", &file, "--key", "KEY", "--destroy"];
        let (_hold, mut child) = held(&card, &words, point, count);
        child.kill().unwrap();
        child.wait().unwrap();
        // The process's end is a power cut for the card: counter and content agree.
        assert_eq!(card.counter(), done, "{point} {count}");
        let expected = [blocks(2 * done as usize, 1), vec![0; (8 - 2 * done as usize) * BLOCK]].concat();
        assert_eq!(card.content(0, 8), expected, "{point} {count}");
        card.rpmb(&words).exits(0).says(&["Complete: 8 of 8 blocks"]);
        assert_eq!((card.content(0, 8), card.counter()), (blocks(8, 1), done + 4));
    }
}

#[test]
fn a_killed_key_is_programmed_and_found() {
    let card = Card::new("rpmb_killed_key", false);
    let (_hold, mut child) = held(&card, &["key", "CARD", "--key", "KEY", "--permanent", SERIAL], "written", 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(card.counter(), 0);
}

#[test]
fn wrong_targets_are_one_error_each() {
    let card = Card::new("rpmb_targets", false);
    let empty = card.folder.join("empty").display().to_string();
    std::fs::create_dir(&empty).unwrap();
    let file = card.save("blocks", blocks(1, 1));
    for (target, code, phrase) in [
        ("/dev/mmcblk249", 3, "No such file"),
        ("/dev/mmcblk249rpmb", 3, "No such file"),
        ("mmcblk249", 3, "No such file"),
        ("/dev/mmcblk249p1", 4, "name /dev/mmcblk249rpmb"),
        ("/dev/mmcblk249boot0", 4, "name /dev/mmcblk249rpmb"),
        ("/dev/null", 3, "expected an eMMC"),
        ("sim:generic-8g", 3, "sim create"),
        (empty.as_str(), 3, "no folder of a virtual card"),
        (file.as_str(), 3, "expected an eMMC"),
        ("no-such-file", 3, "expected an eMMC"),
    ] {
        complains(&card.rpmb(&["counter", target]).exits(code), phrase);
        complains(&card.rpmb(&["read", target, "0", "1", "-o", "-"]).exits(code), phrase);
        complains(&card.rpmb(&["write", target, "0", &file, "--key", "KEY", "--destroy"]).exits(code), phrase);
        complains(&card.rpmb(&["key", target, "--key", "KEY", "--permanent", SERIAL]).exits(code), phrase);
    }
    // Files that are no whole blocks, and one larger than the RPMB.
    for (name, bytes, code, phrase) in [
        ("part", 300, 2, "whole blocks"),
        ("none", 0, 2, "whole blocks"),
        ("large", 513 * BLOCK, 4, "end behind its 512"),
    ] {
        let file = card.save(name, vec![1; bytes]);
        complains(&card.rpmb(&["write", "CARD", "0", &file, "--key", "KEY", "--destroy"]).exits(code), phrase);
    }
    let whole = card.rpmb(&["write", "CARD", "0", &file, "--key", "KEY", "--destroy"]).exits(3);
    complains(&whole, "no key is programmed");
    let past = card.rpmb(&["write", "CARD", "0", &file, "--key", "KEY", "--from", "1", "--destroy"]).exits(2);
    complains(&past, "lies behind the 1 blocks");
}

#[test]
fn secure_write_protection_is_switched_with_the_key_only() {
    let card = Card::with_key("rpmb_protect", false);
    let protect = |action: &str, key: &str| card.rpmb(&["protect", "CARD", action, "--key", key]);
    card.rpmb(&["protect", "CARD"]).exits(0).says(&["is off", "Not authenticated"]);
    complains(&card.rpmb(&["protect", "CARD", "on"]).exits(2), "--key is missing");
    protect("on", "OTHER").exits(1).says(&["is not known", "the MAC of the reply is wrong"]);
    complains(&protect("allow", "KEY").exits(4), "secure write protection is off");
    protect("on", "KEY").exits(0).says(&["is on: no host", "Write counter: 1", "Authenticated"]);
    protect("on", "KEY").exits(0).says(&["is on: no host"]);
    assert_eq!(card.counter(), 1, "what is so already is not written");
    let sim = format!("sim:{}", card.card);
    emmclab(["show", &sim, "--field", "SECURE_WP_INFO"]).exits(0).says(&["SECURE_WP_EN_STATUS"]);
    // A plan that the card refuses meanwhile says so.
    let plan = card.folder.join("plan.json").display().to_string();
    let planned = emmclab(["plan", "wp", &sim, "--boot", "both", "--as", "power-on", "-o", &plan]).exits(0);
    planned.says(&["secure write protection is on", "rpmb protect"]);
    emmclab(["apply", &plan, &card.card]).exits(1).says(&["BOOT_WP", "refused"]);
    protect("allow", "KEY").exits(0).says(&["changes are allowed until", "Write counter: 2"]);
    protect("off", "KEY").exits(0).says(&["is off", "Write counter: 3"]);
    // A card without it, and one without a key.
    let none = card.folder.join("none").display().to_string();
    emmclab(["sim", "create", &none, "sim:generic-8g"]).exits(0);
    complains(&card.rpmb(&["protect", &none]).exits(3), "no secure write protection");
    let keyless = Card::new("rpmb_protect_keyless", false);
    complains(&keyless.rpmb(&["protect", "CARD", "on", "--key", "KEY"]).exits(3), "no key is programmed");
}

#[test]
fn rpmb_documents_keep_their_keys() {
    let card = Card::with_key("rpmb_documents", false);
    let file = card.save("blocks", blocks(2, 1));
    let out = card.folder.join("out").display().to_string();
    let all = [
        card.words(&["counter", "CARD"]),
        card.words(&["read", "CARD", "0", "2", "-o", &out, "--key", "KEY"]),
        card.words(&["counter", "CARD", "--key", "OTHER"]),
        card.words(&["protect", "CARD", "on", "--key", "KEY"]),
    ];
    keys::documents("rpmb", &all);
    let mut quiet = command();
    quiet.args(card.words(&["write", "CARD", "0", &file, "--key", "KEY", "--json"]));
    let quiet = run(quiet).exits(4);
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains("emmclab.error/1"), "{quiet:?}");
    assert!(quiet.stderr.contains("the content of blocks 0 to 1 of its RPMB is lost"), "{quiet:?}");
}
