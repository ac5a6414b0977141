//! Output of other tools for real parts: U-Boot's `mmc info`, sdmon, and the log of a partitioned part.

use crate::support::{emmclab, testdata};
use serde_json::{Value, json};

/// What `mmc info` printed of a part.
struct Info {
    file: &'static str,
    maker: &'static str,
    manufacturer_id: u8,
    oemid: Option<u16>,
    name: &'static str,
    ext_csd_rev: u8,
    user_gib: &'static str,
    user_enhanced: Option<bool>,
    boot_bytes: u64,
    rpmb_bytes: u64,
    bus_width: &'static str,
}

/// SanDisk DG403, printed by two boards.
const DG403: Info = Info {
    file: "uboot_mmc_info/sandisk-dg403-ipq/mmc_info.txt",
    maker: "SanDisk",
    manufacturer_id: 0x45,
    oemid: Some(0x100),
    name: "DG403",
    ext_csd_rev: 8,
    user_gib: "29.1",
    user_enhanced: None,
    boot_bytes: 4 << 20,
    rpmb_bytes: 4 << 20,
    bus_width: "4",
};

const INFOS: [Info; 10] = [
    Info {
        file: "uboot_mmc_info/amlogic-4fte4-mlc/mmc_info.txt",
        maker: "Samsung",
        manufacturer_id: 0x15,
        oemid: Some(0x100),
        name: "4FTE4",
        ext_csd_rev: 8,
        user_gib: "3.6",
        user_enhanced: None,
        boot_bytes: 4 << 20,
        rpmb_bytes: 512 << 10,
        bus_width: "8",
    },
    // The previous part as pSLC: half as large.
    Info {
        file: "uboot_mmc_info/brightsign-4fte4-pslc/mmc_info.txt",
        maker: "Samsung",
        manufacturer_id: 0x15,
        oemid: Some(0x100),
        name: "4FTE4",
        ext_csd_rev: 8,
        user_gib: "1.8",
        user_enhanced: Some(true),
        boot_bytes: 4 << 20,
        rpmb_bytes: 512 << 10,
        bus_width: "8",
    },
    Info {
        file: "uboot_mmc_info/samsung-8gme4-sunxi/mmc_info.txt",
        maker: "Samsung",
        manufacturer_id: 0x15,
        oemid: Some(0x100),
        name: "8GME4",
        ext_csd_rev: 8,
        user_gib: "7.3",
        user_enhanced: None,
        boot_bytes: 4 << 20,
        rpmb_bytes: 512 << 10,
        bus_width: "8",
    },
    DG403,
    Info { file: "uboot_mmc_info/sandisk-dg403-zynqmp/mmc_info.txt", ..DG403 },
    Info {
        file: "uboot_mmc_info/toshiba-004ga-stm32mp/mmc_info.txt",
        maker: "Kioxia (Toshiba)",
        manufacturer_id: 0x11,
        oemid: Some(0x100),
        name: "004GA",
        ext_csd_rev: 7,
        user_gib: "3.7",
        user_enhanced: None,
        boot_bytes: 2 << 20,
        rpmb_bytes: 512 << 10,
        bus_width: "8",
    },
    // U-Boot printed OEM 0: no maker's id, so none is claimed.
    Info {
        file: "uboot_mmc_info/toshiba-016g70/mmc_info.txt",
        maker: "Kioxia (Toshiba)",
        manufacturer_id: 0x11,
        oemid: None,
        name: "016G70",
        ext_csd_rev: 7,
        user_gib: "14.7",
        user_enhanced: None,
        boot_bytes: 4 << 20,
        rpmb_bytes: 4 << 20,
        bus_width: "8",
    },
    Info {
        file: "seeds_console/uboot_mmc_info_colibri-imx6.txt",
        maker: "Kioxia (Toshiba)",
        manufacturer_id: 0x11,
        oemid: Some(0x100),
        name: "004GE",
        ext_csd_rev: 7,
        user_gib: "3.7",
        user_enhanced: None,
        boot_bytes: 2 << 20,
        rpmb_bytes: 512 << 10,
        bus_width: "8",
    },
    Info {
        file: "seeds_console/uboot_mmc_info_before_imx8qm.txt",
        maker: "Micron",
        manufacturer_id: 0x13,
        oemid: Some(0x14e),
        name: "S0J56",
        ext_csd_rev: 8,
        user_gib: "14.8",
        user_enhanced: None,
        boot_bytes: 33_030_144,
        rpmb_bytes: 4 << 20,
        bus_width: "8",
    },
    Info {
        file: "seeds_console/uboot_mmc_info_after_imx8qm.txt",
        maker: "Micron",
        manufacturer_id: 0x13,
        oemid: Some(0x14e),
        name: "S0J56",
        ext_csd_rev: 8,
        user_gib: "7.3",
        user_enhanced: Some(true),
        boot_bytes: 33_030_144,
        rpmb_bytes: 4 << 20,
        bus_width: "8",
    },
];

#[test]
fn u_boot_reports_the_identity() {
    for info in INFOS {
        let identity = study(info.file)["identity"].take();
        let standard = if info.ext_csd_rev == 8 { "eMMC 5.1" } else { "eMMC 5.0" };
        for (key, value) in [
            ("kind", json!("emmc")),
            ("manufacturer_id", json!(info.manufacturer_id)),
            ("oemid", json!(info.oemid)),
            ("product_name", json!(info.name)),
            ("ext_csd_rev", json!(info.ext_csd_rev)),
            ("standard", json!(standard)),
            // Not printed, so not known.
            ("serial_number", json!(null)),
            ("manufacture_date", json!(null)),
        ] {
            assert_eq!(identity[key], value, "{}: {key}", info.file);
        }
        assert_eq!(identity["manufacturer"]["name"], info.maker, "{}", info.file);
    }
}

#[test]
fn u_boot_reports_the_sizes_of_areas() {
    for info in INFOS {
        let study = study(info.file);
        let areas = study["capacity"]["areas"].as_array().unwrap();
        let area = |name: &str| areas.iter().find(|area| area["name"] == name).unwrap();
        let (user, file) = (area("user"), info.file);
        assert_eq!(user["enhanced"], json!(info.user_enhanced), "{file}");
        // A rounded size stays a range of a tenth of a GiB, without a preferred value.
        let tenths: u64 = info.user_gib.replace('.', "").parse().unwrap();
        let (low, high) = (user["size"]["min_bytes"].as_u64().unwrap(), user["size"]["max_bytes"].as_u64().unwrap());
        let gib = |tenths: f64| (tenths * f64::from(1 << 30) / 10.0) as u64;
        assert!(low.abs_diff(gib(tenths as f64 - 0.5)) <= 1 << 24, "{file}: {low}");
        assert!(high.abs_diff(gib(tenths as f64 + 0.5)) <= 1 << 27 && high > low, "{file}: {high}");
        assert_eq!(user["size"]["bytes"], json!(null), "{file}");
        for boot in ["boot1", "boot2"] {
            assert_eq!(area(boot)["size"]["bytes"], info.boot_bytes, "{file}");
            assert_eq!(area(boot)["enhanced"], true, "{file}");
        }
        assert_eq!(area("rpmb")["size"]["bytes"], info.rpmb_bytes, "{file}");
    }
}

#[test]
fn u_boot_reports_write_reliability_and_bus_mode() {
    for info in INFOS {
        let study = study(info.file);
        let row = |name: &str| {
            let rows = study["configuration"]["rows"].as_array().unwrap();
            rows.iter().find(|row| row["name"] == name).map(|row| row["value"].as_str().unwrap().to_owned())
        };
        assert_eq!(row("write reliability of the user area").as_deref(), Some("on"), "{}", info.file);
        assert_eq!(row("data lines in use").as_deref(), Some(info.bus_width), "{}", info.file);
        let partitioned = info.user_enhanced.map(|_| false);
        assert_eq!(study["hw_partition"]["partitionable"], json!(partitioned), "{}", info.file);
    }
}

#[test]
fn sdmon_outputs_are_read_or_refused_with_the_reason() {
    for (file, life, refused) in [
        ("adata-iudd33k-64g/sdmon.json.txt", Some(("life_left_percent", 100.0)), [].as_slice()),
        ("adata-iudd33k-64g/sdmon_earlier_pr21.json.txt", Some(("life_left_percent", 100.0)), &[]),
        ("transcend-460t-64g/sdmon.json.txt", Some(("life_left_percent", 100.0)), &[]),
        ("apacer-readme/sdmon.json.txt", Some(("life_left_percent", 99.97)), &[]),
        ("sandisk-ultra-sd128/sdmon.json.txt", Some(("life_left_percent", 99.94)), &[]),
        ("sandisk-industrial-readme/sdmon.json.txt", Some(("life_used_percent", 1.0)), &[]),
        ("negative-apacer-ak6-slc-32g/sdmon.json.txt", None, &["00 04", "a4 81"]),
        ("unsupported/sdmon.json.txt", None, &["1st CMD56 CALL FAILED: Operation timed out"]),
    ] {
        let path = testdata(&format!("sdmon/{file}"));
        // What was refused leaves the health unknown: neither good nor bad.
        let run = emmclab(["health", &path, "--json"]).exits(if life.is_some() { 0 } else { 3 });
        let health = run.json();
        let readings = health["vendor"].as_array().unwrap().iter().flat_map(|one| one["life"].as_array().unwrap());
        let found: Vec<_> =
            readings.map(|one| (one["name"].as_str().unwrap(), one["value"].as_f64().unwrap())).collect();
        assert_eq!(found, Vec::from_iter(life), "{file}");
        let reasons = health["vendor_refused"].as_array().unwrap();
        assert_eq!(reasons.len(), refused.len(), "{file}: {reasons:?}");
        let text = emmclab(["study", &path, "--full"]).exits(0).words();
        for reason in refused {
            assert!(text.contains(reason), "{file}: no {reason:?} in {text}");
        }
        assert_eq!(text.contains("health is unknown, not bad"), life.is_none(), "{file}");
    }
}

#[test]
fn invalid_bytes_of_an_unknown_card_give_no_health() {
    let path = testdata("sdmon/negative-apacer-ak6-slc-32g/sdmon.json.txt");
    for verb in ["health", "study", "show"] {
        let run = emmclab([verb, &path]);
        for rubbish in ["27 %", "199", "percent used"] {
            assert!(!run.stdout.contains(rubbish), "{verb} repeats {rubbish}: {}", run.stdout);
        }
    }
    let check = emmclab(["check", &path]).exits(3);
    assert!(check.stdout.starts_with("SD UNKNOWN - "), "{check:?}");
}

#[test]
fn a_partitioned_part_is_refused() {
    let (log, cid) =
        (testdata("hwpartition/cisco-hynix-hbg4e/sd_partition.txt"), testdata("ids/cisco-hynix-hbg4e/cid"));
    for request in [["--enh-user", "max"], ["--gp", "1:8MiB"], ["--wrrel", "on"]] {
        let args = ["plan", "hwpart", &log, "--with", &cid, request[0], request[1]];
        let plan = emmclab(args.iter().chain(&["--json"])).exits(4).json();
        assert_eq!((&plan["ok"], &plan["writes"]), (&json!(false), &json!([])));
        let refusals = plan["refusals"].as_array().unwrap();
        let refusal = refusals.iter().find(|one| one["rule"] == "already-completed");
        let refusal = refusal.unwrap_or_else(|| panic!("{request:?}: {refusals:?}"));
        assert_eq!(refusal["evidence"], json!(["PARTITION_SETTING_COMPLETED[155] is 1"]));
        emmclab(args).exits(4).says(&["already partitioned, which is possible only once"]);
    }
    let study = emmclab(["study", &log, "--with", &cid, "--json"]).exits(0).json();
    assert_eq!(
        (&study["identity"]["product_name"], &study["hw_partition"]["partitionable"]),
        (&json!("HBG4e\\x05"), &json!(false))
    );
}

#[test]
fn a_number_without_a_unit_is_no_size() {
    let card = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    for (option, bare, size) in
        [("--enh-user", "0:15384576", "15384576"), ("--enh-user", "0s:7512", "7512"), ("--gp", "1:100", "100")]
    {
        let run = emmclab(["plan", "hwpart", &card, option, bare]).exits(2);
        assert!(run.stdout.is_empty(), "{run:?}");
        for hint in
            [format!("size {size:?} has no unit"), format!("{size}MiB"), format!("{size}s for 512-byte sectors")]
        {
            assert!(run.stderr.contains(&hint), "no {hint:?} in {}", run.stderr);
        }
        assert!(run.stderr.contains("U-Boot would read sectors, mmc-utils KiB"), "{}", run.stderr);
    }
}

fn study(file: &str) -> Value {
    emmclab(["study", &testdata(file), "--json"]).exits(0).json()
}
