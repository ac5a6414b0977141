use super::*;

fn read(log: &str) -> Result<CardData, String> {
    let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
    assert!(recognises(&text), "{log}");
    import(&text).map_err(|error| error.to_string())
}

const CID: &str = "1501004d384731474303dc0db061506f";
const CSD: &str = "d02701320f5903fff6dbffef8e40400d";

#[test]
fn one_or_several_registers_are_read_with_or_without_labels() {
    for log in [
        format!("{CID}\n{CSD}\n"),
        format!("cid: {CID}\ncsd: {CSD}\nocr: 0x00ff8080\nrca: 0x0001\n"),
        format!("CID={}\nCSD={CSD}\n", CID.to_uppercase()),
        format!("# cat /sys/block/mmcblk0/device/cid\n{CID}\n# cat /sys/block/mmcblk0/device/csd\n{CSD}\n# \n"),
        format!("/sys/block/mmcblk0/device/cid:{CID}\n/sys/block/mmcblk0/device/csd:{CSD}\n"),
    ] {
        let data = read(&log).unwrap();
        assert_eq!(data.cid, Cid::parse_hex(CID).ok(), "{log}");
        assert_eq!(data.csd.map(Vec::from), Some(bytes_of(CSD)), "{log}");
        assert_eq!(data.kind, Some(CardKind::Emmc));
    }
    let data = read("ocr: 0x00ff8080\nrca: 0x0001\n").unwrap();
    assert_eq!((data.ocr, data.rca, data.kind), (Some(0x00ff_8080), Some(1), None));
}

#[test]
fn sd_registers_are_recognised_by_their_length() {
    let ssr = "00".repeat(8) + "0402900000000000" + &"00".repeat(48);
    let data = read(&format!("0235804300000000\n{ssr}\n")).unwrap();
    assert_eq!((data.scr, data.kind), (Some([2, 0x35, 0x80, 0x43, 0, 0, 0, 0]), Some(CardKind::Sd)));
    assert_eq!(data.ssr.map(Vec::from), Some(bytes_of(&ssr)));
}

#[test]
fn u_boot_prints_words_and_bytes() {
    let words: String = CID
        .as_bytes()
        .chunks(8)
        .zip(0..)
        .map(|(word, at)| format!("CID[{at}]: 0x{}\n", std::str::from_utf8(word).unwrap()))
        .collect();
    let data =
        read(&format!("=> mmc reg read cid 0\n{words}EXT_CSD[192]: 0x08\nOCR: 0xc0ff8080\nRCA: 0x00000001\n")).unwrap();
    assert_eq!(data.origins[0].format, Format::UBootRegRead);
    assert_eq!((data.cid, data.rca), (Cid::parse_hex(CID).ok(), Some(1)));
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.byte(192), ext_csd.known_bytes()), (Some(8), 1));
    let data = read("CSD[1]: 0x12345678\nRCA: 0x00000001\n").unwrap();
    assert_eq!(data.csd, None);
    assert_eq!(data.origins[0].notes, ["CSD is left out: not all four words of it are given"]);
    let message = read("CSD[1]: 0x12345678\n").unwrap_err();
    assert_eq!(message, "log: at line 1: expected all four words, CSD[0] to CSD[3], found less");
}

#[test]
fn a_part_of_a_register_keeps_its_place() {
    let data = read(
        "=> md.b 0xc0\n000000c0: 08 00 02 00 57 1f 0a 02    ....W...\n000000c8: 00 00 00 00 00 00 00 00    ........\n",
    )
    .unwrap();
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.byte(192), ext_csd.byte(199), ext_csd.byte(208)), (Some(8), Some(2), None));
    assert_eq!(data.origins[0].notes, ["16 of the 512 bytes of EXT_CSD, from byte 192 on; the rest is unknown"]);
}

#[test]
fn replies_are_read_in_all_spellings() {
    let mut reply = vec![0u8; 512];
    reply[..2].copy_from_slice(b"DS");
    let digits: String = reply.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(read(&digits).unwrap().reports[0].content, reply);
    let rows: String = (0..32)
        .map(|row| {
            format!(
                "{:08x}: {}\n",
                row * 16,
                digits.get(row * 32..row * 32 + 32).unwrap().replace("00", "00 ").replace("4453", "44 53 ")
            )
        })
        .collect();
    let data = read(&rows).unwrap();
    assert_eq!((data.origins[0].format, &data.reports[0].content), (Format::VendorReport, &reply));
}

#[test]
fn two_values_or_a_wrong_length_are_refused() {
    let other = CID.replace("6f", "6e");
    for (log, message) in [
        (format!("cid: {CID}\ncid: {other}\n"), format!("line 2: expected the CID of line 1, {CID:?}, found {other:?}")),
        (format!("{CID}0\n"), "line 1: expected 1024 hexadecimal digits of EXT_CSD, 32 of CID or CSD, 16 of SCR or 128 of SSR, found 33 digits".into()),
        ("cid: 15010038".into(), "line 1: expected 32 hexadecimal digits of CID, found 8 digits".into()),
        ("rca: 0x12345".into(), "line 1: expected 16 bits of RCA, found 0x012345".into()),
        ("CID[0]: 0x00000001\nCID[0]: 0x00000002".into(), "line 2: expected CID[0] to be 0x00000001 as line 1 says, found 0x00000002".into()),
        ("EXT_CSD[267]: 0x0\n".into(), "line 1: expected 2 digits after 0x for EXT_CSD[267], found a different number of digits".into()),
        ("CID[0]: 0x1501004\n".into(), "line 1: expected 8 digits after 0x for CID[0], found a different number of digits".into()),
        ("CID[4]: 0x00000001".into(), "line 1: expected CID[0] to CID[3], CSD[0] to CSD[3] or EXT_CSD[0] to EXT_CSD[511], found CID[4]".into()),
        ("EXT_CSD[512]: 0x01".into(), "line 1: expected an offset from 0 to 511, found 512".into()),
        ("EXT_CSD[1]: 0x01\nEXT_CSD[1]: 0x02".into(), "line 2: expected EXT_CSD to be 0x1 as line 1 says, found 0x2".into()),
    ] {
        assert_eq!(read(&log).unwrap_err(), format!("log: at {message}"));
    }
}

#[test]
fn digits_in_other_text_are_ambiguous() {
    let lines = "build\nid\nof\nthe\nimage\nffffffc0105b1234\n";
    let log = format!("{lines}{}\nscr: 0x00000131\ncid: {CID}\n", "7".repeat(32));
    let data = read(&log).unwrap();
    assert_eq!((data.cid.is_some(), data.scr, data.ssr), (true, None, None));
    assert_eq!(data.origins[0].notes, ["line 8: SCR of 8 digits is left out"]);
    assert!(read(&format!("{}\n{CID}\n", "7".repeat(32))).is_err());
    let none = Text::new("log", lines.as_bytes()).unwrap().unwrap();
    assert!(!recognises(&none));
    assert!(nearly(&none).unwrap().to_string().starts_with("log: at line 6: expected a label such as cid:"));
}

#[test]
fn other_dumps_in_a_log_do_not_matter() {
    let rows: String =
        (0..32).map(|row| format!("{:08x}: {}\n", 0x8000_0000u32 + row * 16, "de ".repeat(16))).collect();
    let info = "Manufacturer ID: 15\nRd Block Len: 512\nMMC version 5.1\n";
    let log = format!("{}=> md.b 80000000 200\n{rows}=> mmc info\n{info}", "boot\n".repeat(40));
    assert_eq!(crate::saved::read("log", log.as_bytes()).unwrap().origins[0].format, Format::UBootInfo);
    assert!(crate::saved::read("log", rows.as_bytes()).is_err());
}
