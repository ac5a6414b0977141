//! `ffu` on virtual cards: status, good updates, refusals, failed images, interruptions, documents.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use emmc_card::card::firmware_image;
use rustix::process::{Pid, Signal, kill_process};

use crate::keys;
use crate::support::hold::{Hold, with_default_signals};
use crate::support::{Run, command, emmclab, run, save, scratch, virtual_cards};

const SERIAL: &str = "0x12345678";
const OLD: &str = "EMMCLAB1";
const NEW: &str = "EMMCLAB2";

/// A card in a folder, with an image.
struct Card {
    folder: PathBuf,
    card: String,
    image: String,
}

impl Card {
    /// `registers`: lines that the profile gets.
    fn new(test: &str, registers: &str) -> Self {
        let folder = scratch(test);
        let card = virtual_cards::in_folder(&folder, registers);
        let image = save(&folder, "image", firmware_image(*b"EMMCLAB2", &[7; 5000]));
        Self { folder, card, image }
    }

    /// The words with the card and its image in them.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let word = |word: &&str| match *word {
            "CARD" => self.card.clone(),
            "IMAGE" => self.image.clone(),
            word => word.to_owned(),
        };
        ["ffu".to_owned()].into_iter().chain(words.iter().map(word)).collect()
    }

    fn ffu(&self, words: &[&str]) -> Run {
        emmclab(self.words(words).iter().map(String::as_str))
    }

    fn firmware(&self) -> String {
        let found = self.ffu(&["CARD", "--json"]).json();
        assert_eq!(found["now"]["mode"], 0, "{found}");
        found["now"]["firmware"].as_str().unwrap().to_owned()
    }

    fn save(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        save(&self.folder, name, content)
    }
}

const UPDATE: [&str; 6] = ["CARD", "IMAGE", "--for", "fe:ELTEST", "--permanent", SERIAL];

#[track_caller]
fn complains(run: &Run, phrase: &str) {
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("emmclab: ") && last.contains(phrase), "{}: no {phrase:?} in {}", run.args, run.stderr);
    assert_eq!(run.stdout, "", "{}", run.args);
}

#[test]
fn an_update_is_installed_in_every_mode_with_operation_codes_and_without() {
    for (index, mode) in ["chunks", "stay", "open", "blocks", "blocks-stay"].into_iter().enumerate() {
        for (features, ended) in [("FFU_FEATURES = 1", "installed"), ("FFU_FEATURES = 0", "power cycle due")] {
            let card = Card::new(&format!("ffu_good_{index}_{}", &features[15..]), features);
            card.ffu(&["CARD"]).exits(0).says(&["The card takes firmware updates", OLD]);
            let mut words = UPDATE.to_vec();
            words.extend(["--mode", mode, "--json"]);
            if !mode.starts_with("blocks") {
                words.extend(["--chunk", "2KiB"]);
            }
            let done = card.ffu(&words).exits(0).json();
            assert_eq!((&done["ended"], &done["updated"]), (&ended.into(), &true.into()), "{done}");
            assert_eq!((&done["sent_bytes"], &done["image"]["size_bytes"]), (&5632.into(), &5632.into()), "{done}");
            let install_sent = ended == "installed";
            assert_eq!((&done["install_sent"], &done["mode"]), (&install_sent.into(), &mode.into()), "{done}");
            assert_eq!((&done["before"]["firmware"], &done["now"]["firmware"]), (&OLD.into(), &NEW.into()), "{done}");
            assert_eq!(card.firmware(), NEW);
            card.ffu(&["CARD", "--verify", "--for", "fe:ELTEST:EMMCLAB1"])
                .exits(0)
                .says(&["another one now: EMMCLAB2"]);
            card.ffu(&["CARD", "--verify", "--for", "fe:ELTEST:EMMCLAB2"]).exits(1).says(&["it was not updated"]);
        }
    }
}

#[test]
fn nothing_is_sent_without_the_serial_number_or_to_another_card() {
    let card = Card::new("ffu_refused", "");
    let serial = ["CARD", "IMAGE", "--for", "fe:ELTEST"];
    let asked = card.ffu(&serial).exits(4);
    complains(&asked, &format!("use --permanent {SERIAL}; nothing was sent"));
    for phrase in
        ["ELTEST, serial number 0x12345678, firmware EMMCLAB1", "5632 bytes, SHA-256 ", "in one transfer", "lost: "]
    {
        assert!(asked.stderr.contains(phrase), "{phrase}: {}", asked.stderr);
    }
    for given in ["", "yes", "12345679"] {
        complains(
            &card.ffu(&["CARD", "IMAGE", "--for", "fe:ELTEST", "--permanent", given]).exits(4),
            "nothing was sent",
        );
    }
    for (identity, phrase) in [
        ("15:ELTEST", "the card is fe:ELTEST, and --for says 15:ELTEST"),
        ("fe:ELTES", "the card is fe:ELTEST"),
        ("fe:ELTEST:EMMCLAB0", "its firmware is EMMCLAB1, and the image is for EMMCLAB0"),
    ] {
        complains(&card.ffu(&["CARD", "IMAGE", "--for", identity, "--permanent", SERIAL]).exits(4), phrase);
    }
    for (words, phrase) in [
        (&["CARD", "IMAGE"][..], "--for"),
        (&["CARD", "IMAGE", "--for", "ELTEST"], "expected MID:PNM"),
        (&["CARD", "IMAGE", "--for", "+e:ELTEST"], "expected MID:PNM"),
        (&["CARD", "IMAGE", "--for", "fe:"], "expected MID:PNM"),
        (&["CARD", "--verify", "--for", "fe:ELTEST"], "use --for MID:PNM:VERSION"),
        (&["CARD", "IMAGE", "--verify", "--for", "fe:ELTEST"], "cannot be used with"),
        (&["CARD", "IMAGE", "--for", "fe:ELTEST", "--chunk", "1MiB"], "at most 512KiB"),
        (&["CARD", "IMAGE", "--for", "fe:ELTEST", "--chunk", "4KiB", "--mode", "blocks"], "has no --chunk"),
    ] {
        let run = card.ffu(words).exits(2);
        assert!(run.stderr.contains(phrase), "{}: {}", run.args, run.stderr);
    }
    let [empty, part, large] = [("empty", 0), ("part", 700), ("large", 65_536 * 512)].map(|(name, bytes)| {
        let file = card.save(name, "");
        std::fs::File::options().write(true).open(&file).unwrap().set_len(bytes).unwrap();
        file
    });
    for (file, phrase) in [(&empty, "expected whole sectors"), (&part, "expected whole sectors"), (&large, "at most")] {
        complains(&card.ffu(&["CARD", file, "--for", "fe:ELTEST", "--permanent", SERIAL]).exits(2), phrase);
    }
    assert_eq!(card.firmware(), OLD);
    // The version as its bytes.
    let version = "fe:ELTEST:0x454d4d434c414231";
    card.ffu(&["CARD", "IMAGE", "--for", version, "--permanent", SERIAL]).exits(0);
    assert_eq!(card.firmware(), NEW);
}

#[test]
fn cards_without_updates_or_with_updates_switched_off_are_refused() {
    let without = Card::new("ffu_without", "SUPPORTED_MODES = 0");
    without.ffu(&["CARD"]).exits(0).says(&["has no firmware update in the field"]);
    complains(&without.ffu(&UPDATE).exits(3), "has no firmware update in the field");
    let disabled = Card::new("ffu_disabled", "FW_CONFIG = 1");
    disabled.ffu(&["CARD"]).exits(0).says(&["switched off for ever"]);
    complains(&disabled.ffu(&UPDATE).exits(4), "switched off for ever (FW_CONFIG); nothing was sent");
    assert_eq!((without.firmware(), disabled.firmware()), (OLD.into(), OLD.into()));
    // Sectors of 4 KiB.
    let large = Card::new("ffu_4k", "DATA_SECTOR_SIZE = 1");
    complains(&large.ffu(&UPDATE).exits(4), "whole sectors of 4096 bytes");
}

#[test]
fn an_image_with_a_fault_is_not_installed_and_a_good_one_after_it_is() {
    for (features, code, phrase) in [
        ("FFU_FEATURES = 1", 1, "FFU_STATUS is 0x11: install error"),
        ("FFU_FEATURES = 0", 1, "After a power cycle it runs EMMCLAB1, as before"),
    ] {
        let card = Card::new(&format!("ffu_fault_{}", &features[15..]), features);
        let mut content = std::fs::read(&card.image).unwrap();
        content[3000] ^= 1;
        let bad = card.save("bad", content);
        card.ffu(&["CARD", &bad, "--for", "fe:ELTEST", "--permanent", SERIAL]).exits(code).says(&[phrase]);
        card.ffu(&["CARD"]).exits(1).says(&["The last update failed: install error (0x11)", OLD]);
        let verified = card.ffu(&["CARD", "--verify", "--for", "fe:ELTEST:EMMCLAB1"]).exits(1);
        verified.says(&["The update failed: install error"]);
        card.ffu(&UPDATE).exits(0);
        card.ffu(&["CARD"]).exits(0).says(&[NEW, "success"]);
    }
}

/// `ffu` held at a point for the `count`-th time.
fn held(card: &Card, words: &[&str], point: &str, count: u32) -> (Hold, Child) {
    let mut update = with_default_signals(command().get_program());
    update.args(card.words(words)).stdout(Stdio::piped()).stderr(Stdio::null());
    let hold = Hold::at(&mut update, point, count, &card.folder);
    let mut child = update.spawn().unwrap();
    hold.wait(&mut child);
    (hold, child)
}

/// An image of 11 sectors in three chunks.
fn in_chunks(more: &[&'static str]) -> Vec<&'static str> {
    UPDATE.iter().copied().chain(["--chunk", "2KiB"]).chain(more.iter().copied()).collect()
}

#[test]
fn a_stopped_update_leaves_the_mode_and_is_repeated() {
    for (index, (mode, count, sent)) in
        [("chunks", 3, 4096), ("stay", 3, 2048), ("open", 5, 5632)].into_iter().enumerate()
    {
        let card = Card::new(&format!("ffu_stopped_{index}"), "");
        let (_hold, child) = held(&card, &in_chunks(&["--json", "--mode", mode]), "step", count);
        // Two at once: the folder is locked.
        complains(&card.ffu(&UPDATE).exits(4), "in use by another process; nothing was sent");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &document["ended"]), (Some(1), &"stopped".into()), "{document}");
        assert_eq!((&document["sent_bytes"], &document["now"]["mode"]), (&sent.into(), &0.into()), "{document}");
        assert_eq!(card.firmware(), OLD);
        let next = document["next"].as_array().unwrap().last().unwrap().as_str().unwrap();
        let next = next.strip_prefix("send all of it again: emmclab ").unwrap();
        emmclab(next.split(' ')).exits(0).says(&["it runs EMMCLAB2 instead of EMMCLAB1"]);
    }
    // What a card without operation codes has, the power cycle may install.
    let card = Card::new("ffu_stopped_without", "FFU_FEATURES = 0");
    let (_hold, child) = held(&card, &in_chunks(&[]), "step", 3);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Stopped: 4096 of 5632 bytes") && text.contains("may install what it has"), "{text}");
    assert!(text.contains("ffu ") && text.contains("--verify --for fe:ELTEST:EMMCLAB1"), "{text}");
    card.ffu(&["CARD"]).exits(1).says(&["The last update failed: download error (0x12)", OLD]);
}

#[test]
fn a_killed_update_leaves_the_old_firmware_or_the_new_and_the_same_command_completes_it() {
    // Points: before each command, and after each of its steps. The last one is behind INSTALL.
    let all = [("step", 1, OLD), ("step", 3, OLD), ("step", 4, OLD)].into_iter().chain([
        ("written", 3, OLD),
        ("written", 12, OLD),
        ("written", 13, OLD),
        ("written", 14, NEW),
    ]);
    for (index, (point, count, expected)) in all.enumerate() {
        let card = Card::new(&format!("ffu_killed_{index}"), "");
        let (_hold, mut child) = held(&card, &in_chunks(&[]), point, count);
        child.kill().unwrap();
        child.wait().unwrap();
        // The process's end is a power cut for the card.
        assert_eq!(card.firmware(), expected, "{point} {count}");
        let verify = ["CARD", "--verify", "--for", "fe:ELTEST:EMMCLAB1"];
        card.ffu(&verify).exits(if expected == NEW { 0 } else { 1 });
        let again = card.ffu(&in_chunks(&["--json"])).exits(0).json();
        // The same version again proves nothing.
        let proved = if expected == NEW { serde_json::Value::Null } else { true.into() };
        assert_eq!((card.firmware().as_str(), &again["updated"]), (NEW, &proved), "{point} {count}");
    }
    // Without operation codes all of the image is enough.
    for (index, (count, expected)) in [(10, OLD), (11, NEW), (12, NEW)].into_iter().enumerate() {
        let card = Card::new(&format!("ffu_killed_without_{index}"), "FFU_FEATURES = 0");
        let (_hold, mut child) = held(&card, &in_chunks(&[]), "written", count);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(card.firmware(), expected, "{count}");
        card.ffu(&in_chunks(&[])).exits(0);
        assert_eq!(card.firmware(), NEW, "{count}");
    }
}

#[test]
fn wrong_targets_are_one_error_each() {
    let card = Card::new("ffu_targets", "");
    let empty = card.folder.join("empty").display().to_string();
    std::fs::create_dir(&empty).unwrap();
    for (target, code, phrase) in [
        ("/dev/mmcblk249", 3, "No such file"),
        ("/dev/mmcblk249p1", 4, "name the whole card"),
        ("/dev/mmcblk249boot0", 4, "name the whole card"),
        ("/dev/null", 3, "expected /dev/mmcblkN"),
        ("sim:generic-8g", 3, "sim create"),
        (empty.as_str(), 3, "no folder of a virtual card"),
        (card.image.as_str(), 3, "expected /dev/mmcblkN"),
    ] {
        let run = card.ffu(&[target, "IMAGE", "--for", "fe:ELTEST", "--permanent", SERIAL]).exits(code);
        complains(&run, phrase);
    }
    // Registers alone say how a card stands.
    let registers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extcsd.hex").display().to_string();
    card.ffu(&[&registers]).exits(0).says(&["What the registers say"]);
    card.ffu(&["sim:generic-8g"]).exits(0).says(&["The card takes firmware updates"]);
    complains(&card.ffu(&["no-such-file"]).exits(2), "cannot read");
}

#[test]
fn ffu_documents_keep_their_keys() {
    let card = Card::new("ffu_documents", "");
    let all =
        [card.words(&["CARD"]), card.words(&UPDATE), card.words(&["CARD", "--verify", "--for", "fe:ELTEST:EMMCLAB1"])];
    keys::documents("ffu", &all);
    let mut quiet = command();
    quiet.args(card.words(&["CARD", "IMAGE", "--for", "fe:ELTEST", "--json"]));
    let quiet = run(quiet).exits(4);
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains("emmclab.error/1"), "{quiet:?}");
    assert!(quiet.stderr.contains("lost: the present firmware"), "{quiet:?}");
}
