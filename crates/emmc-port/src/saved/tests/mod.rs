use std::path::{Path, PathBuf};

use super::*;
use crate::Format;

mod agreement;
mod mutations;
mod real;
mod refused;
mod tools;
mod words;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn bytes(file: &str) -> Vec<u8> {
    let path = testdata().join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_file(file: &str) -> Result<CardData, String> {
    read(file, &bytes(file)).map_err(|error| error.to_string())
}

/// Every file of the kinds that are saved sources.
fn real_files() -> Vec<String> {
    let kinds = [
        "ext_csd_raw",
        "mmc_extcsd_text",
        "uboot_mmc_info",
        "hwpartition",
        "seeds_console",
        "sdmon",
        "emmcparm",
        "cmd56_raw",
        "ids",
        "mmc_utils_ids",
        "sysfs_text",
        "kernel_log",
        "lsblk_json",
    ];
    let mut files = Vec::new();
    for kind in kinds {
        for part in std::fs::read_dir(testdata().join(kind)).unwrap().map(|part| part.unwrap().path()) {
            if part.is_dir() {
                files.extend(std::fs::read_dir(part).unwrap().map(|file| file.unwrap().path()));
            } else {
                files.push(part);
            }
        }
    }
    let relative = |file: PathBuf| file.strip_prefix(testdata()).unwrap().to_str().unwrap().to_string();
    let mut files: Vec<String> = files.into_iter().map(relative).collect();
    files.sort();
    files
}

#[test]
fn a_source_can_be_read_repeatedly() {
    let source = SavedSource::new("-", bytes("ids/samsung-bjnb4r-32g/cid"));
    let first = source.read().unwrap();
    assert_eq!(source.read().unwrap(), first);
    assert_eq!((first.name(), first.origins[0].format), ("-".into(), Format::RegisterHex));
}

#[test]
fn a_log_of_several_forms_gives_the_values_of_each() {
    let log = [
        bytes("seeds_console/extcsd_health.txt"),
        bytes("seeds_console/lsblk_colibri-imx6s.txt"),
        bytes("seeds_console/fdisk_colibri-imx6s.txt"),
        bytes("seeds_console/df_colibri-imx6s.txt"),
        bytes("seeds_console/emmcparm_bad_block.txt"),
    ]
    .concat();
    let data = read("support.log", &log).unwrap();
    assert_eq!(data.name(), "support.log");
    let formats: Vec<Format> = data.origins.iter().map(|origin| origin.format).collect();
    assert_eq!(formats, [Format::ChromiumOsExtCsd, Format::VendorReport, Format::BlockLayerText]);
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.byte(268), ext_csd.byte(192)), (Some(2), Some(7)));
    assert_eq!((data.blocks.disks.len(), data.blocks.filesystems.len(), data.reports.len()), (3, 2, 1));
}

#[test]
fn contradicting_forms_are_reported() {
    let both = |first: &str, second: &str| read("log", format!("{first}\n{second}\n").as_bytes());
    let background = both("Background operations status [BKOPS_STATUS: 0x02]", "EXT_CSD[246]: 0x01").unwrap();
    assert_eq!(background.ext_csd.as_ref().unwrap().byte(246), Some(2));
    assert_eq!(
        background.conflicts,
        ["BKOPS_STATUS is 0x02 in one part of log and 0x01 in another part of log; the first is used"]
    );
    let life = both("eMMC Life Time Estimation A [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A]: 0x02", "EXT_CSD[268]: 0x03");
    let message = life.unwrap_err().to_string();
    assert!(message.ends_with("found DEVICE_LIFE_TIME_EST_TYP_A 0x03"), "{message}");
    let two = both("  Extended CSD rev 1.8 (MMC 5.1)", "EXT_CSD revision [192] = 1.7 (for MMC v5.0x)");
    assert_eq!(
        two.unwrap_err().to_string(),
        "another part of log: not the same card as one part of log: expected EXT_CSD_REV 0x08, found 0x07"
    );
}
