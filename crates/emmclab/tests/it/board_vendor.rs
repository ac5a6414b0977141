//! A published walk-through of a board vendor, complete: Micron S0J56 as pSLC on an Apalis iMX8QM, and the wear,
//! capacity and endurance of the 4 GB eMMC on a Colibri iMX6.

use crate::support::cards::s0j56;
use crate::support::{Run, emmclab, save, scratch, testdata};
use serde_json::{Value, json};

fn plan(test: &str, args: &[&str]) -> Run {
    let card = save(&scratch(test), "s0j56.bin", s0j56());
    emmclab(["plan", "hwpart", &card].iter().chain(args))
}

fn health(name: &str) -> Value {
    emmclab(["health", &testdata(&format!("seeds_console/{name}")), "--json"]).exits(0).json()
}

/// The area of that name in a study's capacity.
fn area<'a>(study: &'a Value, name: &str) -> &'a Value {
    let areas = study["capacity"]["areas"].as_array().unwrap();
    areas.iter().find(|area| area["name"] == name).unwrap_or_else(|| panic!("no {name} in {areas:?}"))
}

#[test]
fn the_whole_user_area_is_more_than_can_be_enhanced() {
    let text = plan("refused", &["--enh-user", "0s:31080448s"]).exits(4);
    let text = text.says(&["refused: the request enhances more than the part allows", "1897 > 939 groups of 8 MiB"]);
    text.says(&["939 groups of 8 MiB = 7512 MiB = 15384576s"]);
    let plan = plan("refused_json", &["--enh-user", "0s:31080448s", "--json"]).exits(4).json();
    assert_eq!((&plan["ok"], &plan["layout"], &plan["writes"]), (&json!(false), &json!(null), &json!([])));
    let refusal = &plan["refusals"][0];
    assert_eq!(refusal["rule"], "enh-too-large");
    let evidence = refusal["evidence"].to_string();
    assert!(evidence.contains("1897 > 939") && evidence.contains("MAX_ENH_SIZE_MULT[159:157] is 939"), "{evidence}");
}

#[test]
fn requests_are_accepted_and_refused_as_by_u_boot() {
    for (transcript, code) in [("check_fail", 4), ("check_ok", 0)] {
        let path = testdata(&format!("seeds_console/uboot_hwpartition_{transcript}_imx8qm.txt"));
        let session = std::fs::read_to_string(path).unwrap();
        let command = session.lines().next().unwrap();
        let sectors = command.split_whitespace().rev().nth(1).unwrap();
        assert!(command.ends_with(&format!("mmc hwpartition user enh 0 {sectors} check")), "{command}");
        plan(transcript, &["--enh-user", &format!("0s:{sectors}s")]).exits(code);
    }
}

#[test]
fn max_is_15384576_sectors() {
    let plan = plan("max_json", &["--enh-user", "max", "--wrrel", "on", "--json"]).exits(0).json();
    assert_eq!((&plan["ok"], &plan["refusals"]), (&json!(true), &json!([])));
    let layout = &plan["layout"];
    for (key, sectors) in
        [("enh_user_start_sectors", 0), ("enh_user_sectors", 15_384_576), ("user_sectors", 15_384_576)]
    {
        assert_eq!(layout[key], sectors, "{key}");
    }
    assert_eq!(layout["gp_sectors"], json!([0, 0, 0, 0]));
    let writes = |offset: u64| {
        let all = plan["writes"].as_array().unwrap();
        let write = all.iter().find(|write| write["offset"] == offset);
        let write = write.unwrap_or_else(|| panic!("no write of {offset} in {all:?}"));
        (write["old"].as_u64().unwrap(), write["new"].as_u64().unwrap(), write["one_time"].as_bool().unwrap())
    };
    assert_eq!(writes(175), (0, 1, false), "ERASE_GROUP_DEF");
    let groups = writes(140).1 + (writes(141).1 << 8) + (writes(142).1 << 16);
    assert_eq!((groups, writes(140).2), (939, true), "ENH_SIZE_MULT");
    assert_eq!(writes(156), (0, 1, true), "PARTITIONS_ATTRIBUTE");
    assert_eq!(writes(155), (0, 1, true), "PARTITION_SETTING_COMPLETED");
}

#[test]
fn max_is_explained_in_words() {
    let text = plan("max", &["--enh-user", "max", "--wrrel", "on"]).exits(0);
    text.says(&[
        "939 groups of 8 MiB = 7512 MiB = 15384576s",
        "user 7512 MiB 7876902912 15384576 939 enhanced, write reliability on",
        "boot1 32256 KiB 33030144 64512",
        "rpmb 4 MiB 4194304 8192",
        "14.8 GiB of user area become 7.3 GiB",
        "mmc hwpartition user enh 0 15384576 wrrel on check",
        "mmc hwpartition user enh 0 15384576 wrrel on complete",
        "mmc enh_area set -y 0 7692288 /dev/mmcblkN",
        "Nothing has been sent to the card",
        "switch the card's power off and on",
    ]);
}

#[test]
fn sizes_before_and_after_match_u_boot() {
    for (when, bytes, enhanced) in
        [("before", 31_080_448_u64 * 512, json!(null)), ("after", 15_384_576 * 512, json!(true))]
    {
        let transcript = testdata(&format!("seeds_console/uboot_mmc_info_{when}_imx8qm.txt"));
        let study = emmclab(["study", &transcript, "--json"]).exits(0).json();
        let user = area(&study, "user");
        let bound = |key: &str| user["size"][key].as_u64().unwrap();
        assert!((bound("min_bytes")..=bound("max_bytes")).contains(&bytes), "{when}: {user}");
        assert_eq!(user["enhanced"], enhanced, "{when}");
        for boot in ["boot1", "boot2"] {
            assert_eq!(area(&study, boot)["size"]["bytes"], 33_030_144, "{when}");
        }
        assert_eq!(area(&study, "rpmb")["size"]["bytes"], 4 << 20, "{when}");
    }
}

#[test]
fn the_study_offers_the_plan() {
    let card = save(&scratch("study"), "s0j56.bin", s0j56());
    let study = emmclab(["study", &card, "--json"]).exits(0).json();
    let options = &study["hw_partition"];
    assert_eq!((&options["partitionable"], &options["group_bytes"]), (&json!(true), &json!(8 << 20)));
    let max = &options["max_enhanced"];
    assert_eq!((&max["enhanced_groups"], &max["user_after_bytes"]), (&json!(939), &json!(7_876_902_912_u64)));
    assert_eq!(max["user_before_bytes"], 15_913_189_376_u64);
    emmclab(["study", &card, "--full"])
        .exits(0)
        .says(&["possible pSLC 7512 MiB (939 groups)", "14.8 GiB -> about 7.3 GiB"]);
}

#[test]
fn wear_matches_mmc_utils() {
    let health = health("extcsd_health.txt");
    let used =
        |life: &str| [&health[life]["used_lower_percent"], &health[life]["used_upper_percent"]].map(Value::as_u64);
    assert_eq!((used("life_a"), used("life_b")), ([Some(10), Some(20)], [Some(0), Some(10)]));
    assert_eq!((&health["pre_eol"]["raw"], &health["pre_eol"]["text"]), (&json!(1), &json!("normal")));
    let head = emmclab(["show", &testdata("seeds_console/extcsd_head_rev.txt"), "--field", "EXT_CSD_REV", "--json"]);
    assert_eq!(head.exits(0).json()["fields"][0]["raw"], 7);
    let text = emmclab(["health", &testdata("seeds_console/extcsd_health.txt")]).exits(0);
    text.says(&["10 % to 20 % of life used (type A cells), 0 % to 10 % (type B cells)", "PRE_EOL_INFO normal"]);
}

#[test]
fn spare_and_bad_blocks_match_emmcparm() {
    let of = |name: &str, group: &str, reading: &str| {
        let health = health(name);
        let all = health["vendor"][0][group].as_array().unwrap();
        let found = all.iter().find(|one| one["name"] == reading).unwrap_or_else(|| panic!("no {reading} in {all:?}"));
        assert!(found["source"].as_str().unwrap().starts_with("emmcparm, "), "{found}");
        found["value"].as_f64().unwrap()
    };
    assert_eq!(of("emmcparm_spare_block.txt", "spares", "spare_blocks_total"), 72.0);
    assert_eq!(of("emmcparm_spare_block.txt", "spares", "spare_used_percent"), 0.0);
    assert_eq!(of("emmcparm_bad_block.txt", "bad_blocks", "initial_bad_blocks"), 0.0);
    assert_eq!(of("emmcparm_bad_block.txt", "bad_blocks", "later_bad_blocks"), 0.0);
    let text = emmclab(["health", &testdata("seeds_console/emmcparm_spare_block.txt")]).exits(0);
    text.says(&["spare blocks total 72 blocks", "spare used percent 0.00 %"]);
}

#[test]
fn erase_counts_match_emmcparm() {
    let counts = health("emmcparm_erase_count.txt");
    let figures = |area: &str| {
        let areas = counts["vendor"][0]["areas"].as_array().unwrap();
        let found = areas.iter().find(|one| one["area"] == area).unwrap_or_else(|| panic!("no {area} in {areas:?}"));
        ["min", "max", "average"].map(|figure| found[figure]["value"].as_u64().unwrap())
    };
    assert_eq!(figures("global"), [1, 1689, 619]);
    assert_eq!(figures("enhanced"), [1, 687, 567]);
    assert_eq!(figures("mlc"), [1, 1689, 1441]);
    let blocks = &health("emmcparm_sect_count.txt")["vendor"][0]["blocks"];
    let blocks = blocks.as_array().unwrap().iter().map(|one| (one["block"].as_u64(), one["erases"].as_u64()));
    let mut blocks: Vec<_> = blocks.map(|(block, erases)| (block.unwrap(), erases.unwrap())).collect();
    blocks.sort_unstable();
    assert_eq!(blocks, [(49, 1689), (74, 1689), (95, 1689), (96, 1654)]);
}

#[test]
fn capacity_matches_the_print_of_linux() {
    let file = |tool: &str| testdata(&format!("seeds_console/{tool}_colibri-imx6s.txt"));
    let (fdisk, lsblk, df) = (file("fdisk"), file("lsblk"), file("df"));
    let study = emmclab(["study", &fdisk, "--with", &lsblk, "--with", &df, "--json"]).exits(0).json();
    assert_eq!(area(&study, "user")["size"]["bytes"], 3_850_371_072_u64);
    for boot in ["boot1", "boot2"] {
        assert_eq!(area(&study, boot)["size"]["bytes"], 16_777_216, "{boot}");
    }
    let table = &study["capacity"]["tables"][0];
    assert_eq!((&table["disk"], &table["unpartitioned_bytes"]), (&json!("mmcblk0"), &json!(4 << 20)));
    let slots = table["slots"].as_array().unwrap().iter();
    let slots: Vec<_> =
        slots.map(|slot| (&slot["name"], &slot["start_sectors"], &slot["bytes"], &slot["mount"])).collect();
    // 128 cylinders of 64 sectors before the first partition, 512 in it, then the rest.
    assert_eq!(
        slots,
        [
            (&json!(null), &json!(0), &json!(4 << 20), &json!(null)),
            (&json!("mmcblk0p1"), &json!(128 * 64), &json!(16_777_216), &json!("/media/mmcblk0p1")),
            (&json!("mmcblk0p2"), &json!(640 * 64), &json!(3_829_399_552_u64), &json!("/")),
        ]
    );
    let filesystems = study["capacity"]["filesystems"].as_array().unwrap();
    let of = |mount: &str| filesystems.iter().find(|one| one["mount"] == mount).unwrap();
    // df counts the partition without the filesystem's overhead.
    let root = of("/");
    assert_eq!((&root["partition"], &root["bytes"]), (&json!("mmcblk0p2"), &json!(3_615_352_u64 * 1024)));
    assert_eq!(root["overhead_bytes"], 3_829_399_552_u64 - 3_615_352 * 1024);
    assert_eq!(of("/media/mmcblk0p1")["overhead_bytes"], 16_777_216 - 16_116 * 1024);
    assert_eq!(filesystems.len(), 2, "tmpfs is not on the card");
}

#[test]
fn the_sequence_of_files_does_not_change_the_capacity() {
    let files = ["fdisk", "lsblk", "df"].map(|tool| testdata(&format!("seeds_console/{tool}_colibri-imx6s.txt")));
    let capacity = |order: [usize; 3]| {
        let [a, b, c] = order.map(|index| files[index].as_str());
        let study = emmclab(["study", a, "--with", b, "--with", c, "--json"]).exits(0).json();
        let user = area(&study, "user")["size"]["bytes"].clone();
        (user, study["capacity"]["filesystems"].clone(), study["capacity"]["tables"][0]["unpartitioned_bytes"].clone())
    };
    let first = capacity([0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(capacity(order), first, "{order:?}");
    }
}

#[test]
fn endurance_of_the_raw_flash_is_computed() {
    let health = testdata("seeds_console/extcsd_health.txt");
    let args = ["health", &health, "--blocks", "1024", "--cycles", "3000"];
    let endurance = &emmclab(args.iter().chain(&["--json"])).exits(0).json()["endurance"];
    assert_eq!((&endurance["raw_bytes"], &endurance["block_bytes"]), (&json!(12_884_901_888_000_u64), &json!(4 << 20)));
    emmclab(args).exits(0).says(&["1024 blocks of 4 MiB, 3000 cycles each", "12000 GiB", "12884901888000 bytes"]);
    let halved = emmclab(args.iter().chain(&["--write-amplification", "2", "--json"])).exits(0).json();
    assert_eq!(halved["endurance"]["host_bytes"], 6_442_450_944_000_u64);
}

#[test]
fn write_reliability_matches_the_switch_commands() {
    let file = |state: &str| testdata(&format!("seeds_console/wrrel_{state}_colibri-imx6s.txt"));
    emmclab(["study", &file("off")])
        .exits(1)
        .says(&["Write reliability is off for the user area", "WR_REL_SET[167] = 0x1e"]);
    for (state, code) in [("off", 1), ("on", 0)] {
        let study = emmclab(["study", &file(state), "--json"]).exits(code).json();
        let mut rows = study["configuration"]["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["name"] == "write reliability of the user area").unwrap();
        assert_eq!(row["value"], state, "{row}");
    }
}
