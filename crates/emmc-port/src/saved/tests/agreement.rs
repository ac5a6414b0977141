use emmc_regs::ext_csd::ExtCsd;

use super::*;
use crate::saved::hex_meaning::bytes_of;

fn raw(part: &str) -> [u8; 512] {
    let digits = bytes(&format!("ext_csd_raw/{part}/{part}.ext_csd.hex"));
    bytes_of(std::str::from_utf8(&digits).unwrap().trim()).try_into().unwrap()
}

fn ext_csd(content: impl AsRef<[u8]>) -> ExtCsd {
    read("f", content.as_ref()).unwrap().ext_csd.unwrap()
}

/// Bytes that two readings of one part may differ in, and why.
///
/// The raw register was read in U-Boot, mmc-utils' text later in Linux.
const RUN_TIME: [(u16, &str); 4] = [
    (33, "CACHE_CTRL: Linux turns the cache on"),
    (34, "POWER_OFF_NOTIFICATION: Linux sets it at start"),
    (161, "HPI_MGMT: Linux turns it on"),
    (175, "ERASE_GROUP_DEF: volatile, and set by Linux at start"),
];

#[test]
fn bytes_and_text_of_a_part_agree() {
    let raw = raw("samsung-klm-8g");
    let text = ext_csd(bytes("mmc_extcsd_text/samsung-klm-8g/extcsd.txt"));
    let differing = |offset: &u16| {
        let (index, mask) = (usize::from(*offset), text.mask()[usize::from(*offset)]);
        (raw[index] ^ text.bytes()[index]) & mask != 0
    };
    let differing: Vec<u16> = (0..512).filter(differing).collect();
    let known: Vec<u16> = RUN_TIME.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(differing, known);
}

#[test]
fn every_spelling_of_the_same_bytes_gives_the_same_register() {
    for part in ["samsung-klm-8g", "samsung-bjnb4r-32g", "aaru-64g", "ac100-mmc32g"] {
        let raw = raw(part);
        let expected = ExtCsd::from_bytes(raw);
        let digits: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
        let reversed: String = raw.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        let rows = |row: fn(usize, &[u8]) -> String, bytes: usize| {
            raw.chunks(bytes).enumerate().map(|(index, chunk)| row(index, chunk)).collect::<String>()
        };
        for writing in [
            digits.clone(),
            digits.to_uppercase(),
            format!("\u{feff}{digits}\r\n"),
            reversed.clone(),
            format!("# cat /sys/kernel/debug/mmc0/mmc0:0001/ext_csd\n{reversed}\n# "),
            format!("ext_csd: {digits}"),
            digits.as_bytes().chunks(60).map(|row| format!("{}\n", std::str::from_utf8(row).unwrap())).collect(),
            digits.as_bytes().chunks(32).map(|row| format!("{}\n", std::str::from_utf8(row).unwrap())).collect(),
            rows(|_, chunk| chunk.iter().map(|byte| format!("0x{byte:02x}, ")).collect::<String>() + "\n", 12),
            rows(|index, chunk| format!("{:08x}: {}\n", index * 16, spaced_row(chunk, 1)), 16),
            rows(|index, chunk| format!("{:08x}: {}  ..abcd..\n", index * 16, spaced_row(chunk, 2)), 16),
            rows(|index, chunk| format!("{:08x}:{}    ........\n", 0x8200_0000 + index * 16, spaced_row(chunk, 1)), 16),
            rows(|index, chunk| format!("{:07x}{}\n", index * 16, spaced_row(&swapped(chunk), 2)), 16),
            rows(|index, chunk| format!("{:07o}{}\n", index * 16, spaced_row(chunk, 1)), 16),
            rows(|index, chunk| format!("{:07}{}\n", index * 16, spaced_row(chunk, 1)), 16),
            format!("=> mmc reg read extcsd all\nEXT_CSD:{}\n=> ", rows(uboot_row, 10)),
            rows(
                |index, chunk| chunk.iter().enumerate().map(|(at, byte)| uboot_byte(index * 8 + at, *byte)).collect(),
                8,
            ),
        ] {
            assert_eq!(ext_csd(&writing), expected, "{part}: {}", &writing[..60]);
        }
        assert_eq!(ext_csd(raw), expected);
        let format = |content: &str| read("f", content.as_bytes()).unwrap().origins[0].format;
        assert_eq!(format(&digits), Format::ExtCsdHex);
        assert_eq!(format(&reversed), Format::ExtCsdHexReversed);
        assert_eq!(format(&format!("EXT_CSD:{}", rows(uboot_row, 10))), Format::UBootRegRead);
    }
}

fn spaced_row(chunk: &[u8], group: usize) -> String {
    let groups = chunk.chunks(group).map(|group| group.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    groups.map(|group| format!(" {group}")).collect()
}

fn swapped(chunk: &[u8]) -> Vec<u8> {
    chunk.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect()
}

fn uboot_row(index: usize, chunk: &[u8]) -> String {
    format!("\n{:03}: {}", index * 10, spaced_row(chunk, 1))
}

fn uboot_byte(offset: usize, byte: u8) -> String {
    format!("EXT_CSD[{offset}]: 0x{byte:02x}\n")
}

#[test]
fn a_reversed_register_is_noted() {
    let mut raw = raw("aaru-64g");
    raw.reverse();
    let data = read("f", &raw).unwrap();
    assert_eq!(data.origins[0].notes, ["byte 511 is first, as printed by old kernels; the order was reversed"]);
}
