//! Ten cards that die, each in its own way, and ten that are healthy: what `trust` names, and what `study` makes of it.
//!
//! Cards behind a filesystem are virtual cards that are served through a layer with the fault; they need root.

mod card;
mod healthy;
mod refused;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;

use self::card::{FaultyCard, MIB};
use crate::support::loops::succeeds;
use crate::support::{emmclab, save, scratch, skip, testdata};

/// `O_NONBLOCK`, where its number is the generic one: on x86 and Arm.
const NONBLOCK: i32 = 0o4000;

/// The findings of `trust` in a document.
fn reasons(document: &Value) -> Vec<&str> {
    let ids = document["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap());
    ids.filter(|id| id.starts_with("trust-")).collect()
}

/// `trust` names these reasons, and `study` of the source leads with them.
#[track_caller]
fn dies(folder: &Path, source: &str, witnesses: &[&str], expected: &[&str]) -> Value {
    let args = [&["trust"], witnesses, &["--json"]].concat();
    let trust = emmclab(&args).exits(1);
    assert_eq!(reasons(&trust.json()), expected, "{}", trust.stdout);
    let saved = save(folder, "trust.json", &trust.stdout);
    let trust = trust.json();

    let study = emmclab(["study", source, "--trust", &saved, "--json"]).exits(1).json();
    assert_eq!(reasons(&study), expected);
    let worst = &trust["findings"][0];
    let what = worst["what"].as_str().unwrap();
    let verdict = if worst["severity"] == "critical" { "this card must go" } else { "do not rely on this card" };
    let lead = &study["verdict"]["trust"];
    assert!(lead["text"].as_str().unwrap().starts_with(&format!("{verdict}: {what}")), "{lead}");
    assert_eq!((&lead["evidence"], &lead["severity"]), (&worst["evidence"][0], &worst["severity"]));
    assert_eq!(study["verdict"]["urgent"], true);

    let text = emmclab(["study", source, "--trust", &saved]).exits(1);
    let first = text.stdout.lines().find(|line| line.starts_with("TRUST") || line.starts_with("HEALTH")).unwrap();
    assert!(first.starts_with(&format!("TRUST        {verdict}: ")), "{}", text.stdout);
    text.says(&[what]);
    trust
}

/// Registers of a healthy card, for cards whose fault is elsewhere.
fn registers() -> String {
    testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex")
}

/// A card whose fault is in the kernel's log.
fn dies_by_log(name: &str, log: &str, expected: &[&str]) {
    let folder = scratch(name);
    let (registers, log) = (registers(), save(&folder, "log", log));
    dies(&folder, &registers, &["--registers", &registers, "--log", &log], expected);
}

/// The kernel's messages from now on. The name of a loop device was another card's before ours was served.
struct KernelLog(File);

impl KernelLog {
    fn from_now() -> Option<Self> {
        let opened = File::options().read(true).custom_flags(NONBLOCK).open("/dev/kmsg");
        let sought = opened.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| Self(file)));
        sought.inspect_err(|error| skip(&format!("/dev/kmsg: {error}"))).ok()
    }

    fn text(&mut self) -> String {
        let (mut text, mut record) = (String::new(), [0; 8192]);
        // A record a read; an error at the end.
        while let Ok(length) = self.0.read(&mut record) {
            let record = String::from_utf8_lossy(&record[..length]).into_owned();
            text += record.split_once(';').map_or("", |(_, message)| message);
        }
        text
    }
}

/// 1. Read-only: a filesystem that a real kernel has remounted.
#[test]
fn a_card_that_a_kernel_made_read_only_is_named() {
    let Some(card) = FaultyCard::new("dying_read_only", &[]) else { return };
    let Some(mut log) = KernelLog::from_now() else { return };
    let Some(mounted) = card.mount(&["-O", "has_journal"]) else { return };
    card.served.ctl(&["inject", "--kind", "write"]);
    // Both the journal and the file cannot be written: the file's own error is the test's.
    let _ = std::fs::write(card.point.join("file"), [7; 4096]).and_then(|()| File::open(&card.point)?.sync_all());
    let _ = File::create(card.point.join("other")).and_then(|file| file.sync_all());
    let folder = scratch("dying_read_only_log");
    let device = card.device();
    let messages = save(&folder, "log", log.text());
    let source = card.source();
    let witnesses = [device, "--registers", &source, "--log", &messages];
    dies(&folder, &source, &witnesses, &["trust-read-only", "trust-writes-fail"]);
    // The mount alone shows it too.
    let none = save(&folder, "none", "");
    dies(&folder, &source, &[device, "--registers", &source, "--log", &none], &["trust-read-only"]);
    card.served.ctl(&["clear-faults"]);
    drop(mounted);
}

/// 1. The same, and a card that protects itself, without a mount.
#[test]
fn a_card_that_is_read_only_by_its_log_is_named() {
    let log = "mmcblk0: mmc0:0001 8GTF4R 7.28 GiB\nEXT4-fs (mmcblk0p2): Remounting filesystem read-only\n";
    dies_by_log("dying_log_read_only", log, &["trust-read-only"]);
}

/// 2. Dropped writes.
#[test]
fn a_card_that_drops_writes_is_named() {
    let data = 8 * MIB;
    let Some(card) = FaultyCard::new("dying_drops", &[&format!("drop:from={data},every=4")]) else { return };
    let Some(_mounted) = card.mount(&[]) else { return };
    let trust = card.dies_by_test(&["trust-drops-writes"]);
    let wrong = trust["test"]["wrong"].as_u64().unwrap();
    assert!(wrong < trust["test"]["blocks"].as_u64().unwrap(), "only a part is dropped: {trust}");
}

/// 3. Addresses that wrap: the last 4 MiB of the 16 that exist have everything beyond them too.
#[test]
fn a_card_that_wraps_is_named() {
    let layer = format!("fake:real={},window={}", 16 * MIB, 4 * MIB);
    let Some(card) = FaultyCard::new("dying_wraps", &[&layer]) else { return };
    let Some(_mounted) = card.mount(&[]) else { return };
    card.dies_by_test(&["trust-wraps"]);
}

/// 4. Spare blocks used up: the registers of a real part, with the byte that says so.
#[test]
fn a_card_without_spare_blocks_is_named() {
    let folder = scratch("dying_spare");
    let text = std::fs::read_to_string(registers()).unwrap();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    assert_eq!((digits.len(), &digits[534..536]), (1024, "01"), "PRE_EOL_INFO[267] of the real part is normal");
    for pre_eol in ["02", "03"] {
        let dump = save(&folder, "dump.hex", format!("{}{pre_eol}{}", &digits[..534], &digits[536..]));
        dies(&folder, &dump, &["--registers", &dump], &["trust-spare"]);
    }
    // Life past its end is a reason of its own.
    let worn = save(&folder, "worn.hex", format!("{}030b{}", &digits[..534], &digits[538..]));
    dies(&folder, &worn, &["--registers", &worn], &["trust-life", "trust-spare"]);
}

/// 5. A burst of CRC errors.
#[test]
fn a_bus_with_crc_errors_is_named() {
    let line = |at: u32| {
        format!(
            "[{at}.1] mmcblk0: error -84 transferring data, sector {at}, nr 8, cmd response 0x900, card status 0x0\n"
        )
    };
    dies_by_log("dying_crc", &(1..40).map(line).collect::<String>(), &["trust-bus"]);
    let tuning = "mmc0: tuning execution failed: -5\nmmc0: error -84 whilst initialising MMC card\n";
    dies_by_log("dying_tuning", tuning, &["trust-bus"]);
}

/// 6. Stuck busy.
#[test]
fn a_card_that_stays_busy_is_named() {
    let log = "[9.1] mmc0: Card stuck being busy! __mmc_poll_for_busy\n[99.1] mmc0: Card stuck being busy! mmc_blk_fix_state\n";
    dies_by_log("dying_busy", log, &["trust-stuck"]);
    dies_by_log("dying_never", "mmc0: card never left busy state\n", &["trust-stuck"]);
}

/// 7. Discards that are accepted and ignored: a virtual card whose firmware does so, found by a probe.
#[test]
fn a_card_that_ignores_discards_is_named() {
    let folder = scratch("dying_discard");
    let profile = emmclab(["sim", "profiles", "generic-8g"]).exits(0).stdout;
    assert!(!profile.contains("trim_frees"));
    let deaf = save(&folder, "deaf.toml", profile.replace("[ftl]", "[ftl]\ntrim_frees = false"));
    let source = format!("sim:{deaf}");
    let probe = emmclab(["probe", &source, "--write", "--only", "discard", "--json"]).exits(0).stdout;
    let probe = save(&folder, "probe.json", probe);
    dies(&folder, &source, &["--registers", &source, "--probe", &probe], &["trust-discards"]);
}

/// 8. A capacity that is not there: a fake that is served as a file, found by a probe.
#[test]
fn a_card_with_a_wrong_capacity_is_named() {
    for (name, beyond) in [("dying_zeros", "zeros"), ("dying_fake", "wrap")] {
        let layer = format!("fake:real={},beyond={beyond}", 40 * MIB + 512);
        let Some(card) = FaultyCard::as_file(name, &[&layer]) else { return };
        let file = card.served.file().display().to_string();
        let probe = emmclab(["probe", &file, "--write", "--only", "capacity", "--destroy", "--json"]).exits(1).stdout;
        let (folder, source) = (scratch(&format!("{name}_probe")), card.source());
        let probe = save(&folder, "probe.json", probe);
        dies(&folder, &source, &["--registers", &source, "--probe", &probe], &["trust-capacity"]);
    }
}

/// 9. A cache that is lost although it was flushed: found by a file that was written before a power cut.
#[test]
fn a_card_that_loses_its_cache_is_named() {
    let layer = format!("volatile:from={},bytes={}", 8 * MIB, 4 * MIB);
    let Some(card) = FaultyCard::new("dying_cache", &[&layer]) else { return };
    let Some(mounted) = card.mount(&[]) else { return };
    let kept = card.point.join("kept").display().to_string();
    let (folder, source) = (scratch("dying_cache_log"), card.source());
    let log = save(&folder, "log", "");
    let witnesses = ["--registers", &source, "--log", &log, "--test-size", "16MiB"];
    // Nothing is wrong as long as there is power.
    emmclab([&["trust", "--keep", &kept], &witnesses[..]].concat()).exits(0);
    drop(mounted);
    card.served.ctl(&["cut"]);
    card.served.ctl(&["on"]);
    let _mounted = card.mount_again().expect("it was mounted before");
    let trust = dies(&folder, &source, &[&["--verify", &kept], &witnesses[..]].concat(), &["trust-lost-cache"]);
    assert!(trust["test"]["wrong"].as_u64().unwrap() <= 4 * MIB / 4096, "{trust}");
}

/// 10. One bad region: the errors that a real kernel logs of it.
#[test]
fn a_card_with_one_bad_region_is_named() {
    let layer = format!("fault:kind=read,area=user,from={},to={}", 20 * MIB, 21 * MIB);
    let Some(card) = FaultyCard::new("dying_region", &[&layer]) else { return };
    let Some(mut log) = KernelLog::from_now() else { return };
    // Direct: reads ahead of the page cache would fail beside the region.
    let input = format!("if={}", card.device());
    let reads = |at: u64| {
        let words = [&input, "of=/dev/null", "bs=1M", "count=1", &format!("skip={at}"), "iflag=direct"];
        succeeds("dd", &words)
    };
    let failed: Vec<u64> = (0..64).filter(|at| !reads(*at)).collect();
    assert_eq!(failed, [20]);
    let (folder, source) = (scratch("dying_region_log"), card.source());
    let messages = save(&folder, "log", log.text());
    let trust =
        dies(&folder, &source, &[card.device(), "--registers", &source, "--log", &messages], &["trust-bad-region"]);
    let what = trust["findings"][0]["what"].as_str().unwrap();
    let sector = |word: &str| word.parse::<u64>().ok();
    let found: Vec<u64> = what.split_whitespace().filter_map(sector).collect();
    let (from, to) = (20 * MIB / 512, 21 * MIB / 512);
    assert!(found.len() == 2 && found.iter().all(|sector| (from..to).contains(sector)), "{what}");
}
