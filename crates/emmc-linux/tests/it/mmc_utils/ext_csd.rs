//! `mmc extcsd read` through the shim: the import of its text equals the bytes of the shim.

use std::fs;
use std::path::{Path, PathBuf};

use emmc_port::saved::SavedSource;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, Field, fields};

use crate::mmc_utils::{Bytes, Mistake, Outcome, mmc_is_there};
use crate::shim::{self, scratch, testdata};

/// Fewest compared registers of a dump of revision 8; each byte of an array counts.
const REGISTERS_MIN: usize = 150;
/// Of a dump of revision 5 and 6, which mmc-utils says less about.
const REGISTERS_MIN_OLD: usize = 60;
/// Of all made-up bytes together.
const REGISTERS_MIN_MADE_UP: usize = 4500;

/// What mmc-utils gets wrong in EXT_CSD.
///
/// Source: JESD84-B51 clause 7.4.
const MMC_UTILS_MISTAKES: &[Mistake<ExtCsd>] = &[
    Mistake {
        field: "CACHE_SIZE",
        applies: |ext_csd| ext_csd.bit(252, 7) == Some(true),
        reason: "prints a CACHE_SIZE from 256 GiB on as negative, which the importer refuses",
    },
    Mistake {
        field: "CACHE_SIZE",
        applies: |ext_csd| ext_csd.uint(249, 4).is_some_and(|kilobits| kilobits % 8 != 0),
        reason: "rounds CACHE_SIZE, which counts kilobits, down to whole KiB",
    },
    Mistake {
        field: "CMDQ_DEPTH",
        applies: |ext_csd| ext_csd.bits(307, 0xe0).is_some_and(|reserved| reserved != 0),
        reason: "drops the reserved bits of CMDQ_DEPTH",
    },
];

#[test]
fn mmc_utils_reads_the_same_ext_csd_of_real_parts() {
    let Some(mmc) = Mmc::new("dumps") else { return };
    for (name, bytes) in dumps() {
        let mut outcome = Outcome::default();
        compare(&mmc, &name, bytes, &mut outcome);
        println!("{name}:");
        outcome.check(if bytes[192] == 8 { REGISTERS_MIN } else { REGISTERS_MIN_OLD });
    }
}

#[test]
fn mmc_utils_reads_the_same_ext_csd_of_random_bytes() {
    let Some(mmc) = Mmc::new("bytes") else { return };
    let mut outcome = Outcome::default();
    for rev in 0..=9 {
        for seed in 0..8 {
            let mut bytes: [u8; EXT_CSD_BYTES] = Bytes(seed * 10 + u64::from(rev)).array();
            bytes[192] = rev;
            // One refused text a revision is enough to show it.
            bytes[252] &= if seed == 0 { 0xff } else { 0x7f };
            compare(&mmc, &format!("revision {rev} seed {seed}"), bytes, &mut outcome);
        }
    }
    outcome.check(REGISTERS_MIN_MADE_UP);
}

/// Revisions that mmc-utils prints nothing about, and succeeds.
fn is_passed_over(rev: u8) -> bool {
    rev == 4 || rev >= 9
}

/// Every complete dump of testdata.
fn dumps() -> Vec<(String, [u8; EXT_CSD_BYTES])> {
    let mut dumps = Vec::new();
    for part in fs::read_dir(testdata("ext_csd_raw")).unwrap() {
        for file in fs::read_dir(part.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = path.extension().is_some_and(|end| end == "hex").then(|| shim::hex_dump(&path)).flatten();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            dumps.extend(bytes.map(|bytes| (name, bytes)));
        }
    }
    assert!(dumps.len() >= 4, "only {} complete dumps", dumps.len());
    dumps
}

/// Compares every register that the text of mmc-utils gives away with the bytes.
fn compare(mmc: &Mmc, name: &str, bytes: [u8; EXT_CSD_BYTES], outcome: &mut Outcome) {
    let text = mmc.extcsd_read(bytes);
    if text.is_empty() {
        assert!(is_passed_over(bytes[192]), "{name}: mmc-utils prints nothing");
        return;
    }
    let truth = ExtCsd::from_bytes(bytes);
    let read = match SavedSource::new(name, text).read() {
        Ok(data) => data.ext_csd.unwrap_or_else(ExtCsd::unknown),
        Err(error) => {
            let negative = error.to_string().contains("CACHE_SIZE").then(|| mistake("CACHE_SIZE", &truth)).flatten();
            return outcome.count(false, negative, || error.to_string());
        }
    };
    for field in fields() {
        for (offset, width) in registers(field) {
            let known = read.mask().get(offset..offset + width).unwrap();
            if known.iter().all(|&mask| mask == 0) {
                continue;
            }
            let masked = |bytes: &[u8; EXT_CSD_BYTES]| -> Vec<u8> {
                bytes[offset..offset + width].iter().zip(known).map(|(byte, mask)| byte & mask).collect()
            };
            let (found, expected) = (masked(read.bytes()), masked(&bytes));
            let mistake =
                MMC_UTILS_MISTAKES.iter().find(|mistake| mistake.field == field.name && (mistake.applies)(&truth));
            outcome.count(found == expected, mistake.map(|mistake| mistake.reason), || {
                format!(
                    "{name}: {field} [{offset}]: {expected:02x?}; by the text of mmc-utils {found:02x?} of {known:02x?}"
                )
            });
        }
    }
}

/// Why mmc-utils may differ in a field of this register.
fn mistake(field: &str, truth: &ExtCsd) -> Option<&'static str> {
    let mistake = MMC_UTILS_MISTAKES.iter().find(|mistake| mistake.field == field && (mistake.applies)(truth));
    mistake.map(|mistake| mistake.reason)
}

/// The registers of a field: itself, or each byte of an array.
fn registers(field: &Field) -> Vec<(usize, usize)> {
    let (offset, width) = (usize::from(field.offset), usize::from(field.width));
    if width <= 8 { vec![(offset, width)] } else { (offset..offset + width).map(|offset| (offset, 1)).collect() }
}

/// `mmc` in front of a card that is two files of one test's own.
struct Mmc {
    shim: &'static Path,
    ext_csd: PathBuf,
    log: PathBuf,
}

impl Mmc {
    fn new(test: &str) -> Option<Self> {
        let shim = if mmc_is_there() { shim::build()? } else { return None };
        Some(Self { shim, ext_csd: scratch(&format!("{test}.bin")), log: scratch(&format!("{test}.log")) })
    }

    fn extcsd_read(&self, bytes: [u8; EXT_CSD_BYTES]) -> String {
        fs::write(&self.ext_csd, bytes).unwrap();
        let mut command = shim::command(self.shim, "mmc", &self.ext_csd, &self.log);
        let output = command.args(["extcsd", "read", shim::DEVICE]).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "mmc extcsd read: {}\n{complaint}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
