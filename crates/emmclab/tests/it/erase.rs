//! `erase`: what is there, consent, ranges, verification, interruptions, wrong targets, signed reports.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::hold::{Hold, with_default_signals};
use crate::support::loops::{Loop, succeeds};
use crate::support::{Run, command, emmclab, run, save, scratch, skip, testdata};

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn erase(words: &[&str]) -> Run {
    emmclab(["erase"].iter().chain(words))
}

#[track_caller]
pub(crate) fn complains(run: &Run, phrase: &str) {
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("emmclab: ") && last.contains(phrase), "{}: no {phrase:?} in {}", run.args, run.stderr);
}

/// A small card in a folder whose first `mib` MiB hold content; `deaf`: it accepts and ignores trims.
pub(crate) fn card(folder: &Path, name: &str, mib: u64, deaf: bool) -> String {
    let card = folder.join(name).display().to_string();
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/guest/small.toml");
    let text = std::fs::read_to_string(small).unwrap();
    let text = if deaf { text.replacen("[ftl]\n", "[ftl]\ntrim_frees = false\n", 1) } else { text };
    let profile = save(folder, &format!("{name}.toml"), text);
    emmclab(["sim", "create", &card, "--profile", &profile]).exits(0);
    let image = save(folder, &format!("{name}.image"), vec![0x5a; (mib * MIB) as usize]);
    emmclab(["clone", &image, "-o", &format!("sim:{card}"), "--destroy"]).exits(0);
    card
}

/// The content of the first `mib` MiB of a card.
fn content(folder: &Path, card: &str, mib: u64) -> Vec<u8> {
    let (clone, image) = (folder.join("read.clone"), folder.join("read.image"));
    let _ = std::fs::remove_file(&image);
    let [clone, image] = [&clone, &image].map(|path| path.to_str().unwrap());
    emmclab(["clone", &format!("sim:{card}"), "-o", clone, "--force"]).exits(0);
    emmclab(["restore", clone, image]).exits(0);
    let mut content = vec![0; (mib * MIB) as usize];
    std::fs::File::open(image).unwrap().read_exact_at(&mut content, 0).unwrap();
    content
}

#[test]
fn without_a_kind_nothing_is_sent_and_all_is_explained() {
    let folder = scratch("erase_list");
    let card = card(&folder, "card", 1, false);
    let before = content(&folder, &card, 1);
    let list = erase(&[&card, "--json"]).exits(0).json();
    let has =
        |index: usize| (list["kinds"][index]["kind"].as_str().unwrap(), list["kinds"][index]["available"].clone());
    assert_eq!(list["action"], "list");
    for (index, kind) in ["discard", "trim", "erase", "secure-trim", "secure-erase", "sanitize"].iter().enumerate() {
        assert_eq!(has(index), (*kind, true.into()), "{list}");
    }
    erase(&[&card]).exits(0).says(&["recoverable: all of it, perhaps", "nothing of what was unmapped before", "RPMB"]);
    assert_eq!(content(&folder, &card, 1), before);
    // Saved registers: a part of version 4.41 has neither discard nor sanitize.
    let old = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let list = erase(&[&old, "--json"]).exits(0).json();
    let kinds = list["kinds"].as_array().unwrap();
    assert!(kinds.iter().all(|kind| kind["why"].is_string() && kind["recoverable"].is_string()), "{list}");
    complains(&erase(&[&old, "trim", "--destroy"]).exits(3), "not supported");
}

#[test]
fn nothing_is_erased_without_destroy_or_beside_the_range() {
    let folder = scratch("erase_consent");
    let card = card(&folder, "card", 8, false);
    let before = content(&folder, &card, 8);
    complains(&erase(&[&card, "trim"]).exits(4), "--destroy allows that");
    let quiet = erase(&[&card, "trim", "--json"]).exits(4);
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains("emmclab.error/1"), "{quiet:?}");
    assert!(quiet.stderr.contains("--destroy allows that"), "{quiet:?}");
    complains(&erase(&[&card, "trim", "--range", "0:4GiB", "--destroy"]).exits(4), "end behind its");
    complains(
        &erase(&[&card, "trim", "--range", "1MiB:2MiB", "--range", "2MiB:2MiB", "--destroy"]).exits(4),
        "overlap",
    );
    complains(&erase(&[&card, "trim", "--partition", "1", "--destroy"]).exits(4), "has no partition 1");
    complains(&erase(&[&card, "erase", "--range", "4KiB:4MiB", "--destroy"]).exits(4), "whole units of");
    complains(&erase(&[&card, "zero", "--destroy"]).exits(3), "has no zero");
    complains(&erase(&[&card, "sanitize", "--range", "0:1MiB", "--destroy"]).exits(2), "is of the whole card");
    assert_eq!(content(&folder, &card, 8), before);
    let ranges = ["--range", "1MiB:1MiB", "--range", "4MiB:2MiB"];
    for kind in ["discard", "trim", "erase", "secure-trim", "secure-erase"] {
        let words: Vec<&str> = [card.as_str(), kind, "--destroy", "--json"].into_iter().chain(ranges).collect();
        let done = erase(&words).exits(0).json();
        assert_eq!(
            (&done["done"][0]["ended"], &done["done"][0]["erased_bytes"]),
            (&"complete".into(), &(3 * MIB).into())
        );
        let after = content(&folder, &card, 8);
        for (index, byte) in after.iter().enumerate() {
            let mib = index as u64 / MIB;
            let expected = if mib == 1 || mib == 4 || mib == 5 { 0 } else { 0x5a };
            assert_eq!(*byte, expected, "{kind}: byte {index}");
        }
    }
    let all = erase(&[&card, "trim", "sanitize", "--destroy", "--json"]).exits(0).json();
    assert_eq!(
        (&all["done"][0]["verification"]["verdict"], &all["done"][1]["ended"]),
        (&"obeyed".into(), &"complete".into())
    );
    assert!(content(&folder, &card, 8).iter().all(|byte| *byte == 0));
}

#[test]
fn a_card_that_ignores_it_is_named() {
    let folder = scratch("erase_deaf");
    let card = card(&folder, "card", 8, true);
    for kind in ["discard", "trim"] {
        let done = erase(&[&card, kind, "--range", "0:8MiB", "--destroy"]).exits(1);
        done.says(&["accepted and ignored", "read as before", "Recoverable: what reads as before"]);
    }
    assert!(content(&folder, &card, 8).iter().all(|byte| *byte == 0x5a));
}

#[test]
fn protected_groups_are_refused_before_anything_is_sent() {
    let folder = scratch("erase_protected");
    let card = card(&folder, "card", 24, false);
    let plan = folder.join("plan.json").display().to_string();
    let source = format!("sim:{card}");
    emmclab(["plan", "wp", &source, "--user", "8MiB:8MiB", "--as", "permanent", "-o", &plan]).exits(0);
    emmclab(["apply", &plan, &card, "--permanent", "0x12345678"]).exits(0);
    complains(&erase(&[&card, "trim", "--destroy"]).exits(4), "are write-protected");
    assert!(content(&folder, &card, 24).iter().all(|byte| *byte == 0x5a));
    erase(&[&card, "trim", "--range", "16MiB:8MiB", "--destroy"]).exits(0);
}

/// `erase` held before its `count`-th chunk.
pub(crate) fn held(folder: &Path, words: &[&str], count: u32) -> (Hold, Child) {
    let mut erase = with_default_signals(command().get_program());
    erase.arg("erase").args(words).stdout(Stdio::piped()).stderr(Stdio::null());
    let hold = Hold::at(&mut erase, "step", count, folder);
    let mut child = erase.spawn().unwrap();
    hold.wait(&mut child);
    (hold, child)
}

#[test]
fn an_interrupted_erase_says_how_far_it_came_and_is_resumed() {
    let folder = scratch("erase_stopped");
    let card = card(&folder, "card", 200, false);
    let words = [card.as_str(), "trim", "--range", "0:190MiB", "--destroy", "--json"];
    let (_hold, child) = held(&folder, &words, 3);
    // Two at once: the folder is locked.
    complains(&erase(&[&card, "trim", "--destroy"]).exits(4), "in use by another process; nothing was sent");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &document["done"][0]["ended"]), (Some(1), &"stopped".into()), "{document}");
    let to = document["done"][0]["to_bytes"].as_u64().unwrap();
    assert!(to > 0 && to < 190 * MIB, "{document}");
    let after = content(&folder, &card, 200);
    assert!(after[..to as usize].iter().all(|byte| *byte == 0), "all below byte {to} is erased");
    assert!(after[to as usize..].iter().all(|byte| *byte == 0x5a), "nothing behind byte {to} is");
    // The printed command resumes it.
    let next = document["next"][0].as_str().unwrap().strip_prefix("resume: emmclab ").unwrap();
    let resumed = emmclab(next.split(' ')).exits(0);
    resumed.says(&["Complete"]);
    let after = content(&folder, &card, 200);
    assert!(after[..190 << 20].iter().all(|byte| *byte == 0) && after[190 << 20..].iter().all(|byte| *byte == 0x5a));
}

#[test]
fn a_killed_erase_leaves_a_card_that_the_next_one_completes() {
    let folder = scratch("erase_killed");
    for count in 1..=2 {
        let name = format!("card{count}");
        let card = card(&folder, &name, 130, false);
        let (_hold, mut child) = held(&folder, &[&card, "erase", "--range", "0:128MiB", "--destroy"], count);
        child.kill().unwrap();
        child.wait().unwrap();
        let after = content(&folder, &card, 130);
        assert!(after.iter().all(|byte| [0, 0x5a].contains(byte)));
        assert!(after[128 << 20..].iter().all(|byte| *byte == 0x5a), "what was not named is there");
        erase(&[&card, "erase", "--range", "0:128MiB", "--destroy"]).exits(0);
        assert!(content(&folder, &card, 130)[..128 << 20].iter().all(|byte| *byte == 0));
        std::fs::remove_dir_all(&card).unwrap();
    }
}

#[test]
fn wrong_targets_are_one_error_each() {
    let folder = scratch("erase_targets");
    let empty = folder.join("empty").display().to_string();
    std::fs::create_dir(&empty).unwrap();
    for (target, code, phrase) in [
        ("/dev/mmcblk249", 3, "no such device"),
        ("mmcblk249", 3, "no such device"),
        ("/dev/mmcblk249p1", 4, "name the whole card, /dev/mmcblk249"),
        ("/dev/mmcblk249boot0", 4, "name the whole card, /dev/mmcblk249"),
        ("/dev/null", 3, "expected a block device"),
        ("/dev/no-such-device", 3, "no such device"),
        ("sim:generic-8g", 3, "sim create"),
        (empty.as_str(), 3, "no folder of a virtual card"),
        ("no-such-file", 3, "no such device or file"),
    ] {
        for words in [[target, "trim", "--destroy"], [target, "discard", "--destroy"]] {
            let run = erase(&words).exits(code);
            complains(&run, phrase);
            assert_eq!(run.stdout, "", "{target}");
        }
    }
}

#[test]
fn files_are_erased_by_holes_and_zeros() {
    let folder = scratch("erase_file");
    let file = save(&folder, "image", vec![0x5a; 4 << 20]);
    complains(&erase(&[&file, "trim", "--destroy"]).exits(3), "it has discard, zero");
    complains(&erase(&[&file, "zero"]).exits(4), "--destroy");
    erase(&[&file, "zero", "--range", "1MiB:1MiB", "--destroy"]).exits(0).says(&["Complete"]);
    let after = std::fs::read(&file).unwrap();
    assert!(after.iter().enumerate().all(|(at, byte)| (*byte == 0) == (at >> 20 == 1)));
}

#[test]
fn loop_devices_are_erased_by_the_kernel_after_their_name() {
    let Some(device) = Loop::new("erase_loop", 32 << 20) else { return };
    let fill = || {
        let target = std::fs::OpenOptions::new().write(true).open(&device.path).unwrap();
        target.write_all_at(&vec![0x5a; 32 << 20], 0).unwrap();
        target.sync_all().unwrap();
    };
    let read = || std::fs::read(&device.path).unwrap();
    fill();
    complains(&erase(&[&device.path, "discard", "--destroy"]).exits(4), "--yes-i-mean");
    complains(&erase(&[&device.path, "discard", "--destroy", "--yes-i-mean", "loop99"]).exits(4), "its name is");
    complains(&erase(&[&device.path, "trim", "--destroy", "--yes-i-mean", device.name()]).exits(3), "has no trim");
    assert!(read().iter().all(|byte| *byte == 0x5a));
    erase(&[&device.path]).exits(0).says(&["BLKZEROOUT"]);
    for kind in ["discard", "zero"] {
        fill();
        let words = [&device.path, kind, "--range", "8MiB:8MiB", "--destroy", "--yes-i-mean", device.name(), "--json"];
        let done = erase(&words).exits(0).json();
        assert_eq!(done["done"][0]["verification"]["verdict"], "obeyed", "{done}");
        assert!(read().iter().enumerate().all(|(at, byte)| (*byte == 0) == (at >> 23 == 1)), "{kind}");
    }
    // A partition by its number, and never by its own name.
    let script = save(&scratch("erase_table"), "table", "label: gpt\nstart=2048, size=4096\nstart=8192, size=4096\n");
    let partition = format!("{}p1", device.path);
    if succeeds("sh", &["-c", &format!("sfdisk -q {} < {script}", device.path)]) {
        if Path::new(&partition).exists() {
            complains(&erase(&[&partition, "discard", "--destroy"]).exits(4), "name the whole disk");
        }
        let words = [&device.path, "zero", "--partition", "2", "--destroy", "--yes-i-mean", device.name(), "--json"];
        let done = erase(&words).exits(0).json();
        assert_eq!(done["ranges"], serde_json::json!([[4 * MIB, 6 * MIB]]), "{done}");
        complains(&erase(&[&device.path, "zero", "--partition", "7", "--destroy"]).exits(4), "has no partition 7");
    } else {
        skip("no sfdisk");
    }
    // In use: mounted.
    let point = scratch("erase_mounted");
    if succeeds("mkfs.ext4", &["-q", "-F", &device.path]) && succeeds("mount", &[&device.path, point.to_str().unwrap()])
    {
        let refused = erase(&[&device.path, "discard", "--destroy", "--yes-i-mean", device.name()]);
        assert!(succeeds("umount", &[point.to_str().unwrap()]));
        complains(&refused.exits(4), "in use");
        erase(&[&device.path]).exits(0).says(&["ext2/3/4"]);
    }
    assert!(device.is_free());
}

#[test]
fn a_report_is_signed_and_the_signature_holds() {
    let folder = scratch("erase_signed");
    let card = card(&folder, "card", 2, false);
    let path = |name: &str| folder.join(name).display().to_string();
    let (report, json, key) = (path("report.txt"), path("report.json"), path("key"));
    let done = erase(&[&card, "trim", "sanitize", "--destroy", "-o", &report]).exits(0);
    let line = done.words();
    assert!(line.contains("ssh-keygen -Y sign -f KEY -n emmclab-erase"), "{line}");
    complains(&erase(&[&card, "trim", "--destroy", "-o", &report]).exits(2), "exists already");
    erase(&[&card, "trim", "--destroy", "-o", &json]).exits(0);
    let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(saved["schema"], "emmclab.erase/1");
    let text = std::fs::read_to_string(&report).unwrap();
    for phrase in ["0x12345678", "Complete", "Recoverable", "began", "2415919104"] {
        assert!(text.contains(phrase), "no {phrase} in {text}");
    }
    assert!(text.is_ascii(), "{text}");
    if !succeeds("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "tester", "-f", &key]) {
        return skip("no ssh-keygen");
    }
    assert!(succeeds("ssh-keygen", &["-Y", "sign", "-f", &key, "-n", "emmclab-erase", &report]));
    let public = std::fs::read_to_string(format!("{key}.pub")).unwrap();
    let signers = save(&folder, "signers", format!("tester {public}"));
    let verify = |file: &str| {
        let line = format!("ssh-keygen -Y verify -f {signers} -I tester -n emmclab-erase -s {report}.sig < {file}");
        succeeds("sh", &["-c", &line])
    };
    assert!(verify(&report));
    let forged = save(&folder, "forged.txt", text.replace("Complete", "complete"));
    assert!(!verify(&forged));
}

#[test]
fn documents_keep_their_keys() {
    let folder = scratch("erase_keys");
    let card = card(&folder, "card", 2, false);
    let registers = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let all = [vec!["erase", &card], vec!["erase", &registers], vec!["erase", &card, "trim", "sanitize", "--destroy"]];
    crate::keys::documents("erase", &all.map(|words| words.into_iter().map(str::to_owned).collect()));
}

#[test]
fn nobody_without_permission_erases() {
    let Some(device) = Loop::new("erase_permission", 4 << 20) else { return };
    let mut erase = std::process::Command::new("setpriv");
    erase.args(["--reuid", "65534", "--clear-groups"]).arg(command().get_program());
    erase.args(["erase", &device.path, "discard", "--destroy", "--yes-i-mean", device.name()]);
    if !succeeds("setpriv", &["--reuid", "65534", "--clear-groups", "true"]) {
        return skip("no setpriv");
    }
    let refused = run(erase);
    assert!(refused.code == 3 || refused.code == 126 || refused.code == 127, "{refused:?}");
    assert_eq!(refused.stdout, "");
}
