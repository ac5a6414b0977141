//! A snapshot is equivalent to its source; two sources are compared field by field.

use crate::support;
use std::path::Path;
use std::process::Command;

use crate::support::cards::s0j56;
use crate::support::{emmclab, names_in, run, save, scratch, skip, testdata};
use serde_json::Value;

const RAW: &str = "ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex";
const TEXT: &str = "mmc_extcsd_text/samsung-klm-8g/extcsd.txt";

/// Every kind of source there is, as arguments.
fn sources() -> Vec<Vec<String>> {
    let board = testdata("sysfs/board");
    let mut all: Vec<Vec<String>> = [
        RAW,
        TEXT,
        "ext_csd_raw/aaru-64g/aaru-64g.ext_csd.hex",
        "ext_csd_raw/at91bootstrap-107-partial/at91-107.bytes0-335.partial.hex",
        "seeds_console/extcsd_health.txt",
        "seeds_console/uboot_mmc_info_after_imx8qm.txt",
        "seeds_console/emmcparm_erase_count.txt",
        "sdmon/sandisk-industrial-readme/sdmon.json.txt",
        "seeds_console/lsblk_colibri-imx6s.txt",
        "ids/samsung-bjnb4r-32g/cid",
        "ids/ac100-mmc32g/csd",
        "hwpartition/cisco-hynix-hbg4e/sd_partition.txt",
    ]
    .map(|file| vec![testdata(file)])
    .into();
    for card in ["mmcblk0", "mmcblk1"] {
        all.push(vec!["--sysroot".into(), board.clone(), card.into()]);
    }
    all
}

fn document(verb: &str, source: &[String]) -> Value {
    let args = [verb, "--json"].into_iter().chain(source.iter().map(String::as_str));
    let run = emmclab(args);
    assert!(run.code != 2 && run.stderr.is_empty(), "{run:?}");
    run.json()
}

#[test]
fn a_snapshot_shows_the_fields_of_its_source() {
    let folder = scratch("round_trip");
    for (index, source) in sources().iter().enumerate() {
        let saved = folder.join(format!("{index}.json")).to_str().unwrap().to_owned();
        let args = ["snapshot", "-o", &saved].into_iter().chain(source.iter().map(String::as_str));
        emmclab(args).exits(0).says(&["saved"]);
        let copy = [saved];
        let (of_source, of_copy) = (document("show", source), document("show", &copy));
        for key in ["fields", "anomalies", "kind", "ext_csd_known_bytes"] {
            assert_eq!(of_source[key], of_copy[key], "{source:?}: {key}");
        }
        let (of_source, of_copy) = (document("study", source), document("study", &copy));
        for key in ["identity", "health", "capacity", "hw_partition", "vendor", "vendor_refused", "anomalies"] {
            assert_eq!(of_source[key], of_copy[key], "{source:?}: {key}");
        }
        // The judgement of a bus mode depends on its reader, which a snapshot has only as text.
        let other = |study: &Value| {
            let rows = study["configuration"]["rows"].as_array().unwrap().iter();
            let findings = study["findings"].as_array().unwrap().iter();
            let rows = rows.filter(|row| row["name"] != "bus mode in use").cloned().collect::<Vec<_>>();
            let findings = findings.filter(|one| one["id"] != "bus-slower-than-offered").cloned();
            // A command names its source.
            let without_commands = findings.map(|mut finding| {
                finding.as_object_mut().unwrap().remove("commands");
                finding
            });
            let findings = without_commands.collect::<Vec<_>>();
            (rows, findings)
        };
        assert_eq!(other(&of_source), other(&of_copy), "{source:?}");
    }
}

#[test]
fn a_snapshot_of_a_snapshot_differs_in_its_origin_only() {
    let folder = scratch("again");
    for source in sources() {
        let snapshot = |source: &[String]| {
            let args = ["snapshot", "-o", "-"].into_iter().chain(source.iter().map(String::as_str));
            emmclab(args).exits(0).json()
        };
        let mut first = snapshot(&source);
        let saved = save(&folder, "first.json", first.to_string());
        let mut second = snapshot(std::slice::from_ref(&saved));
        assert_eq!(second["origins"][0]["name"], saved.as_str());
        first["origins"].take();
        second["origins"].take();
        assert_eq!(first, second, "{source:?}");
    }
}

#[test]
fn a_snapshot_keeps_its_time() {
    let folder = scratch("taken_at");
    let mut snapshot = emmclab(["snapshot", &testdata(RAW), "-o", "-"]).exits(0).json();
    snapshot["origins"][0]["taken_at"] = "2024-11-01T00:00:00Z".into();
    let earlier = save(&folder, "earlier.json", snapshot.to_string());
    let now = testdata("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex");
    let args = ["health", &now, "--at", "2026-11-01T00:00:00Z", "--since", &earlier, "--json"];
    let forecast = emmclab(args).json()["forecast"].take();
    assert_eq!(forecast["first"], "2024-11-01T00:00:00Z");
    assert_eq!(forecast["observations"], 2);
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let folder = scratch("force");
    let target = save(&folder, "card.json", "precious");
    let source = testdata(RAW);
    let refused = emmclab(["snapshot", &source, "-o", &target]).exits(2);
    assert_eq!(refused.stderr, format!("emmclab: {target}: exists already; --force replaces it\n"));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    emmclab(["snapshot", &source, "-o", &target, "--force"]).exits(0);
    assert!(std::fs::read_to_string(&target).unwrap().starts_with("{\n  \"schema\": \"emmclab.snapshot/1\""));
    assert_eq!(names_in(&folder), ["card.json"]);
}

#[test]
fn no_report_replaces_a_file_or_its_own_source() {
    let folder = scratch("source");
    let other = save(&folder, "other", "precious");
    let raw = std::fs::read(testdata(RAW)).unwrap();
    let source = save(&folder, "card.hex", &raw);
    for args in
        [vec!["snapshot", &source], vec!["plan", "hwpart", &source, "--enh-user", "max"], vec!["study", &source]]
    {
        if args[0] == "study" && !cfg!(feature = "html") {
            continue;
        }
        let to = |target: &str, force: bool| {
            let force = Some("--force").filter(|_| force);
            emmclab(args.iter().copied().chain(["-o", target]).chain(force))
        };
        let refused = to(&other, false).exits(2);
        assert_eq!(refused.stderr, format!("emmclab: {other}: exists already; --force replaces it\n"));
        for force in [false, true] {
            let refused = to(&source, force).exits(4);
            assert!(refused.stderr.starts_with(&format!("emmclab: {source}: is the source itself")), "{refused:?}");
        }
        assert_eq!(std::fs::read(&source).unwrap(), raw);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
    }
    assert_eq!(names_in(&folder), ["card.hex", "other"]);
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let folder = scratch("link");
    let target = save(&folder, "card.json", "old");
    let link = folder.join("latest.json");
    std::os::unix::fs::symlink("card.json", &link).unwrap();
    emmclab(["snapshot", &testdata(RAW), "-o", link.to_str().unwrap(), "--force"]).exits(0);
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("card.json"));
    assert!(std::fs::read_to_string(target).unwrap().starts_with('{'));
}

#[test]
fn a_character_device_is_written_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let is_device = || std::fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device();
    assert!(is_device());
    let source = testdata(RAW);
    emmclab(["snapshot", &source, "-o", "/dev/null", "--force"]).exits(0);
    emmclab(["plan", "hwpart", &source, "--enh-user", "max", "-o", "/dev/null"]).exits(0);
    assert!(is_device(), "/dev/null is a file now");
    // A pipe by its name in /dev.
    let piped = emmclab(["snapshot", &source, "-o", "/dev/stdout", "--json"]).exits(0);
    assert_eq!(piped.json()["schema"], "emmclab.snapshot/1");
    let full = emmclab(["snapshot", &source, "-o", "/dev/full"]).exits(2);
    assert!(full.stderr.starts_with("emmclab: /dev/full: cannot write: No space left"), "{full:?}");
}

#[test]
fn a_failed_write_leaves_no_file() {
    let folder = scratch("unwritable");
    let (source, inside) = (testdata(RAW), folder.join("folder"));
    std::fs::create_dir(&inside).unwrap();
    for target in [inside.clone(), folder.join("no/such/folder/card.json"), inside.join("..")] {
        let target = target.to_str().unwrap();
        let run = emmclab(["snapshot", &source, "--force", "-o", target]).exits(2);
        assert!(run.stderr.starts_with(&format!("emmclab: {target}: cannot write: ")), "{run:?}");
        assert_eq!((run.stdout.as_str(), run.stderr.lines().count()), ("", 1));
    }
    assert_eq!((names_in(&folder), names_in(&inside)), (vec!["folder".to_owned()], vec![]));
}

/// Mounts one page of memory on $1 in its own namespace, runs the rest there, and lists the folder.
const ON_A_FULL_DISK: &str = "mount -t tmpfs -o size=4k tmpfs \"$1\" || exit 77
folder=$1; shift; echo old >\"$folder/old.json\"; \"$@\"; echo \"exit $?\"; ls -A \"$folder\"; cat \"$folder/old.json\"";

#[test]
fn a_full_disk_leaves_no_partial_file() {
    let folder = scratch("full");
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let (board, folder) = (testdata("sysfs/board"), disk.to_str().unwrap());
    for (target, force) in [("new.json", ""), ("old.json", "--force")] {
        let target = disk.join(target);
        let snapshot = ["snapshot", "--sysroot", &board, "mmcblk0", "--json", "-o", target.to_str().unwrap()];
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", ON_A_FULL_DISK, "sh", folder]);
        command.arg(env!("CARGO_BIN_EXE_emmclab")).args(snapshot).args(Some(force).filter(|force| !force.is_empty()));
        let output = match command.output() {
            Ok(output) if output.stdout.starts_with(b"exit ") => output,
            other => return skip(&format!("no memory file system of one page here: {other:?}")),
        };
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(stdout, "exit 2\nold.json\nold\n", "{stderr}");
        assert!(stderr.contains("cannot write: No space left on device"), "{stderr}");
    }
}

#[test]
fn raw_bytes_and_text_differ_in_run_time_settings() {
    let run = emmclab(["diff", &testdata(RAW), &testdata(TEXT), "--json"]).exits(1);
    let document = run.json();
    let differences = document["differences"].as_array().unwrap();
    let rows: Vec<_> = differences
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["raw_a"].as_u64().unwrap(), row["raw_b"].as_u64().unwrap()))
        .collect();
    // U-Boot read the bytes before any driver; Linux had set these when mmc-utils printed them.
    let expected =
        [("CACHE_CTRL", 0, 1), ("POWER_OFF_NOTIFICATION", 0, 1), ("HPI_MGMT", 0, 1), ("ERASE_GROUP_DEF", 0, 1)];
    assert_eq!(rows, expected);
    assert!(differences.iter().all(|row| row["volatile"] == true));
    assert!(document["compared"].as_u64().unwrap() > 150, "{}", document["compared"]);
    emmclab(["diff", &testdata(RAW), &testdata(TEXT), "--persistent"]).exits(0).says(&[
        "No persistent difference in",
        "Left out: 4 fields differ in bits that a power cycle clears: CACHE_CTRL",
    ]);
}

#[test]
fn a_source_does_not_differ_from_itself() {
    let folder = scratch("same");
    for file in [RAW, TEXT, "ids/samsung-bjnb4r-32g/cid", "seeds_console/extcsd_health.txt"] {
        let source = testdata(file);
        let saved = folder.join("snapshot.json").to_str().unwrap().to_owned();
        emmclab(["snapshot", &source, "--force", "-o", &saved]).exits(0);
        for other in [&source, &saved] {
            let document = emmclab(["diff", &source, other, "--json"]).exits(0).json();
            for key in ["differences", "only_a", "only_b"] {
                assert_eq!(document[key], serde_json::json!([]), "{file}: {key}");
            }
            assert!(document["compared"].as_u64().unwrap() > 0, "{file}");
        }
    }
}

#[test]
fn partitioning_gives_one_time_differences() {
    let folder = scratch("partitioned");
    let mut after = s0j56();
    after[212..216].copy_from_slice(&15_384_576_u32.to_le_bytes());
    after[140..143].copy_from_slice(&[0xab, 0x03, 0x00]);
    (after[155], after[156]) = (1, 1);
    let (before, after) = (save(&folder, "before.bin", s0j56()), save(&folder, "after.bin", after));
    let mut command = support::command();
    command.args(["diff", &before, &after, "--json", "--persistent"]);
    let document = run(command).exits(1).json();
    let rows = document["differences"].as_array().unwrap().iter();
    let rows: Vec<_> = rows.map(|row| (row["name"].as_str().unwrap(), row["one_time"] == true)).collect();
    let expected = [
        ("ENH_SIZE_MULT", true),
        ("PARTITION_SETTING_COMPLETED", true),
        ("PARTITIONS_ATTRIBUTE", true),
        ("SEC_COUNT", false),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn persistence_is_judged_by_bit() {
    let folder = scratch("by_bit");
    let before = save(&folder, "before.bin", s0j56());
    let flipped = |byte: usize, mask: u8| {
        let mut after = s0j56();
        after[byte] ^= mask;
        save(&folder, "after.bin", after)
    };
    for (byte, mask, name, persistence) in [
        (173, 0x04, "BOOT_WP", "one-time"),
        (171, 0x10, "USER_WP", "one-time"),
        (178, 0x10, "BOOT_CONFIG_PROT", "one-time"),
        (179, 0x08, "PARTITION_CONFIG", "kept"),
        (163, 0x02, "BKOPS_EN", "kept"),
    ] {
        let run = emmclab(["diff", "--persistent", "--json", &before, &flipped(byte, mask)]).exits(1).json();
        let one = &run["differences"][0];
        assert_eq!((one["name"].as_str(), one["persistence"].as_str()), (Some(name), Some(persistence)));
    }
    for (byte, mask, why) in [
        (246, 0x01, "Left out: 1 field differs in bits whose persistence the standard does not define: BKOPS_STATUS."),
        (54, 0x01, "the standard does not define: EXCEPTION_EVENTS_STATUS."),
        (64, 0x01, "the standard does not define: VENDOR_SPECIFIC_FIELD[64]."),
        (179, 0x01, "Left out: 1 field differs in bits that a power cycle clears: PARTITION_CONFIG."),
    ] {
        let after = flipped(byte, mask);
        emmclab(["diff", "--persistent", &before, &after]).exits(0).says(&["No persistent difference", why]);
        emmclab(["diff", &before, &after]).exits(1);
    }
    let both = flipped(179, 0x09);
    let split = "PARTITION_CONFIG.BOOT_PARTITION_ENABLE";
    emmclab(["diff", &before, &both]).exits(1).says(&[split, "PARTITION_CONFIG.PARTITION_ACCESS"]);
    let persistent = emmclab(["diff", "--persistent", &before, &both]).exits(1).says(&[split]);
    assert!(!persistent.stdout.contains("PARTITION_ACCESS"), "{}", persistent.stdout);
    emmclab(["diff", &before, &flipped(163, 0x02)]).exits(1).says(&["AUTO_EN", "over power cycles"]);
}

/// A finding without the commands, which name their source.
fn plain_findings(study: &serde_json::Value) -> Vec<serde_json::Value> {
    let mut findings = study["findings"].as_array().unwrap().clone();
    findings.iter_mut().for_each(|finding| drop(finding.as_object_mut().unwrap().remove("commands")));
    findings
}

#[test]
fn a_snapshot_and_a_report_of_a_copied_tree_keep_every_finding() {
    let (board, folder) = (testdata("sysfs/board"), scratch("kept_findings"));
    let (snapshot, report) = (folder.join("snapshot.json"), folder.join("study.json"));
    for card in ["mmcblk0", "mmcblk1"] {
        let study = emmclab(["study", "--json", "--sysroot", &board, card]);
        std::fs::write(&report, &study.stdout).unwrap();
        emmclab(["snapshot", "--force", "--sysroot", &board, card, "-o", snapshot.to_str().unwrap()]).exits(0);
        let expected = plain_findings(&study.json());
        assert!(!expected.is_empty());
        for saved in [&snapshot, &report] {
            let again = emmclab(["study", "--json", saved.to_str().unwrap()]).json();
            assert_eq!(plain_findings(&again), expected, "{card}, {}", saved.display());
        }
    }
}

#[test]
fn the_example_of_the_readme_has_right_checksums() {
    for card in ["mmcblk0", "mmcblk1"] {
        let study = emmclab(["study", "--json", "--sysroot", &testdata("sysfs/board"), card]).json();
        assert!(study["findings"].as_array().unwrap().iter().all(|found| found["id"] != "checksum-wrong"), "{study}");
    }
}

/// The files of a virtual card are its content, and a profile is its source.
#[test]
fn a_virtual_cards_own_files_are_not_overwritten() {
    let folder = scratch("own_files");
    let card = folder.join("card").display().to_string();
    emmclab(["sim", "create", &card, "sim:generic-8g"]).exits(0);
    let profile = format!("{card}/profile.toml");
    for (source, file) in [(&card, "card.state"), (&card, "profile.toml"), (&profile, "profile.toml")] {
        let (source, file) = (format!("sim:{source}"), format!("{card}/{file}"));
        let before = std::fs::read(&file).unwrap();
        for command in [vec!["plan", "cache", &source, "on"], vec!["study", &source], vec!["snapshot", &source]] {
            let refused = emmclab([&command[..], &["-o", &file, "--force"]].concat()).exits(4);
            assert!(refused.stderr.contains("is the source itself"), "{command:?}: {refused:?}");
        }
        assert!(std::fs::read(&file).unwrap() == before, "{file}");
    }
}
