//! `mmc cid read -v`, `mmc csd read -v` and `mmc scr read -v` against the registers' own rows.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use emmc_regs::cid::Cid;
use emmc_regs::csd::Csd;
use emmc_regs::date::ManufactureDate;
use emmc_regs::row::{FieldValue, RegisterField};
use emmc_regs::scr::Scr;
use emmc_regs::{CardKind, Persistence};

use crate::mmc_utils::{Bytes, Mistake, Outcome, mmc_is_there};
use crate::shim::{scratch, testdata};

/// What mmc-utils gets wrong in CID, CSD and SCR.
///
/// Source: JESD84-B51 clauses 7.2 and 7.3, SD physical layer simplified specification clauses 5.2, 5.3 and 5.6.
const MMC_UTILS_MISTAKES: &[Mistake<RegisterField>] = &[
    Mistake {
        field: "MDT",
        applies: |row| row.width_bits == 8,
        reason: "takes the month of an eMMC for the year and the year for the month, and every year for one before 2013",
    },
    Mistake {
        field: "MDT",
        applies: |row| row.width_bits == 12,
        reason: "counts the months of SD from 0, so that every card is a month younger",
    },
    Mistake { field: "NSAC", applies: |row| row.raw != 0, reason: "prints hundreds of clocks as clocks" },
    Mistake { field: "TAAC", applies: |row| row.raw & 0x80 != 0, reason: "drops the reserved bit 7 of TAAC" },
    Mistake {
        field: "TRAN_SPEED",
        applies: |row| row.raw & 0x80 != 0,
        reason: "drops the reserved bit 7 of TRAN_SPEED",
    },
    Mistake {
        field: "CMD_SUPPORT",
        applies: |row| row.raw & 0xc != 0,
        reason: "knows two of the four bits of CMD_SUPPORT, without CMD48 and CMD58",
    },
    Mistake {
        field: "CAPACITY",
        applies: |row| row.value == FieldValue::Undefined,
        reason: "prints a capacity where the register has none (C_SIZE 0xfff, a reserved READ_BL_LEN)",
    },
];

/// Fewer fields than this would mean that the comparison no longer compares.
const MINIMUM: usize = 1700;

/// One card's registers as sysfs prints them.
struct Ids {
    kind: CardKind,
    cid: [u8; 16],
    csd: [u8; 16],
    scr: [u8; 8],
}

#[test]
fn mmc_utils_reads_the_same_cid_csd_and_scr() {
    if !mmc_is_there() {
        return;
    }
    let mut outcome = Outcome::default();
    for ids in known().into_iter().chain(made_up(50)) {
        compare("cid", &ids, Cid(ids.cid).fields(ids.kind, Some(8)), &mut outcome);
        let csd = Csd::new(ids.kind, ids.csd);
        compare("csd", &ids, csd.fields().into_iter().chain([capacity(&csd)]).collect(), &mut outcome);
        if ids.kind == CardKind::Sd {
            compare("scr", &ids, Scr(ids.scr).fields(), &mut outcome);
        }
    }
    outcome.check(MINIMUM);
}

/// Compares what `mmc REGISTER read -v` prints with the rows of that register.
fn compare(register: &str, ids: &Ids, rows: Vec<RegisterField>, outcome: &mut Outcome) {
    let printed = read(register, ids);
    for row in &rows {
        let Some(text) = printed.get(row.name) else { continue };
        let same = agrees(row, text, ids.kind);
        let mistake = MMC_UTILS_MISTAKES.iter().find(|mistake| mistake.field == row.name && (mistake.applies)(row));
        outcome.count(same, mistake.map(|mistake| mistake.reason), || {
            format!("{} {register} {}: {} is {:#x}; mmc-utils {text:?}", ids.kind, hex(&ids.cid), row.name, row.raw)
        });
    }
}

/// Whether a printed value equals the row's; most begin with the bits, as hexadecimal digits.
fn agrees(row: &RegisterField, text: &str, kind: CardKind) -> bool {
    match (row.name, number(text)) {
        ("MDT", Some(raw)) => raw == row.raw && dates(row, kind).iter().any(|date| text.ends_with(date.as_str())),
        ("NSAC", Some(clocks)) => row.value == FieldValue::Number(clocks),
        ("CAPACITY", _) => text.contains(&format!("({} bytes", row.value)),
        (_, Some(raw)) => raw == row.raw,
        (_, None) => text == row.value.to_string(),
    }
}

/// `2015 nov`, for every month that MDT may mean.
fn dates(row: &RegisterField, kind: CardKind) -> Vec<String> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let date = match kind {
        CardKind::Emmc => ManufactureDate::emmc(row.raw as u8, Some(8)),
        CardKind::Sd => ManufactureDate::sd(row.raw as u16),
    };
    let month = |month: u8| usize::from(month).checked_sub(1).and_then(|index| MONTHS.get(index)).copied();
    let candidates = date.candidates().iter();
    candidates.map(|date| format!("{} {}", date.year, month(date.month).unwrap_or("invalid"))).collect()
}

/// The capacity, which mmc-utils prints as if it were a field.
fn capacity(csd: &Csd) -> RegisterField {
    let bytes = csd.capacity_bytes();
    RegisterField {
        register: "CSD",
        name: "CAPACITY",
        offset: 0,
        width_bits: 0,
        raw: 0,
        value: bytes.into(),
        unit: "B",
        persistence: Persistence::Kept,
    }
}

/// The lines `NAME: VALUE` that mmc-utils prints.
fn read(register: &str, ids: &Ids) -> BTreeMap<String, String> {
    let folder = scratch("ids");
    fs::create_dir_all(&folder).unwrap();
    let kind = if ids.kind == CardKind::Sd { "SD" } else { "MMC" };
    for (name, content) in
        [("type", kind.to_string()), ("cid", hex(&ids.cid)), ("csd", hex(&ids.csd)), ("scr", hex(&ids.scr))]
    {
        fs::write(folder.join(name), content + "\n").unwrap();
    }
    let output = Command::new("mmc").args([register, "read", "-v"]).arg(&folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
    lines.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// The number at the start of a value; `None` for text.
fn number(text: &str) -> Option<u64> {
    let word = text.split_whitespace().next()?;
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Registers of real cards.
fn known() -> Vec<Ids> {
    let sysfs = |path: &str| fs::read_to_string(testdata("sysfs").join(path)).unwrap();
    let card = |kind, folder: &str| Ids {
        kind,
        cid: Cid::parse_hex(&sysfs(&format!("{folder}/cid"))).unwrap().0,
        csd: Csd::parse_hex(kind, &sysfs(&format!("{folder}/csd"))).unwrap().bytes,
        scr: if kind == CardKind::Sd { Scr::parse_hex(&sysfs(&format!("{folder}/scr"))).unwrap().0 } else { [0; 8] },
    };
    vec![
        card(CardKind::Emmc, "board/sys/block/mmcblk0/device"),
        card(CardKind::Emmc, "old-kernel/block/mmcblk0/device"),
        card(CardKind::Sd, "board/sys/block/mmcblk1/device"),
    ]
}

/// Registers of no card: every bit varies but the letters.
fn made_up(count: u64) -> impl Iterator<Item = Ids> {
    (0..count).map(|seed| {
        let mut bytes = Bytes(seed);
        let mut ids = Ids {
            kind: if seed % 2 == 0 { CardKind::Emmc } else { CardKind::Sd },
            cid: bytes.array(),
            csd: bytes.array(),
            scr: bytes.array(),
        };
        let letters = if ids.kind == CardKind::Sd { 1..8 } else { 3..9 };
        for letter in &mut ids.cid[letters] {
            *letter = b'A' + *letter % 26;
        }
        ids
    })
}
