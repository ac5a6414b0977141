//! Input that is no saved card is refused in one line with the file, the place, the expected and the found content.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::cards::noise;
use crate::support::{emmclab, emmclab_with_input, is_root, names_in, save, scratch, skip, testdata};
use serde_json::Value;

/// More than this is not read.
const BYTES_MAX: u64 = 8 << 20;

/// Every verb that takes a source, `SOURCE` being its place.
const VERBS: [&[&str]; 6] = [
    &["show", "SOURCE"],
    &["health", "SOURCE"],
    &["study", "SOURCE"],
    &["snapshot", "SOURCE", "-o", "OUTPUT"],
    &["diff", "SOURCE", "SOURCE"],
    &["plan", "hwpart", "SOURCE", "--enh-user", "max"],
];

/// Every command refuses it; the line contains each of `says`.
fn refused(folder: &Path, source: &str, says: &[&str]) {
    let output = folder.join("output.json");
    for verb in VERBS {
        let place = |word: &&str| match *word {
            "SOURCE" => source.to_owned(),
            "OUTPUT" => output.to_str().unwrap().to_owned(),
            word => word.to_owned(),
        };
        let args: Vec<String> = verb.iter().map(place).collect();
        let run = emmclab(&args).exits(2);
        assert_eq!((run.stdout.as_str(), run.stderr.lines().count()), ("", 1), "{run:?}");
        assert!(run.stderr.starts_with(&format!("emmclab: {source}: ")), "{run:?}");
        for word in says {
            assert!(run.stderr.contains(word), "no {word:?} in {run:?}");
        }
        let json = emmclab(args.iter().map(String::as_str).chain(["--json"])).exits(2);
        let error: Value = serde_json::from_str(&json.stderr).unwrap_or_else(|error| panic!("{error}: {json:?}"));
        assert!(json.stdout.is_empty() && json.stderr.starts_with(r#"{"schema":"emmclab.error/1","#), "{json:?}");
        assert_eq!(format!("emmclab: {}\n", error["error"].as_str().unwrap()), run.stderr);
        assert!(!output.exists(), "a snapshot of nothing");
    }
    let check = emmclab(["check", source]).exits(3);
    assert_eq!((check.stdout.lines().count(), check.stderr.as_str()), (1, ""), "{check:?}");
    assert!(check.stdout.starts_with(&format!("EMMC UNKNOWN - {source}: ")), "{check:?}");
}

fn malformed(test: &str, content: &[u8], at: &str, found: &str) {
    let folder = scratch(test);
    let source = save(&folder, "card", content);
    refused(&folder, &source, &[&format!(": at {at}: expected "), &format!(", found {found}")]);
    // The same by standard input, whose name is a dash.
    let input = emmclab_with_input(&["show", "-"], content).exits(2);
    assert!(input.stderr.starts_with(&format!("emmclab: -: at {at}: expected ")), "{input:?}");
    assert_eq!((input.stdout.as_str(), input.stderr.lines().count()), ("", 1), "{input:?}");
}

#[test]
fn an_empty_file_is_refused() {
    malformed("empty", b"", "byte 0", "an empty file");
}

#[test]
fn one_byte_is_refused() {
    malformed("one_byte", b"x", "line 1", "text that begins with \"x\"");
    malformed("one_byte_of_noise", &[0x80], "line 1", "text that begins with");
}

#[test]
fn one_byte_too_few_or_too_many_is_refused() {
    let klm = std::fs::read_to_string(testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex")).unwrap();
    let digit = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    let mut bytes: Vec<u8> = klm.trim().as_bytes().chunks_exact(2).map(digit).collect();
    assert_eq!(bytes.len(), 512);
    malformed("too_few", &bytes[..511], "byte 511", "the end after 511 bytes");
    bytes.push(0);
    malformed("too_many", &bytes, "byte 512", "1 more byte");
}

#[test]
fn noise_of_many_lengths_is_refused() {
    for length in [2, 100, 511, 513, 1024, 70_000] {
        let folder = scratch(&format!("noise_{length}"));
        let source = save(&folder, "noise", noise(length as u64, length));
        refused(&folder, &source, &["expected", "found"]);
    }
}

#[test]
fn bytes_of_no_card_are_refused() {
    malformed("zeros", &[0; 512], "byte 0", "512 bytes of 0x00: nothing was read");
    malformed("ones", &[0xff; 512], "byte 0", "512 bytes of 0xff: no card answered");
}

#[test]
fn utf_16_is_refused() {
    let text = std::fs::read_to_string(testdata("mmc_extcsd_text/samsung-klm-8g/extcsd.txt")).unwrap();
    for (test, mark, bytes) in [
        ("utf_16_le", [0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()),
        ("utf_16_be", [0xfe, 0xff], text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
    ] {
        malformed(test, &[&mark[..], &bytes].concat(), "byte 0", "UTF-16");
    }
}

#[test]
fn other_files_are_refused() {
    malformed("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08", "byte 0", "a PNG image");
    malformed("json", b"{\"schema\": \"other/1\"}\n", "line 1", "");
    malformed("prose", b"Dear reader,\nthis is no register.\n", "line 1", "text that begins with \"Dear reader,");
}

#[test]
fn text_of_other_tools_is_refused() {
    for (name, found) in [
        ("t30_bonnie_dd_before.txt", "the output of dd"),
        ("t30_bonnie_dd_after.txt", "the output of dd"),
        ("uboot_hwpartition_query_imx8qm.txt", "U-Boot's plan of `mmc hwpartition`"),
        ("uboot_hwpartition_check_ok_imx8qm.txt", "U-Boot's plan of `mmc hwpartition`"),
        ("uboot_hwpartition_check_fail_imx8qm.txt", "U-Boot's plan of `mmc hwpartition`"),
        ("uboot_hwpartition_complete_imx8qm.txt", "U-Boot's plan of `mmc hwpartition`"),
    ] {
        refused(&scratch(name), &testdata(&format!("seeds_console/{name}")), &["expected", &format!("found {found}")]);
    }
    let mbr = testdata("cmd56_raw/negative-mbr-in-cmd56/cmd56.partial.hex");
    refused(&scratch("mbr"), &mbr, &["expected", "found boot code of an MBR"]);
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    for (test, length) in [("large", BYTES_MAX + 1), ("huge", 1 << 30), ("more_than_memory", 1 << 40)] {
        let folder = scratch(test);
        let path = folder.join("sparse");
        // A hole: it takes no space, and reading a terabyte of it would not end.
        if let Err(error) = File::create(&path).and_then(|file| file.set_len(length)) {
            skip(&format!("no file of {length} bytes here: {error}"));
            continue;
        }
        let found = format!("found {length} bytes");
        refused(&folder, path.to_str().unwrap(), &["at byte 8388608", "expected", &found]);
    }
}

#[test]
fn an_endless_source_is_refused() {
    let folder = scratch("endless");
    refused(&folder, "/dev/zero", &["at byte 8388608", "expected", "found 8388609 bytes"]);
    let input = emmclab_with_input(&["show", "-"], &vec![b'\n'; BYTES_MAX as usize + 2]).exits(2);
    assert!(input.stderr.starts_with("emmclab: -: at byte 8388608: expected "), "{input:?}");
}

#[test]
fn the_largest_accepted_file_is_read() {
    let folder = scratch("largest");
    for (name, content) in [
        // A line costs more than a byte does.
        ("lines", b"\n".repeat(BYTES_MAX as usize / 8)),
        ("digits", b"0123456789abcdef".repeat(BYTES_MAX as usize / 16)),
        ("brackets", b"[".repeat(BYTES_MAX as usize)),
        ("noise", noise(1, BYTES_MAX as usize)),
    ] {
        let source = save(&folder, name, content);
        let run = emmclab(["show", &source]).exits(2);
        assert!(run.stdout.is_empty() && run.stderr.lines().count() == 1, "{name}: {:.300}", run.stderr);
        assert!(run.stderr.len() < 2000, "{name}: a message of {} bytes", run.stderr.len());
    }
}

#[test]
fn folders_and_devices_are_refused() {
    let folder = scratch("no_file");
    refused(&folder, folder.to_str().unwrap(), &["cannot read: Is a directory"]);
    refused(&folder, folder.join("nothing").to_str().unwrap(), &["cannot read: No such file"]);
    refused(&folder, "/dev/null", &["expected", "found an empty file"]);
    refused(&folder, "/dev/mmcblk250", &["cannot read: no such card"]);
    assert_eq!(names_in(&folder), [] as [&str; 0]);
}

#[test]
fn a_file_without_read_permission_is_refused() {
    let folder = scratch("permission");
    let source = save(&folder, "card", [1; 512]);
    std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o000)).unwrap();
    if is_root() {
        return skip("root may read every file");
    }
    refused(&folder, &source, &["cannot read: Permission denied"]);
}
