#![no_main]
//! Any registers and any request: a plan that is accepted keeps its own rules.

use emmc_analysis::hwpart::{EnhRequest, GpArgument, LayoutRequest, options, plan};
use emmc_port::{CardData, Format};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::ExtCsd;
use emmc_units::{Bytes, Size};
use libfuzzer_sys::fuzz_target;

type Piece = (u8, u32, bool);

fuzz_target!(|data: (&[u8], u32, Piece, Vec<(u8, Piece)>, Option<bool>)| {
    let (registers, start, piece, partitions, wrrel) = data;
    let mut bytes = [0; 512];
    bytes.iter_mut().zip(registers).for_each(|(to, from)| *to = *from);
    let mut card = CardData::new("fuzz", Format::ExtCsdBinary);
    card.kind = Some(CardKind::Emmc);
    card.ext_csd = Some(ExtCsd::from_bytes(bytes));
    drop(options(&card));
    let size = |(how, number, _): Piece| match how % 3 {
        0 => Size::Max,
        1 => Size::Percent((number % 101) as u8),
        _ => Size::Exact(Bytes(u64::from(number) << 12)),
    };
    let enh = EnhRequest { start: Bytes(u64::from(start) << 12), size: size(piece) };
    let gps = partitions.into_iter().filter_map(|(number, piece)| {
        let enh = if piece.2 { ":enh" } else { "" };
        format!("{}:{}{enh}", number % 6, size(piece)).parse::<GpArgument>().ok()
    });
    let wrrel = wrrel.and_then(|on| if on { "on" } else { "off" }.parse().ok());
    let Ok(request) = LayoutRequest::new(piece.2.then_some(enh), gps, wrrel) else { return };
    let plan = plan(&card, &request);
    assert_eq!(plan.ok, plan.refusals.is_empty());
    assert_eq!(plan.ok, !plan.writes.is_empty());
    if plan.ok {
        assert_eq!(plan.writes.last().map(|write| write.offset), Some(155));
        assert!(plan.layout.is_some());
    }
});
