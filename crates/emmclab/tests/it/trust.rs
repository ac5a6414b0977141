//! `trust`: what each witness names, and nothing of a healthy card; `advise layout`.

use serde_json::Value;

use crate::keys;
use crate::support::loops::Loop;
use crate::support::{emmclab, emmclab_with_input, save, scratch, testdata};

fn ids(document: &Value) -> Vec<&str> {
    document["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect()
}

/// The healthy card of the examples.
fn healthy() -> String {
    format!("{}/../../examples/extcsd.hex", env!("CARGO_MANIFEST_DIR"))
}

/// A saved probe with this capacity, stated as 8 GB, and this effect of a discard.
fn probe(folder: &str, agrees: bool, discard: &str) -> String {
    let text = format!(
        r#"{{"schema":"emmclab.probe/1","parameters":{{"capacity":{{"value":4000000000,"unit":"B","confidence":"high",
        "declared":[{{"source":"size","value":8000000000,"agrees":{agrees}}}],"evidence":[{{"witness":"marks","seen":"lost"}}]}},
        "discard":{{"value":"{discard}","unit":"","confidence":"low","declared":[],
        "evidence":[{{"witness":"reads","seen":"as before"}}]}}}}}}"#
    );
    save(&scratch(folder), "probe.json", text)
}

#[test]
fn a_log_names_how_a_card_dies_and_a_healthy_one_names_nothing() {
    let dying = [
        ("EXT4-fs (mmcblk0p2): Remounting filesystem read-only", "trust-read-only"),
        ("I/O error, dev mmcblk0, sector 2048 op 0x1:(WRITE) flags 0x800", "trust-writes-fail"),
        ("I/O error, dev mmcblk0, sector 2048 op 0x0:(READ) flags 0x80700", "trust-bad-region"),
        ("mmc0: Card stuck being busy! __mmc_poll_for_busy", "trust-stuck"),
        ("mmc0: tuning execution failed: -5", "trust-bus"),
    ];
    let registers = healthy();
    let args = ["trust", "--registers", &registers, "--log", "-", "--json"];
    for (line, id) in dying {
        let found = emmclab_with_input(&args, line.as_bytes()).exits(1).json();
        assert_eq!(ids(&found), [id], "{line}");
    }
    let boot = "mmc0: new HS400 MMC card at address 0001\nmmcblk0: mmc0:0001 8GTF4R 7.28 GiB\n mmcblk0: p1 p2\n";
    let found = emmclab_with_input(&args, boot.as_bytes()).exits(0).json();
    assert_eq!((ids(&found), &found["verdict"]), (vec![], &"Nothing speaks against the card".into()));
}

#[test]
fn a_copied_tree_a_probe_and_samples_are_witnesses() {
    let (registers, board) = (healthy(), testdata("sysfs/board"));
    let fake = probe("trust_fake", false, "ignored");
    let found = emmclab(["trust", "--registers", &registers, "--probe", &fake, "--json"]).exits(1).json();
    assert_eq!(ids(&found), ["trust-capacity", "trust-discards"]);
    let good = probe("trust_good", true, "effective");
    assert_eq!(
        ids(&emmclab(["trust", "--registers", &registers, "--probe", &good, "--json"]).exits(0).json()).len(),
        0
    );
    let line = |bad: u32| {
        format!(
            "{{\"schema\":\"emmclab.sample/1\",\"time\":\"2026-01-0{bad}T00:00:00Z\",\"card\":{{\"cid_hash\":\"x\"}},\"vendor\":{{\"bad_later\":{bad}}}}}\n"
        )
    };
    let history = save(&scratch("trust_history"), "samples.ndjson", line(1) + &line(7));
    let found = emmclab(["trust", "--registers", &registers, "--history", &history, "--json"]).exits(1).json();
    assert_eq!(ids(&found), ["trust-bad-blocks"]);
    let of_board = ["trust", "--sysroot", &board, "mmcblk0"];
    emmclab(of_board).exits(0).says(&["registers", "mounts"]);
    let with_all = ["trust", "--registers", &registers, "--probe", &fake, "--history", &history];
    keys::documents("trust", &[of_board.map(String::from).to_vec(), with_all.map(String::from).to_vec()]);
    let bus = r#"{"schema":"emmclab.bus/1","shown":"errors","verdict":"The bus has errors at 200 MHz","rounds":[]}"#;
    let bus = save(&scratch("trust_bus"), "bus.json", bus);
    let found = emmclab(["trust", "--registers", &registers, "--bus", &bus, "--json"]).exits(1).json();
    assert_eq!(ids(&found), ["trust-bus"]);
    emmclab(["trust", "--registers", &registers, "--bus", &fake]).exits(2);
    let wrong = emmclab(["trust", "--registers", &registers, "--history", &registers]).exits(2);
    assert!(wrong.stderr.contains("no line of emmclab.sample/1"), "{}", wrong.stderr);
}

#[test]
fn a_file_shows_what_was_lost_and_is_removed() {
    let folder = scratch("trust_file");
    let (registers, kept) = (healthy(), folder.join("kept"));
    let (place, kept) = (folder.to_str().unwrap(), kept.to_str().unwrap());
    let log = save(&scratch("trust_file_log"), "log", "");
    let test = |words: &[&str]| {
        let args = ["trust", "--registers", &registers, "--log", &log, "--test-size", "1MiB", "--json"];
        emmclab(args.iter().chain(words))
    };
    let found = test(&["--test", place]).exits(0).json();
    assert_eq!((&found["test"]["blocks"], &found["test"]["wrong"]), (&256.into(), &0.into()));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the file is removed");
    test(&["--keep", kept]).exits(0);
    test(&["--keep", kept]).exits(2);
    test(&["--verify", kept]).exits(0);
    // The second half is lost, as after a power cut of a card that lied about its cache.
    let mut bytes = std::fs::read(kept).unwrap();
    bytes[128 * 4096..].fill(0);
    std::fs::write(kept, &bytes).unwrap();
    let found = test(&["--verify", kept]).exits(1).json();
    assert_eq!((ids(&found), &found["test"]["wrong"]), (vec!["trust-lost-cache"], &128.into()));
    // A card that wraps has the later half in both places.
    test(&["--keep", &format!("{kept}2")]).exits(0);
    let mut bytes = std::fs::read(format!("{kept}2")).unwrap();
    bytes.copy_within(128 * 4096.., 0);
    std::fs::write(format!("{kept}2"), &bytes).unwrap();
    assert_eq!(ids(&test(&["--verify", &format!("{kept}2")]).exits(1).json()), ["trust-wraps"]);
}

#[test]
fn a_disk_that_is_no_card_is_judged_without_registers() {
    let Some(device) = Loop::new("trust_loop", 16 << 20) else { return };
    let log = save(&scratch("trust_loop_log"), "log", "");
    let found = emmclab(["trust", &device.path, "--log", &log, "--json"]).exits(0).json();
    assert_eq!(found["witnesses"], serde_json::json!(["mounts", "the kernel's log"]));
}

#[test]
#[cfg(feature = "twin")]
fn a_layout_follows_from_registers_or_a_probe() {
    let registers = healthy();
    let layout = emmclab(["advise", "layout", &registers, "--json"]).exits(0).json();
    let fact = |name: &str| {
        let facts = layout["facts"].as_array().unwrap().iter();
        facts.clone().find(|fact| fact["name"] == name).map(|fact| fact["bytes"].as_u64().unwrap())
    };
    let unit = fact("allocation_unit").unwrap();
    let line = layout["advice"].as_array().unwrap().iter().find(|one| one["tool"] == "genimage").unwrap();
    let offset: u64 = line["line"].as_str().unwrap().trim_start_matches("offset = ").parse().unwrap();
    assert!(offset >= 1 << 20 && offset % unit == 0 && unit >= 512 << 10, "{layout}");
    keys::documents("advise-layout", &[vec!["advise".into(), "layout".into(), registers]]);
    let probe = probe("layout_probe", true, "effective");
    let none = emmclab(["advise", "layout", "--probe", &probe]).exits(2);
    assert!(none.stderr.contains("emmclab probe --write"), "{}", none.stderr);
}
