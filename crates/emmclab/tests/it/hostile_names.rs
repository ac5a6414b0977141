//! A card, a file or the name of a file can contain any bytes. None of them controls the terminal or runs in the
//! browser.

use std::path::Path;

use crate::support::cards::{emmc_cid, s0j56};
use crate::support::{Run, emmclab, save, scratch, testdata};
use emmc_units::is_unprintable;
use serde_json::Value;

/// Sets the terminal's title, colours the rest, ends a line, is a script, turns the direction of text.
const HOSTILE: &str =
    "x\x1b]0;owned\x07\x1b[31m\u{9b}41m\r\n</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}y";

/// Whether a character may be in printed text.
fn is_harmless(c: char) -> bool {
    c == '\n' || !is_unprintable(c)
}

#[track_caller]
fn harmless_text(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        assert!(
            text.chars().all(is_harmless),
            "{:?} of {}: {text:?}",
            text.chars().find(|c| !is_harmless(*c)),
            run.args
        );
    }
}

#[track_caller]
fn harmless_html(path: &Path) {
    let html = std::fs::read_to_string(path).unwrap();
    assert!(html.chars().all(|c| is_harmless(c) || c == '\t' || c == '\r'), "controls in {}", path.display());
    for raw in ["<script>alert", "<img src=x", "onerror=alert(1)>"] {
        assert!(!html.contains(raw), "{raw} in {}", path.display());
    }
    // Every script in the page is the program's, and the content policy names it.
    assert!(html.contains("default-src 'none'"), "{}", path.display());
}

/// Every output of this source is harmless; returns whether it could be read.
fn tried(folder: &Path, source: &str) -> bool {
    let page = folder.join("report.html");
    let _ = std::fs::remove_file(&page);
    let show = emmclab(["show", source]);
    harmless_text(&show);
    for verb in ["study", "health", "check"] {
        harmless_text(&emmclab([verb, source]));
    }
    for args in [&["show", "--json"] as &[&str], &["study", "--json"], &["snapshot", "-o", "-"]] {
        harmless_text(&emmclab(args.iter().chain(&[source])));
    }
    if show.code == 0 && cfg!(feature = "html") {
        harmless_text(&emmclab(["study", source, "-o", page.to_str().unwrap()]));
        harmless_html(&page);
    }
    show.code == 0
}

#[test]
fn a_hostile_product_name_of_a_cid_is_escaped() {
    let folder = scratch("cid");
    for (name, shown) in [
        (b"\x1b[31mA", "\\x1b[31mA"),
        (b"\x9b31mAB", "\\x9b31mAB"),
        (b"a\nb\rc\t", "a\\nb\\rc\\t"),
        (b"<b>&\"'", "<b>&\"'"),
        (b"\xe2\x80\xaeabc", "\\xe2\\x80\\xaeabc"),
        (b"\x07\x08\x7f\0\0\0", "\\x07\\x08\\x7f"),
    ] {
        let cid = save(&folder, "cid", format!("cid: {}\n", emmc_cid(0x13, name)));
        assert!(tried(&folder, &cid));
        emmclab(["show", &cid]).exits(0).says(&[shown]);
        let study = emmclab(["study", &cid, "--json"]).exits(0).json();
        assert_eq!(study["identity"]["product_name"], shown);
        if cfg!(feature = "html") {
            let html = std::fs::read_to_string(folder.join("report.html")).unwrap();
            assert!(!html.contains("<b>&"), "markup from a product name");
        }
    }
}

#[test]
fn a_hostile_name_in_a_transcript_is_escaped() {
    let folder = scratch("transcript");
    let one_line = HOSTILE.replace(['\r', '\n'], " ");
    for (file, good) in [
        ("seeds_console/uboot_mmc_info_before_imx8qm.txt", "S0J56"),
        ("seeds_console/uboot_mmc_info_before_imx8qm.txt", "MMC High Speed (52MHz)"),
        ("seeds_console/uboot_mmc_info_before_imx8qm.txt", "FSL_SDHC"),
        ("seeds_console/lsblk_colibri-imx6s.txt", "/media/mmcblk0p1"),
        ("seeds_console/df_colibri-imx6s.txt", "/media/mmcblk0p1"),
        ("seeds_console/fdisk_colibri-imx6s.txt", "Win95 FAT32 (LBA)"),
        ("seeds_console/emmcparm_erase_count.txt", "Global erase count"),
        ("sdmon/sandisk-ultra-sd128/mmc_cid_csd_read.txt", "SD128"),
        ("sdmon/sandisk-industrial-readme/sdmon.json.txt", "211122"),
        ("sdmon/adata-iudd33k-64g/sdmon.json.txt", "SM2706"),
        ("mmc_extcsd_text/samsung-klm-8g/extcsd.txt", "Extended CSD rev"),
    ] {
        let text = std::fs::read_to_string(testdata(file)).unwrap();
        assert!(text.contains(good), "{file} has no {good}");
        for bad in
            [one_line.as_str(), HOSTILE, "\x1b[2J", "<script>alert(1)</script>", "\u{202e}", &format!("{good}\x1b[2J")]
        {
            tried(&folder, &save(&folder, "transcript.txt", text.replace(good, bad)));
        }
    }
}

#[test]
fn every_hostile_string_of_a_snapshot_is_escaped() {
    let folder = scratch("snapshot");
    let board = testdata("sysfs/board");
    let mut read = 0;
    for args in [
        vec!["--sysroot", &board, "mmcblk0"],
        vec!["--sysroot", &board, "mmcblk1"],
        vec![&testdata("seeds_console/uboot_mmc_info_after_imx8qm.txt")],
    ] {
        let args = ["snapshot", "-o", "-"].into_iter().chain(args);
        let snapshot = emmclab(args).exits(0).json();
        let mut places = Vec::new();
        strings(&snapshot, "", &mut places);
        assert!(places.len() > 5);
        for place in places {
            let mut hostile = snapshot.clone();
            *hostile.pointer_mut(&place).unwrap() = HOSTILE.into();
            read += usize::from(tried(&folder, &save(&folder, "snapshot.json", hostile.to_string())));
        }
    }
    // Registers are refused, names are not.
    assert!(read > 50, "only {read} were read");
}

/// The pointers to every string, but for the schema's name.
fn strings(value: &Value, at: &str, places: &mut Vec<String>) {
    match value {
        Value::String(_) if at != "/schema" => places.push(at.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| strings(item, &format!("{at}/{index}"), places))
        }
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            strings(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), places);
        }),
        _ => {}
    }
}

#[test]
fn a_hostile_file_name_is_escaped() {
    let folder = scratch("file_name");
    let name = HOSTILE.replace('/', ":");
    for content in [&s0j56() as &[u8], b"no card", b""] {
        let source = save(&folder, &name, content);
        tried(&folder, &source);
        harmless_text(&emmclab(["diff", &source, &source]));
        harmless_text(&emmclab(["plan", "hwpart", &source, "--enh-user", "max"]));
        harmless_text(&emmclab(["snapshot", &source, "-o", &source]));
        harmless_text(&emmclab(["snapshot", &source, "-o", &format!("{source}/x")]));
    }
    harmless_text(&emmclab(["show", folder.join("missing\x1b[2J").to_str().unwrap()]).exits(2));
    harmless_text(&emmclab(["check", "missing\x1b[2J\u{202e}|x=1"]).exits(3));
    let good = save(&folder, "good.bin", s0j56());
    let saved = folder.join(format!("saved{name}")).to_str().unwrap().to_owned();
    harmless_text(&emmclab(["snapshot", &good, "-o", &saved]).exits(0));
}

#[test]
fn only_the_programs_own_colours_are_printed() {
    let folder = scratch("colours");
    let text = std::fs::read_to_string(testdata("seeds_console/uboot_mmc_info_before_imx8qm.txt")).unwrap();
    let source = save(&folder, "mmc_info.txt", text.replace("S0J56", &HOSTILE.replace(['\r', '\n'], " ")));
    for verb in ["show", "study", "health"] {
        let run = emmclab(["--color", "always", verb, &source]);
        assert!(run.stdout.contains("\x1b["), "{verb} has no colours");
        // Select Graphic Rendition is all that the program itself sends.
        let mut rest = run.stdout.as_str();
        while let Some((_, after)) = rest.split_once('\x1b') {
            let end = after.find(|c: char| c != '[' && c != ';' && !c.is_ascii_digit());
            assert!(
                after.starts_with('[') && end.is_some_and(|end| after[end..].starts_with('m')),
                "{verb}: {after:.40?}"
            );
            rest = after;
        }
        assert!(!run.stdout.contains(['\x07', '\u{9b}', '\u{202e}']), "{verb}");
    }
}
