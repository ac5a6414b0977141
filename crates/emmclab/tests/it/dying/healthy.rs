//! Healthy cards: real and virtual ones, of which nothing is named.

use std::path::Path;

use super::card::FaultyCard;
use super::reasons;
use crate::support::{emmclab, save, scratch, testdata};

/// The messages of a healthy boot, of real cards.
const LOGS: [&str; 3] = ["edison_two_cards", "g1m15n_gp", "sdcit"];

/// Virtual cards of shipped profiles, eMMC and SD, some of them used.
const PROFILES: [&str; 10] = [
    "generic-8g",
    "generic-32g@62%",
    "colibri-imx6s-4g",
    "apalis-imx8qm-16g",
    "odroid-64g",
    "generic-8g@89%",
    "sandisk-20au",
    "toshiba-7au",
    "sandisk-industrial-8g",
    "sandisk-ultra-a1-32g",
];

/// Registers of real parts.
const PARTS: [&str; 4] = [
    "ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex",
    "ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex",
    "ext_csd_raw/ac100-mmc32g/ac100-mmc32g.ext_csd.hex",
    "ext_csd_raw/aaru-64g/aaru-64g.ext_csd.hex",
];

/// Neither `trust` nor `study` with its result names anything.
#[track_caller]
fn lives(folder: &Path, source: &str, witnesses: &[&str], looked_at: &[&str]) {
    let trust = emmclab([&["trust"], witnesses, &["--json"]].concat()).exits(0);
    let document = trust.json();
    assert_eq!((reasons(&document).len(), &document["severity"]), (0, &"good".into()), "{source}: {document}");
    assert_eq!(document["witnesses"], serde_json::json!(looked_at), "{source}");
    let saved = save(folder, "trust.json", &trust.stdout);
    let [with, without] =
        [vec!["--trust", &saved], vec![]].map(|more| emmclab([&["study", source], &more[..], &["--json"]].concat()));
    assert_eq!((with.code, with.json()), (without.code, without.json()), "{source}: study says nothing of it");
    let text = emmclab(["study", source, "--trust", &saved]);
    assert!(!text.stdout.contains("TRUST") && text.stdout.contains("HEALTH"), "{source}: {}", text.stdout);
}

#[test]
fn nothing_is_named_of_ten_virtual_cards() {
    let folder = scratch("healthy");
    for (index, profile) in PROFILES.into_iter().enumerate() {
        let source = format!("sim:{profile}");
        let log = testdata(&format!("kernel_log/{}.txt", LOGS[index % LOGS.len()]));
        let looked_at = ["registers", "the kernel's log", "a probe"];
        // The content that a capacity needs is an option of its own: two probes.
        let [capacity, discard] = ["capacity", "discard"].map(|part| {
            let probe = emmclab(["probe", &source, "--write", "--only", part, "--json"]).exits(0).json();
            let found = &probe["parameters"][part];
            assert!(found["declared"][0]["agrees"] == true || found["value"] == "effective", "{source}: {found}");
            save(&folder, &format!("{part}.json"), probe.to_string())
        });
        emmclab(["trust", "--registers", &source, "--probe", &capacity])
            .exits(0)
            .says(&["What was looked at", "a probe"]);
        lives(&folder, &source, &["--registers", &source, "--log", &log, "--probe", &discard], &looked_at);
    }
}

#[test]
fn nothing_is_named_of_real_parts() {
    let folder = scratch("healthy_parts");
    for part in PARTS {
        let (source, log) = (testdata(part), testdata("kernel_log/sdcit.txt"));
        lives(&folder, &source, &["--registers", &source, "--log", &log], &["registers", "the kernel's log"]);
    }
}

/// The same tests that name faulty cards, on one without a fault.
#[test]
fn nothing_is_named_of_a_served_card() {
    let Some(card) = FaultyCard::new("healthy_served", &[]) else { return };
    let Some(mounted) = card.mount(&[]) else { return };
    let folder = scratch("healthy_served_files");
    let witnesses = card.test(&folder);
    let mut witnesses: Vec<&str> = witnesses.iter().map(String::as_str).collect();
    let looked_at = ["registers", "the kernel's log", "a test with a file"];
    lives(&folder, &card.source(), &witnesses, &looked_at);
    let kept = card.point.join("kept").display().to_string();
    let at = witnesses.iter().position(|word| *word == "--test").unwrap();
    (witnesses[at], witnesses[at + 1]) = ("--keep", &kept);
    lives(&folder, &card.source(), &witnesses, &looked_at);
    drop(mounted);
    card.served.ctl(&["cut"]);
    card.served.ctl(&["on"]);
    let _mounted = card.mount_again().expect("it was mounted before");
    witnesses[at] = "--verify";
    lives(&folder, &card.source(), &witnesses, &looked_at);
}
