//! `erase --area`: boot areas and general purpose partitions alone, their protection, interruptions, wrong areas.

use std::path::Path;

use emmc_port::{Approved, Consent};
use emmc_regs::Area;
use emmc_serve::block::{Block, Request};
use emmc_serve::served::{Served, ServedOptions};
use emmc_sim::command_target;
use rustix::process::{Pid, Signal, kill_process};

use crate::erase::{MIB, card, complains, erase, held};
use crate::support::{emmclab, save, scratch};

const SERIAL: &str = "0x12345678";
/// Of the general purpose partition: 17 groups of write protection, three commands.
const GP_MIB: u64 = 136;
/// What is filled and looked at, with its end: area, start, size. Unit: MiB.
const FILLED: [(Area, u64, u64); 6] = [
    (Area::User, 0, 1),
    (Area::Boot(0), 0, 4),
    (Area::Boot(1), 0, 4),
    (Area::Gp(0), 0, 1),
    (Area::Gp(0), 64, 1),
    (Area::Gp(0), GP_MIB - 1, 1),
];

fn open(card: &str) -> Served {
    Served::open(Path::new(card), ServedOptions { delays: false, dilation: 1 }).unwrap()
}

fn fill(card: &str) {
    let served = open(card);
    for (area, at, mib) in FILLED {
        let data = vec![0x5a; (mib * MIB) as usize];
        served.submit(area, Request::Write { offset: at * MIB, data: &data, through: true }).unwrap();
    }
    served.finish().unwrap();
}

/// The byte that each place of [`FILLED`] holds all over; `None`: different ones.
fn content(card: &str) -> Vec<(Area, u64, Option<u8>)> {
    let served = open(card);
    let found = FILLED.map(|(area, at, mib)| {
        let mut data = vec![0xaa; (mib * MIB) as usize];
        served.submit(area, Request::Read { offset: at * MIB, into: &mut data }).unwrap();
        (area, at, data.iter().all(|byte| *byte == data[0]).then_some(data[0]))
    });
    served.finish().unwrap();
    found.to_vec()
}

/// Checks that the places for which `is_erased` holds read as erased memory, and the others as filled.
#[track_caller]
fn expect(card: &str, is_erased: impl Fn(Area, u64) -> bool) {
    for (area, at, byte) in content(card) {
        let expected = if is_erased(area, at) { 0 } else { 0x5a };
        assert_eq!(byte, Some(expected), "{area}, MiB {at}");
    }
}

/// Plans and applies a change that is permanent.
fn apply(folder: &Path, card: &str, words: &str) {
    let plan = folder.join("plan.json").display().to_string();
    let source = format!("sim:{card}");
    let mut words = words.split(' ');
    let verb = words.next().unwrap();
    emmclab(["plan", verb, &source, "-o", &plan, "--force"].into_iter().chain(words)).exits(0);
    emmclab(["apply", &plan, card, "--permanent", SERIAL]).exits(0);
    std::fs::remove_file(folder.join("plan.before.json")).unwrap();
}

/// A small card in a folder with a general purpose partition, filled.
fn with_gp(folder: &Path) -> String {
    let card = card(folder, "card", 1, false);
    apply(folder, &card, &format!("hwpart --gp 1:{GP_MIB}MiB"));
    fill(&card);
    card
}

#[test]
fn an_area_is_erased_alone() {
    let folder = scratch("erase_areas");
    let card = with_gp(&folder);
    for (area, kind) in [
        (Area::Boot(0), "trim"),
        (Area::Boot(1), "erase"),
        (Area::Gp(0), "trim"),
        (Area::Gp(0), "secure-erase"),
        (Area::Boot(1), "secure-trim"),
        (Area::User, "discard"),
    ] {
        let done = erase(&[&card, kind, "--area", area.name(), "--destroy", "--json"]).exits(0).json();
        assert_eq!((&done["area"], &done["done"][0]["ended"]), (&area.name().into(), &"complete".into()), "{done}");
        assert_eq!(done["done"][0]["verification"]["verdict"], "obeyed", "{done}");
        let size = done["size_bytes"].as_u64().unwrap();
        assert_eq!(done["ranges"], serde_json::json!([[0, size]]), "{done}");
        let left = done["untouched"].as_array().unwrap();
        assert!(left.len() == 4 && left.iter().all(|left| !left.as_str().unwrap().starts_with(area.title())), "{done}");
        expect(&card, |other, _| other == area);
        fill(&card);
    }
    // A part of an area.
    erase(&[&card, "trim", "--area", "gp1", "--range", "64MiB:8MiB", "--destroy"]).exits(0).says(&["(gp1)"]);
    expect(&card, |area, at| area == Area::Gp(0) && at == 64);
    // The signed report names it.
    let report = folder.join("report.txt").display().to_string();
    erase(&[&card, "trim", "--area", "boot1", "--destroy", "-o", &report]).exits(0);
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("boot area 2 (boot1)") && report.contains("0 to 4194304"), "{report}");
}

#[test]
fn what_a_boot_area_supports_and_starts_is_said() {
    let folder = scratch("erase_area_list");
    let card = card(&folder, "card", 1, false);
    apply(&folder, &card, "boot --from boot2");
    let list = erase(&[&card, "--area", "boot1", "--json"]).exits(0).json();
    for kind in list["kinds"].as_array().unwrap().iter().filter(|kind| kind["kind"] != "sanitize") {
        assert!(kind["available"].is_null() && kind["why"].as_str().unwrap().contains("boot areas"), "{kind}");
    }
    assert_eq!((&list["action"], &list["size_bytes"]), (&"list".into(), &(4 * MIB).into()));
    let asked = erase(&[&card, "trim", "--area", "boot1"]).exits(4);
    assert!(asked.stderr.contains("set to boot from it") && asked.stderr.contains("boot area 2 (boot1)"), "{asked:?}");
    let other = erase(&[&card, "trim", "--area", "boot0"]).exits(4);
    assert!(!other.stderr.contains("set to boot from it"), "{other:?}");
}

#[test]
fn wrong_areas_are_one_error_each() {
    let folder = scratch("erase_area_wrong");
    let card = with_gp(&folder);
    let file = save(&folder, "image", vec![0x5a; 1 << 20]);
    let sd = folder.join("sd").display().to_string();
    emmclab(["sim", "create", &sd, "--profile", "sandisk-ultra-a1-32g"]).exits(0);
    let all = |words: &str| -> Vec<String> {
        words.replace("CARD", &card).replace("FILE", &file).replace("SD", &sd).split(' ').map(str::to_owned).collect()
    };
    for (words, code, phrase) in [
        ("CARD trim --area boot0", 4, "--destroy allows that"),
        ("CARD trim --area gp2 --destroy", 4, "has no area gp2; it has user, boot0, boot1, gp1"),
        ("CARD sanitize --area boot0 --destroy", 2, "is of the whole card"),
        ("CARD trim sanitize --area gp1 --destroy", 2, "is of the whole card"),
        ("CARD trim --area boot0 --range 0:8MiB --destroy", 4, "end behind its"),
        ("CARD erase --area boot0 --range 512KiB:4KiB --destroy", 4, "would become 524288 to 1048576"),
        ("CARD erase --area gp1 --range 1MiB:513KiB --destroy", 4, "would become 1048576 to 2097152"),
        ("CARD trim --area gp1 --partition 1 --destroy", 4, "has no partition 1"),
        ("FILE zero --area boot0 --destroy", 2, "is for an eMMC"),
        ("FILE zero --area user --destroy", 2, "is for an eMMC"),
        ("SD discard --area user --destroy", 2, "is for an eMMC"),
        ("SD --area boot0", 2, "is for an eMMC"),
    ] {
        let words = all(words);
        let run = erase(&words.iter().map(String::as_str).collect::<Vec<_>>()).exits(code);
        complains(&run, phrase);
        assert_eq!(run.stdout, "", "{words:?}");
    }
    erase(&[&card, "trim", "--area", "rpmb", "--destroy"]).exits(2);
    erase(&[&card, "trim", "--area", "gp0", "--destroy"]).exits(2);
    expect(&card, |_, _| false);
    assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 0x5a));
}

#[test]
fn a_protected_area_or_group_is_refused_before_anything_is_sent() {
    let folder = scratch("erase_area_protected");
    let card = with_gp(&folder);
    // The second group of the general purpose partition, until CMD29.
    let served = open(&card);
    let protected = served.with_card(|card, start| {
        let now = &mut start.clone();
        command_target::identify(card, now)?;
        command_target::select(card, now, Area::Gp(0))?;
        let ext_csd = command_target::ext_csd(card, now)?;
        let group = (8 * MIB / 512) as u32;
        let protect = Approved::protect_group(group, &ext_csd, Consent::REVERSIBLE).unwrap();
        command_target::send(card, now, protect)
    });
    protected.unwrap().unwrap();
    served.finish().unwrap();
    complains(&erase(&[&card, "trim", "--area", "gp1", "--destroy"]).exits(4), "bytes 8388608 to 16777216");
    expect(&card, |_, _| false);
    // Groups of another area are not concerned.
    erase(&[&card, "trim", "--area", "gp1", "--range", "64MiB:8MiB", "--destroy"]).exits(0);
    erase(&[&card, "trim", "--destroy"]).exits(0);
    expect(&card, |area, at| area == Area::User || area == Area::Gp(0) && at == 64);
    fill(&card);
    apply(&folder, &card, "wp --boot boot2 --as permanent");
    for kind in ["trim", "erase", "discard"] {
        let refused = erase(&[&card, kind, "--area", "boot1", "--destroy"]).exits(4);
        complains(&refused, "boot area 2 (boot1) is write-protected: BOOT_WP_STATUS is 0x08, permanently");
    }
    expect(&card, |_, _| false);
    erase(&[&card, "trim", "--area", "boot0", "--destroy"]).exits(0);
    expect(&card, |area, _| area == Area::Boot(0));
}

#[test]
fn an_interrupted_erase_of_an_area_is_resumed_with_the_printed_command() {
    let folder = scratch("erase_area_stopped");
    let card = with_gp(&folder);
    let words = [card.as_str(), "trim", "--area", "gp1", "--destroy", "--json"];
    let (_hold, child) = held(&folder, &words, 2);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &document["done"][0]["ended"]), (Some(1), &"stopped".into()), "{document}");
    let to = document["done"][0]["to_bytes"].as_u64().unwrap();
    assert_eq!(to, 50 * MIB, "{document}");
    expect(&card, |area, at| area == Area::Gp(0) && at * MIB < to);
    let next = document["next"][0].as_str().unwrap().strip_prefix("resume: emmclab ").unwrap();
    assert!(next.contains("--area gp1") && next.contains("--from 50MiB"), "{next}");
    emmclab(next.split(' ')).exits(0).says(&["Complete"]);
    expect(&card, |area, _| area == Area::Gp(0));
    // Killed: the same command again completes it.
    fill(&card);
    let (_hold, mut child) = held(&folder, &words, 3);
    child.kill().unwrap();
    child.wait().unwrap();
    expect(&card, |area, at| area == Area::Gp(0) && at < 100);
    erase(&words).exits(0);
    expect(&card, |area, _| area == Area::Gp(0));
}

/// A place that cannot take the report is found before; what fails later is said on standard output.
#[test]
fn nothing_is_erased_for_a_report_that_cannot_be_saved() {
    let folder = scratch("erase_reports");
    let card = folder.join("card").display().to_string();
    emmclab(["sim", "create", &card, "sim:generic-8g"]).exits(0);
    let erase = |to: &str| emmclab(["erase", &card, "trim", "--area", "boot1", "--destroy", "-o", to, "--force"]);
    let state = || std::fs::read(folder.join("card/card.state")).unwrap();
    let before = state();
    for to in [folder.join("none/report"), folder.clone()] {
        let refused = erase(&to.display().to_string()).exits(2);
        assert!(refused.stdout.is_empty() && state() == before, "{refused:?}");
    }
    let pipe = folder.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let told = erase(&pipe.display().to_string()).exits(2);
    assert!(
        told.stdout.contains("Complete: 4.0 MiB") && told.stderr.contains("nobody reads from this pipe"),
        "{told:?}"
    );
    let printed = erase("-").exits(0);
    assert!(printed.stdout.contains("Complete: 4.0 MiB") && !std::path::Path::new("-").exists(), "{printed:?}");
}
