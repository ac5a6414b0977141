#![no_main]
//! Any bytes as every register but EXT_CSD, and as a command.

use emmc_regs::cid::Cid;
use emmc_regs::command::Command;
use emmc_regs::csd::Csd;
use emmc_regs::ocr::Ocr;
use emmc_regs::r1::R1;
use emmc_regs::scr::Scr;
use emmc_regs::ssr::Ssr;
use emmc_regs::{CardKind, manufacturer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: ([u8; 16], [u8; 64], u32, Option<u8>, u8, &str)| {
    let (sixteen, sixty_four, word, rev, index, text) = data;
    for kind in [CardKind::Emmc, CardKind::Sd] {
        let cid = Cid(sixteen);
        let identity = cid.decode(kind, rev);
        drop(identity.manufacture_date.to_string());
        manufacturer::lookup(kind, identity.manufacturer_id, identity.oemid, &identity.product_name_raw);
        let csd = Csd::new(kind, sixteen);
        csd.capacity_bytes();
        csd.tran_speed_hz();
        let fields = [cid.fields(kind, rev), csd.fields(), Ocr(word).fields(kind), R1(word).fields(kind)];
        fields.iter().flatten().for_each(|field| drop(field.value.to_string()));
        let command = Command::decode(index & 0x3f, word, kind);
        let (again, argument) = command.encode();
        assert_eq!(Command::decode(again, argument, kind), command);
    }
    let scr = sixteen.first_chunk().map(|bytes| Scr(*bytes).fields()).unwrap_or_default();
    let ssr = Ssr(sixty_four).fields();
    scr.iter().chain(&ssr).for_each(|field| drop(field.value.to_string()));
    let _ = Cid::parse_hex(text);
    let _ = Csd::parse_hex(CardKind::Sd, text);
});
