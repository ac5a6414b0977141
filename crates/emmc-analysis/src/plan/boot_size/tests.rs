use emmc_port::Format;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd};

use super::*;

/// A card of a vendor with boot areas and an RPMB of these sizes in 128 KiB.
fn card(mid: u8, boot: u8, rpmb: u8) -> CardData {
    let mut ext_csd = [0; EXT_CSD_BYTES];
    (ext_csd[192], ext_csd[226], ext_csd[168]) = (8, boot, rpmb);
    let mut cid = [0; 16];
    cid[0] = mid;
    CardData {
        kind: Some(CardKind::Emmc),
        cid: Some(emmc_regs::cid::Cid(cid)),
        ext_csd: Some(ExtCsd::from_bytes(ext_csd)),
        ..CardData::new("card", Format::Live)
    }
}

fn mib(size: u64) -> Bytes {
    Bytes(size << 20)
}

fn refused(plan: &BootSizePlan) -> Vec<&str> {
    assert!(!plan.ok && plan.sequence.is_empty() && plan.u_boot.commands.is_empty());
    plan.refusals.iter().map(|refusal| refusal.rule.as_str()).collect()
}

/// U-Boot's own arguments: sizes in 128 KiB.
#[test]
fn each_vendor_has_its_sequence() {
    let sent = |plan: &BootSizePlan| {
        assert!(plan.ok, "{:?}", plan.refusals);
        plan.sequence.iter().map(|command| (command.opcode, command.argument)).collect::<Vec<_>>()
    };
    let samsung = boot_size(&card(0x15, 32, 32), mib(8), None);
    assert_eq!(sent(&samsung), [(62, 0xefac_62ec), (62, 0x00cb_aea7), (62, 64), (62, 32)]);
    assert_eq!(samsung.u_boot.commands, ["mmc bootpart-resize N 8 4"]);
    let sandisk = boot_size(&card(0x45, 32, 32), mib(31), Some(mib(16)));
    assert_eq!(sent(&sandisk), [(62, 0x254d_dec4), (62, 248), (62, 128)]);
    assert_eq!(sandisk.u_boot.commands, ["mmc bootpart-resize N 31 16"]);
    let micron = boot_size(&card(0x13, 32, 32), mib(16), None);
    let write = |index: u32, value: u32| (6, 0x0300_0000 | index << 16 | value << 8);
    assert_eq!(sent(&micron), [write(175, 1), write(125, 128), write(126, 0), write(127, 0), write(155, 1)]);
    assert!(micron.lost.iter().any(|lost| lost.contains("PARTITION_SETTING_COMPLETED")));
}

#[test]
fn what_no_command_does_is_refused() {
    for (plan, expected) in [
        (boot_size(&card(0xfe, 32, 32), mib(8), None), "no-command"),
        (boot_size(&card(0x15, 32, 32), mib(4), None), "same"),
        (boot_size(&card(0x15, 32, 32), mib(4), Some(mib(4))), "same"),
        (boot_size(&card(0x15, 32, 1), mib(8), None), "rpmb-size"),
        (boot_size(&card(0x15, 32, 32), mib(0), None), "size"),
        (boot_size(&card(0x15, 32, 32), mib(32), None), "size"),
        (boot_size(&card(0x15, 32, 32), Bytes(1536 << 10), None), "size"),
        (boot_size(&card(0x15, 32, 32), mib(8), Some(Bytes(u64::MAX))), "size"),
        (boot_size(&card(0x13, 32, 32), mib(8), Some(mib(8))), "rpmb-fixed"),
    ] {
        assert_eq!(refused(&plan), [expected]);
    }
    let mut sd = card(0x15, 32, 32);
    sd.kind = Some(CardKind::Sd);
    assert_eq!(refused(&boot_size(&sd, mib(8), None)), ["not-emmc"]);
    let mut closed = card(0x13, 32, 32);
    let mut bytes = [0; EXT_CSD_BYTES];
    (bytes[192], bytes[226], bytes[155]) = (8, 32, 1);
    closed.ext_csd = Some(ExtCsd::from_bytes(bytes));
    assert_eq!(refused(&boot_size(&closed, mib(8), None)), ["completed"]);
    let nothing = CardData::new("card", Format::Live);
    assert_eq!(refused(&boot_size(&nothing, mib(8), None)), ["register-unknown"]);
}
