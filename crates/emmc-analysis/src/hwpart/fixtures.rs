//! Cards for the tests: real dumps, and parts rebuilt from the figures that were published of them.

use emmc_port::{CardData, Format};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::ExtCsd;

use super::{HwPartPlan, LayoutRequest, plan};

pub(super) fn card(name: &str, ext_csd: ExtCsd) -> CardData {
    let mut card = CardData::new(name, Format::ExtCsdBinary);
    card.kind = Some(CardKind::Emmc);
    card.ext_csd = Some(ext_csd);
    card
}

fn built(name: &str, values: &[(u16, u16, u64)]) -> CardData {
    with(&card(name, ExtCsd::from_bytes([0; 512])), values)
}

/// The same card with some registers changed: offset, width, value.
pub(super) fn with(card: &CardData, values: &[(u16, u16, u64)]) -> CardData {
    let mut card = card.clone();
    let ext_csd = card.ext_csd.get_or_insert_with(ExtCsd::unknown);
    values.iter().for_each(|(offset, width, value)| ext_csd.set_uint(*offset, *width, *value));
    card
}

/// The same card with some bytes not known.
pub(super) fn without(card: &CardData, offset: u16, width: u16) -> CardData {
    let mut card = card.clone();
    if let Some(ext_csd) = &mut card.ext_csd {
        let (bytes, mut mask) = (*ext_csd.bytes(), *ext_csd.mask());
        mask[usize::from(offset)..usize::from(offset + width)].fill(0);
        *ext_csd = ExtCsd::with_mask(bytes, mask);
    }
    card
}

/// Micron S0J56 as the board vendor published it; registers that were not published are as on other parts of 5.1.
pub(super) fn s0j56() -> CardData {
    let published =
        [(224, 1, 1), (221, 1, 16), (212, 4, 31_080_448), (157, 3, 939), (226, 1, 252), (168, 1, 32), (192, 1, 8)];
    let assumed = [(160, 1, 7), (166, 1, 0x15), (167, 1, 0x1f), (494, 1, 3), (241, 1, 30), (222, 1, 1)];
    with(&built("s0j56", &published), &assumed)
}

/// The part of a Colibri T30: sizes before and after are published, its group is not; 4 MiB divides both.
pub(super) fn t30() -> CardData {
    built(
        "t30",
        &[(224, 1, 1), (221, 1, 8), (212, 4, 7_471_104), (157, 3, 456), (192, 1, 5), (160, 1, 3), (241, 1, 10)],
    )
}

fn dump(name: &str, hex: &str) -> CardData {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    let mut ext_csd = ExtCsd::unknown();
    for (offset, pair) in (0..512).zip(digits.chunks_exact(2)) {
        ext_csd.set_bits(offset, 0xff, pair[0] << 4 | pair[1]);
    }
    card(name, ext_csd)
}

macro_rules! dumps {
    ($($name:ident $part:literal)*) => {
        $(pub(super) fn $name() -> CardData {
            dump($part, include_str!(concat!("../../../../testdata/ext_csd_raw/", $part)))
        })*
    };
}

dumps! {
    klm_8g "samsung-klm-8g/samsung-klm-8g.ext_csd.hex"
    aaru_64g "aaru-64g/aaru-64g.ext_csd.hex"
    bjnb4r "samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex"
    ac100 "ac100-mmc32g/ac100-mmc32g.ext_csd.hex"
    at91_partial "at91bootstrap-107-partial/at91-107.bytes0-335.partial.hex"
}

/// The registers that its published partitioning log prints, read from that log: `Name [first-last] 0xNN`.
pub(super) fn cisco_hynix() -> CardData {
    let log = include_str!("../../../../testdata/hwpartition/cisco-hynix-hbg4e/sd_partition.txt");
    let mut values = Vec::new();
    for line in log.lines() {
        let Some((place, value)) = line.split_once('[').and_then(|(_, rest)| rest.split_once("] 0x")) else { continue };
        let (first, last) = place.split_once('-').unwrap_or((place, place));
        let (first, last): (u16, u16) = (first.parse().unwrap(), last.parse().unwrap());
        values.push((first, last - first + 1, u64::from_str_radix(value, 16).unwrap()));
    }
    assert_eq!(values.len(), 5);
    with(&card("cisco-hynix-hbg4e", ExtCsd::unknown()), &values)
}

pub(super) fn sd_card() -> CardData {
    let mut card = CardData::new("sd", Format::RegisterHex);
    card.kind = Some(CardKind::Sd);
    card
}

pub(super) fn request(enh_user: &str, gp: &[&str], wrrel: Option<&str>) -> LayoutRequest {
    let enh_user = (!enh_user.is_empty()).then(|| enh_user.parse().unwrap());
    LayoutRequest::new(enh_user, gp.iter().map(|gp| gp.parse().unwrap()), wrrel.map(|wrrel| wrrel.parse().unwrap()))
        .unwrap()
}

pub(super) fn planned(card: &CardData, enh_user: &str, gp: &[&str], wrrel: Option<&str>) -> HwPartPlan {
    plan(card, &request(enh_user, gp, wrrel))
}
