//! Each known kind of damage, on real parts: the message of a refusal, and the values that stay unknown.

use emmc_analysis::health::{CheckStatus, HealthOptions, check};
use emmc_port::saved::read;

const DUMPS: [&str; 4] = ["aaru-64g", "ac100-mmc32g", "samsung-bjnb4r-32g", "samsung-klm-8g"];

fn testdata(file: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn digits(part: &str) -> String {
    testdata(&format!("ext_csd_raw/{part}/{part}.ext_csd.hex")).trim().to_owned()
}

fn bytes(part: &str) -> Vec<u8> {
    let digits = digits(part);
    (0..512).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// The state of `check`; a refused source is UNKNOWN.
fn status(source: &[u8]) -> CheckStatus {
    read("f", source).map_or(CheckStatus::Unknown, |card| check(&card, &HealthOptions::default()).status)
}

fn refusal(source: impl AsRef<[u8]>) -> String {
    match read("f", source.as_ref()) {
        Ok(card) => panic!("read: {card:?}"),
        Err(error) => error.to_string(),
    }
}

/// mmc-utils' text of a real part with other health values.
fn text(pre_eol: &str, life_a: &str, life_b: &str) -> String {
    let whole = testdata("mmc_extcsd_text/samsung-klm-8g/extcsd.txt");
    let with = |text: String, label: &str, value: &str| {
        text.replace(&format!("[{label}]: 0x01"), &format!("[{label}]: {value}"))
    };
    let whole = with(whole, "EXT_CSD_PRE_EOL_INFO", pre_eol);
    let whole = with(whole, "EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A", life_a);
    with(whole, "EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_B", life_b)
}

#[test]
fn complete_sources_keep_their_verdict() {
    assert_eq!(status(text("0x01", "0x01", "0x01").as_bytes()), CheckStatus::Ok);
    assert_eq!(status(text("0x01", "0x0b", "0x01").as_bytes()), CheckStatus::Critical);
    for (part, expected) in
        DUMPS.into_iter().zip([CheckStatus::Ok, CheckStatus::Unknown, CheckStatus::Ok, CheckStatus::Ok])
    {
        assert_eq!(status(digits(part).as_bytes()), expected, "{part}");
        assert_eq!(status(&bytes(part)), expected, "{part}");
    }
}

#[test]
fn a_life_time_of_0x0b_cut_to_0x0_is_refused() {
    for cut in ["0x0", "0xb", "0x", "0x0\nb", "0x00b", "0x0bb", "0x0 b", "x0b"] {
        let source = text("0x01", cut, "0x01");
        assert_eq!(status(source.as_bytes()), CheckStatus::Unknown, "{cut}");
    }
    let message = refusal(text("0x01", "0x0", "0x01"));
    assert_eq!(message, "f: at line 216: expected 2 digits after 0x for DEVICE_LIFE_TIME_EST_TYP_A, found \"0x0\"");
}

#[test]
fn no_prefix_of_a_worn_parts_text_is_ok() {
    // The three registers are last: a cut between them leaves those that look good.
    for whole in [text("0x03", "0x01", "0x01"), text("0x01", "0x01", "0x0b"), text("0x01", "0x0b", "0x01")] {
        let tail = whole.find("eMMC Life Time").unwrap();
        for end in tail..whole.len() {
            assert_ne!(status(&whole.as_bytes()[..end]), CheckStatus::Ok, "{}", &whole[tail..end]);
        }
    }
}

#[test]
fn a_cut_sec_count_gives_no_capacity() {
    let of = |source: &str| read("f", source.as_bytes()).map(|card| card.ext_csd.unwrap().uint(212, 4));
    let line = "Sector Count [SEC_COUNT: 0x00e90000";
    let before = "Access size [ACC_SIZE: 0x07]\n";
    assert_eq!(of(&format!("{before}{line}]\n")).unwrap(), Some(0xe9_0000));
    for cut in 1..8 {
        let cut = &line[..line.len() - cut];
        assert_eq!(of(&format!("{before}{cut}")).unwrap(), None, "{cut}");
        let message = refusal(format!("{before}{cut}]\n"));
        assert!(
            message.starts_with("f: at line 2: expected 8 digits after 0x for SEC_COUNT, found \"0x0"),
            "{message}"
        );
    }
    let card = read("f", format!("{before}Sector Count [SEC_COUNT: 0x00e9").as_bytes()).unwrap();
    assert!(card.origins[0].notes.contains(&"line 2 ends inside its value, which is left out".into()));
}

#[test]
fn a_register_whose_name_lost_or_doubled_a_letter_is_refused() {
    let whole = text("0x01", "0x01", "0x01").replace("[BKOPS_STATUS: 0x00]", "[BKOPS_STATUS: 0x02]");
    assert_eq!(status(whole.as_bytes()), CheckStatus::Warning);
    for damaged in ["BKOPS_STATS", "BKOPS_STATUSS", "BKPS_STATUS"] {
        let message = refusal(whole.replace("BKOPS_STATUS", damaged));
        let expected = format!("expected the name of a register such as BKOPS_STATUS, found {damaged}");
        assert!(message.ends_with(&expected), "{message}");
    }
    let message = refusal(whole.replace("[BKOPS_STATUS", "BKOPS_STATUS"));
    assert!(message.contains("expected [BKOPS_STATUS: 0x01] or [BKOPS_STATUS]: 0x01, found "), "{message}");
}

#[test]
fn a_hex_dump_with_a_lost_or_doubled_digit_is_refused() {
    for part in DUMPS {
        let whole = digits(part);
        for at in (0..1024).step_by(7) {
            let lost = format!("{}{}\n", &whole[..at], &whole[at + 1..]);
            assert!(refusal(&lost).contains("1023 digits"), "{part} {at}");
            let doubled = format!("{}{}{}\n", &whole[..at], &whole[at..at + 1], &whole[at..]);
            assert!(refusal(&doubled).contains("1025 digits"), "{part} {at}");
        }
    }
}

#[test]
fn a_hex_dump_wrapped_anywhere_is_the_same_dump() {
    for part in DUMPS {
        let whole = digits(part);
        let expected = read("f", whole.as_bytes()).unwrap().ext_csd;
        for at in (2..1024).step_by(31) {
            let wrapped = format!("{}\n{}\n", &whole[..at], &whole[at..]);
            assert_eq!(
                read("f", wrapped.as_bytes()).map(|card| card.ext_csd).ok(),
                Some(expected.clone()),
                "{part} {at}"
            );
        }
    }
}

#[test]
fn a_part_of_a_hex_dump_gives_no_health() {
    let whole = digits("samsung-klm-8g");
    for end in (2 * 270..1024).step_by(2) {
        let card = read("f", &whole.as_bytes()[..end]).unwrap();
        assert_eq!(card.ext_csd.as_ref().unwrap().byte(268), None, "{end}");
        assert_eq!(check(&card, &HealthOptions::default()).status, CheckStatus::Unknown, "{end}");
    }
}

#[test]
fn a_register_shifted_by_one_byte_is_refused() {
    for part in DUMPS {
        for right in [true, false] {
            for fill in [0x00, 0xff] {
                let mut shifted = bytes(part);
                if right {
                    shifted.rotate_right(1)
                } else {
                    shifted.rotate_left(1)
                }
                shifted[if right { 0 } else { 511 }] = fill;
                let message = refusal(&shifted);
                assert!(message.starts_with("f: at byte "), "{part}: {message}");
                let hex: String = shifted.iter().map(|byte| format!("{byte:02x}")).collect();
                assert!(refusal(hex).starts_with("f: at line 1: expected "), "{part}");
            }
        }
    }
}

#[test]
fn a_register_with_a_lost_byte_and_padding_is_never_better() {
    for part in DUMPS {
        for (offset, value) in [(267, 3), (268, 0x0b), (269, 0x0a)] {
            let mut worn = bytes(part);
            worn[offset] = value;
            for at in 0..512 {
                let lost = [&worn[..at], &worn[at + 1..], &[0]].concat();
                let doubled = [&worn[..=at], &worn[at..511]].concat();
                for damaged in [lost, doubled] {
                    assert_ne!(status(&damaged), CheckStatus::Ok, "{part}, {offset}: byte {at}");
                }
            }
        }
    }
}

#[test]
fn random_bytes_constant_bytes_and_text_are_refused_or_unknown() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    for _ in 0..20_000 {
        let mut noise: Vec<u8> = (0..512).map(|_| random()).collect();
        // Even if the three bytes that a reader checks first are those of a part, and health is perfect.
        [(192, 8), (194, 2), (196, 0x57), (267, 1), (268, 1), (269, 1), (0, 0)]
            .into_iter()
            .for_each(|(at, value)| noise[at] = value);
        assert_eq!(status(&noise), CheckStatus::Unknown);
    }
    for value in 0..=0xff {
        assert_eq!(status(&[value; 512]), CheckStatus::Unknown);
    }
    let prose = testdata("README.md");
    for start in (0..4096).step_by(61) {
        let hex: String = prose.as_bytes()[start..start + 512].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(status(hex.as_bytes()), CheckStatus::Unknown, "{start}");
    }
}

#[test]
fn two_cards_in_one_grep_are_refused_with_both_names() {
    let of = |disk: &str, life: &str| {
        format!(
            "/sys/block/{disk}/device/life_time:{life} {life}\n/sys/block/{disk}/device/pre_eol_info:0x01\n/sys/block/{disk}/device/rev:0x8\n"
        )
    };
    let (worn, new) = (of("mmcblk0", "0x0b"), of("mmcblk1", "0x01"));
    assert_eq!(status(worn.as_bytes()), CheckStatus::Critical);
    assert_eq!(status(new.as_bytes()), CheckStatus::Ok);
    for both in [format!("{worn}{new}"), format!("{new}{worn}")] {
        let message = refusal(&both);
        assert!(
            message.contains("mmcblk0") && message.contains("mmcblk1") && message.contains("at line 4"),
            "{message}"
        );
    }
}
