//! Commands to a live card: reads only, and vendor reads only for a maker that is known to support them.

use crate::support::cards::{emmc_cid, s0j56};
use crate::support::save;
use crate::support::shim::{DEVICE, LiveCard};

const OPENED: &str = "open /dev/mmcblk249 O_RDONLY";
const EXT_CSD: &str = "CMD8 read arg=0x00000000 blksz=512 blocks=1 flags=0xb5";
const STATUS: &str = "CMD13 read arg=0x00010000 blksz=0 blocks=0 flags=0x15";

fn worn() -> [u8; 512] {
    let mut worn = s0j56();
    (worn[267], worn[268], worn[269]) = (1, 0x02, 0x01);
    // The host uses every feature of the part: no finding.
    worn[185] = 3;
    worn
}

fn vendor_read(argument: u32) -> String {
    format!("CMD56 read arg={argument:#010x} blksz=512 blocks=1 flags=0xb5")
}

#[test]
fn every_command_sends_cmd8_and_cmd13_only() {
    let Some(card) = LiveCard::new("verbs", worn(), [0x44; 512]) else { return };
    let saved = card.folder().join("snapshot.json").to_str().unwrap().to_owned();
    let page = card.folder().join("report.html").to_str().unwrap().to_owned();
    for (args, code) in [
        (vec!["show", DEVICE], 0),
        (vec!["show", "mmcblk249", "--json"], 0),
        (vec!["snapshot", DEVICE, "-o", &saved], 0),
        (vec!["health", DEVICE], 0),
        (vec!["check", DEVICE], 0),
        (vec!["study", DEVICE], 0),
        (vec!["study", DEVICE, "-o", &page], 0),
        (vec!["plan", "hwpart", DEVICE, "--enh-user", "max", "--wrrel", "on"], 0),
        (vec!["plan", "hwpart", DEVICE, "--enh-user", "0s:31080448s"], 4),
        (vec!["diff", DEVICE, &saved], 1),
    ] {
        // Reports as HTML are left out of a board's binary.
        if args.contains(&page.as_str()) && !cfg!(feature = "html") {
            continue;
        }
        let (run, log) = card.run(&args);
        assert!(run.code == code || run.args.starts_with("diff"), "{run:?}");
        assert_eq!(log, [OPENED, EXT_CSD, STATUS], "{}", run.args);
    }
    let (run, log) = card.run(&["list"]);
    assert!(run.code == 0 && log.is_empty(), "{run:?} {log:?}");
}

#[test]
fn vendor_health_of_micron_is_four_reads() {
    let Some(card) = LiveCard::new("micron", worn(), [0x44; 512]) else { return };
    let cid = save(card.folder(), "cid", emmc_cid(0x13, b"S0J56 "));
    for verb in ["health", "study"] {
        let (run, log) = card.run(&[verb, DEVICE, "--with", &cid, "--vendor-health"]);
        assert_eq!(run.code, 0, "{run:?}");
        let mut expected = vec![OPENED.to_owned(), EXT_CSD.into(), STATUS.into(), OPENED.into()];
        expected.extend([0x11, 0x21, 0x23, 0x25].map(vendor_read));
        assert_eq!(log, expected, "{verb}");
    }
    let (run, log) = card.run(&["health", DEVICE, "--with", &cid]);
    assert!(run.code == 0 && log == [OPENED, EXT_CSD, STATUS], "not asked for, yet {log:?}");
}

#[test]
fn an_echo_of_the_ext_csd_is_no_vendor_health() {
    let Some(card) = LiveCard::new("echo", worn(), worn()) else { return };
    let cid = save(card.folder(), "cid", emmc_cid(0x13, b"S0J56 "));
    let (run, _) = card.run(&["health", DEVICE, "--with", &cid, "--vendor-health", "--json"]);
    let health = run.exits(0).json();
    assert_eq!(health["vendor"], serde_json::json!([]));
    let refused = health["vendor_refused"].as_array().unwrap();
    assert!(!refused.is_empty() && refused.iter().all(|one| one["refusal"] == "ext-csd-echo"), "{refused:?}");
}

#[test]
fn vendor_health_of_hynix_is_cmd8_with_an_argument() {
    let Some(card) = LiveCard::new("hynix", worn(), [0x44; 512]) else { return };
    let cid = save(card.folder(), "cid", emmc_cid(0x90, b"HBG4e\x05"));
    let (run, log) = card.run(&["health", DEVICE, "--with", &cid, "--vendor-health"]);
    assert_eq!(run.code, 0, "{run:?}");
    let asked = "CMD8 read arg=0x53454852 blksz=512 blocks=1 flags=0xb5";
    assert_eq!(log, [OPENED, EXT_CSD, STATUS, OPENED, asked]);
}

#[test]
fn a_report_that_needs_a_write_is_not_requested() {
    let Some(card) = LiveCard::new("others", worn(), [0x44; 512]) else { return };
    for (manufacturer_id, name) in
        [(0x15, b"8GME4R"), (0x45, b"DG4016"), (0x11, b"016G70"), (0x9b, b"Y0S128"), (0x00, b"ABCDEF")]
    {
        let cid = save(card.folder(), "cid", emmc_cid(manufacturer_id, name));
        let (run, log) = card.run(&["health", DEVICE, "--with", &cid, "--vendor-health"]);
        assert_eq!(log, [OPENED, EXT_CSD, STATUS], "{manufacturer_id:#x}");
        let reason = format!("read commands alone give no report for manufacturer {manufacturer_id:#04x}");
        run.exits(0).says(&[&reason]);
    }
    // Without a CID the maker is unknown.
    let (run, log) = card.run(&["health", DEVICE, "--vendor-health"]);
    assert_eq!(log, [OPENED, EXT_CSD, STATUS]);
    run.exits(0).says(&["vendor health: not read, because the manufacturer of the card is unknown"]);
}

#[test]
fn without_permission_health_is_unknown() {
    let Some(mut card) = LiveCard::new("denied", worn(), [0x44; 512]) else { return };
    card.settings.push(("EMMC_SHIM_DENY", "1".into()));
    let (run, log) = card.run(&["health", DEVICE]);
    assert_eq!(log, [OPENED, EXT_CSD]);
    run.exits(3).says(&["Operation not permitted", "needs CAP_SYS_RAWIO"]);
    let (run, _) = card.run(&["check", DEVICE]);
    assert_eq!(run.stdout.lines().count(), 1);
    run.exits(3).says(&["EMMC UNKNOWN - "]);
}

#[test]
fn no_file_is_saved_to_a_card_device() {
    let Some(card) = LiveCard::new("output", worn(), [0x44; 512]) else { return };
    let source = save(card.folder(), "s0j56.bin", s0j56());
    for args in [
        &["snapshot", &source, "-o", DEVICE] as &[&str],
        &["snapshot", &source, "--force", "-o", DEVICE],
        &["plan", "hwpart", &source, "--enh-user", "max", "-o", DEVICE],
    ] {
        let (run, log) = card.run(args);
        let run = run.exits(4);
        assert!(run.stderr.starts_with("emmclab: /dev/mmcblk249: is a block device and "), "{run:?}");
        assert_eq!((run.stdout.as_str(), log), ("", vec![]), "{args:?}");
    }
}
