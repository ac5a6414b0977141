use super::*;

fn read_emmc(cid: &str, ext_csd_rev: u8) -> Identity {
    Cid::parse_hex(cid).unwrap().decode(CardKind::Emmc, Some(ext_csd_rev))
}

fn read_sd(cid: &str) -> Identity {
    Cid::parse_hex(cid).unwrap().decode(CardKind::Sd, None)
}

fn value<'a>(fields: &'a [RegisterField], name: &str) -> &'a RegisterField {
    fields.iter().find(|field| field.name == name).unwrap()
}

#[test]
fn a_samsung_emmc_reads_as_its_sysfs_attributes_do() {
    // sysfs of an Orange Pi Plus, kernel 3.4: name M8G1GC, manfid 0x000015, oemid 0x0100, serial 0xdc0db061.
    let identity = read_emmc("1501004d384731474303dc0db061506f", 6);
    assert_eq!(identity.manufacturer_id, 0x15);
    assert_eq!((identity.oemid, identity.oem_id, identity.package), (0x0100, Some(0x00), Some(Package::Bga)));
    assert_eq!(identity.product_name, "M8G1GC");
    assert_eq!(identity.product_revision.to_string(), "0.3");
    assert_eq!(identity.serial_number, 0xdc0d_b061);
    assert_eq!(identity.manufacture_date.to_string(), "2013-05");
    assert_eq!(identity.crc, Crc::Matches);
    // The old kernel printed 05/1997; mmc-utils reads the nibbles the wrong way round and prints January 2002.
    assert_eq!(read_emmc("1501004d384731474303dc0db061506f", 4).manufacture_date.to_string(), "1997-05");
}

#[test]
fn published_emmc_cids_are_decoded() {
    // Sony Xperia XZs: BJNB4R, 32 GB, eMMC 5.1.
    let samsung = read_emmc("150100424a4e4234520fdac7c0381400", 8);
    assert_eq!((samsung.product_name.as_str(), samsung.serial_number), ("BJNB4R", 0xdac7_c038));
    assert_eq!(samsung.manufacture_date.to_string(), "2017-01");
    assert_eq!(samsung.crc, Crc::Stripped);
    assert_eq!(samsung.product_revision.to_string(), "0.15");

    // SK hynix HBG4e, EXT_CSD_REV 7. emmcparm prints the same name, maker and PRV 0x81 for this kind of card, but the
    // date 08/2016, where MDT 0x44 says April 2017: the two came from different cards, or emmcparm reads another rule.
    let hynix = read_emmc("90014a484247346505814afb2d634400", 7);
    assert_eq!((hynix.manufacturer_id, hynix.oemid, hynix.oem_id), (0x90, 0x014a, Some(0x4a)));
    assert_eq!(hynix.product_name, "HBG4e\\x05");
    assert_eq!(hynix.product_name_raw, b"HBG4e\x05");
    assert_eq!(hynix.product_revision, ProductRevision(0x81));
    assert_eq!(hynix.manufacture_date.to_string(), "2017-04");
}

#[test]
fn a_name_escapes_unprintable_bytes_only() {
    for (digits, name) in [("3c623e262227", "<b>&\"'"), ("1b5b33316d5c", "\\x1b[31m\\\\"), ("4120420a0020", "A B\\n")] {
        assert_eq!(read_emmc(&format!("150100{digits}0fdac7c0381400"), 8).product_name, name);
    }
}

#[test]
fn sd_cards_read_as_their_sysfs_attributes_do() {
    // The card of the same board: name SD16G, oemid 0x5048, hwrev 0x3, fwrev 0x0, serial 0xda89b829, date 11/2015.
    let phison = read_sd("275048534431364730da89b82900fb61");
    assert_eq!((phison.manufacturer_id, phison.oemid, phison.oem_text.as_deref()), (0x27, 0x5048, Some("PH")));
    assert_eq!((phison.product_name.as_str(), phison.serial_number), ("SD16G", 0xda89_b829));
    assert_eq!((phison.product_revision.major(), phison.product_revision.minor()), (3, 0));
    assert_eq!(phison.manufacture_date.to_string(), "2015-11");
    assert_eq!((phison.package, phison.oem_id), (None, None));
    assert_eq!(phison.crc, Crc::Matches);

    let sandisk = read_sd("035344534e35313280fff7b17b015700");
    assert_eq!((sandisk.product_name.as_str(), sandisk.serial_number), ("SN512", 0xfff7_b17b));
    assert_eq!((sandisk.product_revision.major(), sandisk.oem_text.as_deref()), (8, Some("SD")));
    assert_eq!(sandisk.manufacture_date.to_string(), "2021-07");
    assert_eq!(read_sd("035054534c31364730da0a5d93010101").manufacture_date.to_string(), "2016-01");

    // Transcend: a name padded with blanks, an OID that happens to be letters.
    let transcend = read_sd("744a605553442020104182bbc7010600");
    assert_eq!((transcend.product_name.as_str(), transcend.oem_text.as_deref()), ("USD", Some("J`")));
    assert_eq!(transcend.product_name_raw, b"USD  ");
    assert_eq!(transcend.serial_number, 1_099_086_791);
}

#[test]
fn rows_have_position_raw_bits_and_meaning() {
    let cid = Cid::parse_hex("1501004d384731474303dc0db061506f").unwrap();
    let fields = cid.fields(CardKind::Emmc, None);
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    assert_eq!(names, ["MID", "CBX", "OID", "PNM", "PRV", "PSN", "MDT", "CRC"]);
    let name = value(&fields, "PNM");
    assert_eq!((name.offset, name.width_bits, name.raw), (56, 48, 0x4d38_4731_4743));
    assert_eq!(name.value.to_string(), "M8G1GC");
    assert_eq!(value(&fields, "MID").value.to_string(), "Samsung");
    assert_eq!(value(&fields, "CBX").value.to_string(), "BGA");
    assert_eq!(value(&fields, "PSN").value, FieldValue::Number(0xdc0d_b061));
    assert_eq!(value(&fields, "MDT").value.to_string(), "2013-05 or 1997-05 or 2029-05");
    assert_eq!((value(&fields, "CRC").raw, value(&fields, "CRC").value.to_string()), (0x37, "matches".to_string()));

    let sd = Cid::parse_hex("275048534431364730da89b82900fb61").unwrap().fields(CardKind::Sd, None);
    assert_eq!(value(&sd, "OID").value.to_string(), "PH");
    assert_eq!(value(&sd, "MDT").value.to_string(), "2015-11");
}

#[test]
fn tables_are_valid_and_no_byte_causes_a_panic() {
    crate::layout::assert_orderly(128, emmc::FIELDS);
    crate::layout::assert_orderly(128, sd::FIELDS);
    for byte in 0..=255 {
        let cid = Cid([byte; 16]);
        for kind in [CardKind::Emmc, CardKind::Sd] {
            let identity = cid.decode(kind, Some(byte));
            assert!(identity.product_name.is_ascii());
            assert!(!cid.fields(kind, None).is_empty());
        }
    }
    // An unwritten register has an empty name, no date and no maker that could be wrong.
    let blank = Cid([0; 16]).decode(CardKind::Sd, None);
    assert_eq!((blank.product_name.as_str(), blank.manufacture_date.to_string().as_str()), ("", "invalid (0x00)"));
}

#[test]
fn digits_are_checked() {
    let count = Cid::parse_hex("1501004d384731474303dc0db06150").unwrap_err();
    assert_eq!(count.to_string(), "CID has 30 hexadecimal digits; expected 32");
    let letter = Cid::parse_hex("1501004d38473147430zdc0db061506f").unwrap_err();
    assert_eq!(letter.to_string(), "CID has 'z' at offset 19; expected a hexadecimal digit");
}
