//! A board's /sys and /proc, copied to another machine.

use crate::support::{emmclab, testdata};
use serde_json::json;

#[test]
fn list_names_every_card_once() {
    let board = testdata("sysfs/board");
    let cards = emmclab(["list", "--sysroot", &board, "--json"]).exits(0).json()["cards"].take();
    let cards = cards.as_array().unwrap();
    let brief: Vec<_> =
        cards.iter().map(|card| (&card["device"], &card["kind"], &card["name"], &card["size_bytes"])).collect();
    assert_eq!(
        brief,
        [
            (&json!("/dev/mmcblk0"), &json!("emmc"), &json!("BJNB4R"), &json!(31_268_536_320_u64)),
            (&json!("/dev/mmcblk1"), &json!("sd"), &json!("SD16G"), &json!(15_718_154_240_u64)),
        ]
    );
    assert_eq!(cards[0]["mounted"], json!(["/boot", "/"]));
    assert_eq!((&cards[0]["life_time_a"], &cards[1]["life_time_a"]), (&json!(6), &json!(null)));
    let text = emmclab(["list", "--sysroot", &board]).exits(0);
    text.says(&["/dev/mmcblk0 eMMC BJNB4R Samsung", "50-60 %", "/dev/mmcblk1 SD SD16G", "unknown /media/my card"]);
}

#[test]
fn show_has_the_registers_of_emmc_and_sd() {
    let board = testdata("sysfs/board");
    for (card, kind, registers) in [
        ("mmcblk0", "emmc", ["CID", "CSD", "EXT_CSD"].as_slice()),
        ("/dev/mmcblk0", "emmc", &["CID", "CSD", "EXT_CSD"]),
        ("mmcblk0p1", "emmc", &["CID", "CSD", "EXT_CSD"]),
        ("mmcblk0boot1", "emmc", &["CID", "CSD", "EXT_CSD"]),
        ("mmcblk1", "sd", &["CID", "CSD", "SCR", "SSR"]),
    ] {
        let document = emmclab(["show", "--sysroot", &board, card, "--json"]).exits(0).json();
        assert_eq!(document["kind"], kind, "{card}");
        for register in registers {
            let fields = document["fields"].as_array().unwrap();
            assert!(fields.iter().any(|field| field["register"] == *register), "{card}: no {register}");
        }
    }
    let field = emmclab(["show", "--sysroot", &board, "mmcblk0", "--field", "SEC_COUNT", "--raw"]).exits(0);
    assert_eq!(field.stdout, format!("{:#010x}\n", 31_268_536_320_u64 / 512));
}

#[test]
fn a_card_absent_from_the_tree_is_reported() {
    let board = testdata("sysfs/board");
    let run = emmclab(["show", "--sysroot", &board, "mmcblk5"]).exits(2);
    assert_eq!(run.stderr, format!("emmclab: mmcblk5: cannot read: no such card; {board} has mmcblk0, mmcblk1\n"));
}

#[test]
fn study_reads_partitions_mounts_and_the_host() {
    let board = testdata("sysfs/board");
    let study = emmclab(["study", "--sysroot", &board, "mmcblk0", "--json"]).json();
    let slots = study["capacity"]["tables"][0]["slots"].as_array().unwrap();
    let mounted: Vec<_> = slots.iter().filter(|slot| !slot["name"].is_null()).map(|slot| &slot["mount"]).collect();
    assert_eq!(mounted, [&json!("/boot"), &json!("/")]);
    assert_ne!(study["health"]["host_link"]["severity"], "unknown");
    assert_eq!(study["identity"]["product_name"], "BJNB4R");
}

#[test]
fn values_of_the_last_probe_are_reported_as_old() {
    let old = testdata("sysfs/old-kernel");
    let run = emmclab(["health", "--sysroot", &old, "mmcblk0"]);
    assert!(run.code == 0 || run.code == 1, "{run:?}");
    run.says(&["last probe"]);
}
