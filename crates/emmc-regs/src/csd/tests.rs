use super::*;
use crate::layout::assert_orderly;
use crate::row::FieldValue;

fn csd(kind: CardKind, text: &str) -> Csd {
    Csd::parse_hex(kind, text).unwrap()
}

fn classes(csd: &Csd) -> Vec<u8> {
    (0..=u8::MAX).filter(|class| csd.has_class(*class)).collect()
}

fn value(csd: &Csd, name: &str) -> String {
    let fields = csd.fields();
    let field = fields.iter().find(|field| field.name == name).unwrap();
    format!("{}{}{}", field.value, if field.unit.is_empty() { "" } else { " " }, field.unit)
}

#[test]
fn the_toshiba_csd_of_the_ac100_is_decoded() {
    // MMC32G, 29.8 GiB: the capacity is in EXT_CSD.
    let csd = csd(CardKind::Emmc, "900e00320f5903ffffffffe796400000");
    for (name, expected) in [
        ("CSD_STRUCTURE", "1.2"),
        ("SPEC_VERS", "4.0 and later"),
        ("TAAC", "1000000 ns"),
        ("NSAC", "0 clocks"),
        ("TRAN_SPEED", "26000000 Hz"),
        ("CCC", "basic, block read, block write, erase, write protection, lock card"),
        ("READ_BL_LEN", "512 B"),
        ("C_SIZE", "see EXT_CSD SEC_COUNT"),
        ("VDD_R_CURR_MIN", "100 mA"),
        ("VDD_W_CURR_MAX", "200 mA"),
        ("C_SIZE_MULT", "512"),
        ("ERASE_GRP_SIZE", "32"),
        ("WP_GRP_SIZE", "8 erase groups"),
        ("R2W_FACTOR", "32 x"),
        ("FILE_FORMAT", "hard disk with partition table"),
        ("CRC", "stripped by the host controller"),
    ] {
        assert_eq!(value(&csd, name), expected, "{name}");
    }
    assert_eq!(csd.capacity_bytes(), None);
    assert_eq!(csd.erase_group_sectors(), Some(1024));
    assert_eq!(csd.write_protect_group_sectors(), Some(8192));
    assert_eq!(classes(&csd), [0, 2, 4, 5, 6, 7]);
    assert_eq!((csd.perm_write_protect(), csd.tmp_write_protect(), csd.copy()), (false, false, false));
}

#[test]
fn a_samsung_csd_with_its_checksum_is_decoded() {
    // M8G1GC of an Orange Pi Plus; the host kept the checksum.
    let csd = csd(CardKind::Emmc, "d02701320f5903fff6dbffef8e40400d");
    assert_eq!(csd.crc(), Crc::Matches);
    assert_eq!(value(&csd, "CSD_STRUCTURE"), "see EXT_CSD CSD_STRUCTURE");
    assert_eq!(value(&csd, "TAAC"), "15000000 ns");
    assert_eq!(value(&csd, "NSAC"), "100 clocks");
    assert_eq!(value(&csd, "COPY"), "1");
    assert_eq!((csd.erase_group_sectors(), csd.tran_speed_hz()), (Some(1024), Some(26_000_000)));
    assert!(csd.copy());
}

#[test]
fn sd_csds_of_both_common_versions_are_decoded() {
    // SD16G: 15 523 119 104 bytes; SN512: 511 868 665 856 bytes.
    let phison = csd(CardKind::Sd, "400e00325b59000073a77f800a4000eb");
    assert_eq!((phison.layout(), phison.crc()), (CsdLayout::SdV2, Crc::Matches));
    assert_eq!(phison.capacity_bytes(), Some(15_523_119_104));
    assert_eq!((phison.tran_speed_hz(), phison.taac_ns()), (Some(25_000_000), Some(1e6)));
    assert_eq!(value(&phison, "C_SIZE"), "15159296 KiB");
    assert_eq!(value(&phison, "CCC"), "basic, block read, block write, erase, lock card, application specific, switch");
    assert_eq!((phison.erase_group_sectors(), phison.write_protect_group_sectors()), (Some(1), None));

    let sandisk = csd(CardKind::Sd, "400e0032db79000ee5b77f800a404000");
    assert_eq!(sandisk.capacity_bytes(), Some(511_868_665_856));
    assert!(value(&sandisk, "CCC").ends_with("switch, extension"));

    // CSD version 1.0 with blocks of 1024 bytes, put together by hand.
    let mut bytes = [0; 16];
    for (hi, lo, raw) in [(103, 96, 0x32), (83, 80, 10), (73, 62, 3983), (49, 47, 7), (45, 39, 31), (38, 32, 127)] {
        crate::bits::set_bits(&mut bytes, hi, lo, raw);
    }
    crate::bits::set_bits(&mut bytes, 25, 22, 9);
    let mut old = Csd::new(CardKind::Sd, bytes);
    assert_eq!((old.layout(), old.capacity_bytes()), (CsdLayout::SdV1, Some(3984 * 512 * 1024)));
    assert_eq!((old.erase_group_sectors(), old.write_protect_group_sectors()), (Some(32), None));
    crate::bits::set_bits(&mut old.bytes, 31, 31, 1);
    assert_eq!(old.write_protect_group_sectors(), Some(128 * 32));
    crate::bits::set_bits(&mut old.bytes, 46, 46, 1);
    assert_eq!((old.erase_group_sectors(), old.write_protect_group_sectors()), (Some(1), Some(128 * 32)));
    crate::bits::set_bits(&mut old.bytes, 83, 80, 12);
    assert_eq!((old.capacity_bytes(), value(&old, "READ_BL_LEN")), (None, "undefined B".into()));

    // SDUC: the largest C_SIZE is 128 TiB.
    crate::bits::set_bits(&mut old.bytes, 127, 126, 2);
    crate::bits::set_bits(&mut old.bytes, 75, 48, 0xfff_ffff);
    assert_eq!((old.layout(), old.capacity_bytes()), (CsdLayout::SdV3, Some(128 << 40)));
    crate::bits::set_bits(&mut old.bytes, 127, 126, 3);
    assert_eq!((old.layout(), old.capacity_bytes()), (CsdLayout::SdReserved, None));
    assert_eq!((old.taac_ns(), old.tran_speed_hz(), classes(&old)), (None, None, vec![]));
    assert_eq!(old.fields().len(), 2);
}

#[test]
fn capacity_and_groups_of_a_small_mmc_are_decoded() {
    let mut csd = Csd::new(CardKind::Emmc, [0; 16]);
    for (hi, lo, raw) in [(83, 80, 9), (73, 62, 1999), (49, 47, 5), (46, 42, 15), (41, 37, 15), (25, 22, 11)] {
        crate::bits::set_bits(&mut csd.bytes, hi, lo, raw);
    }
    assert_eq!(csd.capacity_bytes(), Some(2000 * 128 * 512));
    assert_eq!(csd.erase_group_sectors(), Some(16 * 16 * 4));
    assert_eq!(csd.write_protect_group_sectors(), None);
    crate::bits::set_bits(&mut csd.bytes, 83, 80, 15);
    assert_eq!(csd.capacity_bytes(), None);
}

#[test]
fn scales_differ_between_emmc_and_sd() {
    for (code, emmc, sd) in [
        (0x2a, Some(20_000_000), Some(20_000_000)),
        (0x32, Some(26_000_000), Some(25_000_000)),
        (0x5a, Some(52_000_000), Some(50_000_000)),
        (0x08, Some(100_000), Some(100_000)),
        (0x0b, Some(100_000_000), Some(100_000_000)),
        (0x2b, Some(200_000_000), Some(200_000_000)),
        (0x00, None, None),
        (0x04, None, None),
        (0x0c, None, None),
        (0x8a, None, None),
    ] {
        assert_eq!((scale::mmc_tran_speed_hz(code), scale::sd_tran_speed_hz(code)), (emmc, sd), "{code:#04x}");
    }
    for (code, expected) in [
        (0x0e, FieldValue::Number(1_000_000)),
        (0x27, FieldValue::Number(15_000_000)),
        (0x26, FieldValue::Number(1_500_000)),
        (0x10, FieldValue::Real(1.2)),
        (0x7f, FieldValue::Number(80_000_000)),
        (0x00, FieldValue::Undefined),
    ] {
        assert_eq!(scale::taac_value(code), expected, "{code:#04x}");
    }
    assert_eq!(scale::current_min_value(0), FieldValue::Real(0.5));
}

#[test]
fn tables_are_valid_and_no_byte_causes_a_panic() {
    assert_orderly(128, mmc::FIELDS);
    for (version, fields) in [(0, 30), (1, 25), (2, 25), (3, 2)] {
        assert_orderly(128, sd::fields(version));
        assert_eq!(sd::fields(version).count(), fields, "version {version}");
    }
    for kind in [CardKind::Emmc, CardKind::Sd] {
        for byte in 0..=255 {
            let csd = Csd::new(kind, [byte; 16]);
            assert!(csd.fields().iter().all(|field| !field.name.is_empty()));
            assert!(csd.capacity_bytes().is_none_or(|bytes| bytes > 0));
            assert!(csd.erase_group_sectors().is_none_or(|sectors| sectors > 0));
            assert!(csd.write_protect_group_sectors().is_none_or(|sectors| sectors > 0));
        }
    }
}
