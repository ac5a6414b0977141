//! Real output of sdmon, good and bad: from testdata, and excerpts of what users published with their questions.

use super::*;
use crate::maker_health::{Area, Confidence};

fn real(part: &str) -> Vec<Result<VendorHealth, Refusal>> {
    let path = format!("{}/../../testdata/sdmon/{part}", env!("CARGO_MANIFEST_DIR"));
    parse_sdmon(&std::fs::read(path).unwrap())
}

fn one(part: &str) -> VendorHealth {
    let mut runs = real(part);
    assert_eq!(runs.len(), 1, "{part}");
    runs.remove(0).unwrap()
}

fn wear(health: &VendorHealth, area: Area) -> Vec<i64> {
    health.area(area).unwrap().readings().map(|reading| reading.value.as_i64().unwrap()).collect()
}

#[test]
fn the_apacer_sample_of_the_readme_is_read() {
    let health = one("apacer-readme/sdmon.json.txt");
    assert_eq!(health.family, Family::TwoStepSd);
    assert!(health.label.contains("uncertain"));
    assert_eq!(health.number("initial_bad_blocks"), Some(72.0));
    assert_eq!(health.number("later_bad_blocks"), Some(0.0));
    assert_eq!(health.number("spare_blocks_total"), Some(46.0));
    assert_eq!(health.number("good_blocks_percent"), Some(97.56));
    assert_eq!(health.number("life_left_percent"), Some(99.97));
    assert_eq!(health.number("power_cycles"), Some(55.0));
    assert_eq!(wear(&health, Area::Global), [1, 5, 1, 1380]);
    assert_eq!(
        health.reading("flash_id").unwrap().value,
        Value::Text("0x98 0x3c 0x98 0xb3 0x76 0x72 0x08 0x0e 0x00".into())
    );
    assert_eq!(health.reading("product_marker"), None);
    assert!(health.implausible.is_empty());
}

#[test]
fn indented_json_with_arrays_over_lines_is_read() {
    let health = one("sandisk-ultra-sd128/sdmon.json.txt");
    assert_eq!(health.family, Family::TwoStepSd);
    assert_eq!(health.source, "sdmon v0.9.0-29 (9ab840a) arm64");
    assert_eq!(health.number("initial_bad_blocks"), Some(15.0));
    assert_eq!(health.number("life_left_percent"), Some(99.94));
    assert_eq!(health.number("power_cycles"), Some(78.0));
    assert_eq!(wear(&health, Area::Global), [1, 4, 2, 3404]);
    assert_eq!(health.reading("firmware").unwrap().value, Value::Text("19 192".to_owned()));
}

#[test]
fn sandisk_industrial_is_one_percent_used() {
    let health = one("sandisk-industrial-readme/sdmon.json.txt");
    assert_eq!((health.family, health.label.as_str()), (Family::SandiskSd, "SanDisk"));
    assert_eq!(health.number("life_used_percent"), Some(1.0));
    assert_eq!(health.reading("product").unwrap().value, Value::Text("SanDisk".to_owned()));
    assert_eq!(health.reading("manufactured_yymmdd").unwrap().value, Value::Text("211122".to_owned()));
    assert_eq!(health.reading("feature_revision").unwrap().value, Value::Integer(0x1f));
    assert_eq!(health.number("power_cycles"), None);
}

#[test]
fn adata_is_read_in_both_spellings() {
    for (file, cycles) in [("sdmon.json.txt", 8.0), ("sdmon_earlier_pr21.json.txt", 6.0)] {
        let health = one(&format!("adata-iudd33k-64g/{file}"));
        assert_eq!((health.family, health.number("power_cycles")), (Family::AdataSd, Some(cycles)));
        assert_eq!(health.number("initial_bad_blocks"), Some(10.0));
        assert_eq!(health.number("life_left_percent"), Some(100.0));
        assert_eq!(health.reading("controller").unwrap().value, Value::Text("SM2706".to_owned()));
        assert_eq!(health.reading("firmware").unwrap().value, Value::Text("V0217".to_owned()));
        assert_eq!(wear(&health, Area::User), [0, 1, 0, 2, 3000]);
        assert_eq!(wear(&health, Area::System), [0, 1, 0, 11]);
    }
}

#[test]
fn a_transcend_card_that_sdmon_calls_adata_has_no_certain_vendor() {
    let health = one("transcend-460t-64g/sdmon.json.txt");
    assert_eq!(health.family, Family::AdataSd);
    assert!(health.label.starts_with("vendor uncertain") && health.label.contains("SM270x"), "{}", health.label);
    assert_eq!(health.number("spare_blocks_tlc"), Some(198.0));
    assert_eq!(wear(&health, Area::System), [0, 2, 1, 54]);
    assert!(health.implausible.is_empty());
}

#[test]
fn numbers_after_an_unknown_signature_are_refused() {
    let found = |run: &Result<VendorHealth, Refusal>| match run {
        Err(Refusal::UnknownSignature { found }) => found.clone(),
        other => panic!("{other:?}"),
    };
    let runs = real("negative-apacer-ak6-slc-32g/sdmon.json.txt");
    assert_eq!(runs.iter().map(found).collect::<Vec<_>>(), ["00 04", "a4 81"]);
}

#[test]
fn a_card_without_a_reply_is_reported() {
    let runs = real("unsupported/sdmon.json.txt");
    assert_eq!(runs.len(), 1);
    let Err(Refusal::CommandFailed { text }) = &runs[0] else { panic!("{runs:?}") };
    assert!(text.starts_with("1st CMD56 CALL FAILED: Operation timed out; 2nd CMD56"), "{text}");
}

#[test]
fn an_all_ones_block_printed_as_655_percent_is_refused() {
    // Source: Ognian/sdmon issue 42.
    let text = r#"{"version":"0.9.0-29","error1":"1st CMD56 CALL FAILED: Operation timed out",
        "flashId":["0xff","0xff","0xff"],"spareBlockCount":65535,"initialBadBlockCount":8160,
        "enduranceRemainLifePercent":655.35,"totalEraseCount":4294967295,"success":true}"#;
    assert_eq!(parse_sdmon(text.as_bytes()), [Err(Refusal::AllOnes)]);
    let text = text.replace(r#"["0xff","#, r#"["0x98","#);
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    assert_eq!(health.implausible.len(), 4);
    assert!(health.readings().all(|(_, reading)| reading.name == "flash_id"));
    assert!(health.notes[0].contains("timed out"));
}

#[test]
fn an_all_zero_block_printed_as_no_wear_is_refused() {
    // Source: Ognian/sdmon issue 43.
    let text = "{\n\"flashId\": [\"0x00\",\"0x00\"],\n\"fwVersion\": [00,00],\n\"enduranceRemainLifePercent\": 0.00,\n\
        \"powerUpCount\": 0,\n\"success\":true\n}";
    assert_eq!(parse_sdmon(text.as_bytes()), [Err(Refusal::AllZeros)]);
}

#[test]
fn a_life_of_453_percent_is_flagged() {
    // Source: Ognian/sdmon issue 2.
    let text = "{\n\"flashId\": [\"0x98\",\"0xde\",\"0x94\",\"0x93\"],\n\"fwVersion\": [82,105],\n\
        \"spareBlockCount\": 45,\n\"initialBadBlockCount\": 77,\n\"totalEraseCount\": 13807590,\n\
        \"enduranceRemainLifePercentBytes\": [\"0xb0\",\"0xf4\"],\n\"enduranceRemainLifePercent\": 453.00,\n\
        \"avgEraseCount\": 13590,\n\"minEraseCount\": 3,\n\"maxEraseCount\": 13665,\n\"success\":true\n}";
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    assert_eq!(health.number("life_left_percent"), None);
    assert_eq!((health.implausible[0].name, health.implausible[0].found.as_str()), ("life_left_percent", "453.00"));
    assert_eq!(wear(&health, Area::Global), [3, 13_665, 13_590, 13_807_590]);
}

#[test]
fn swissbit_with_arrays_and_several_keys_per_line_is_read() {
    // Source: Ognian/sdmon pull request 19.
    let text = r#"{
        "signature":"0x53 0x77",
        "Swissbit":"true",
        "fwVersion": [W,0,1,1,2, ,,,,,,,,,,],
        "User area rated cycles": ["0x00","0x01","0x86","0xa0"],
        "User area max cycle cnt": ["0x00","0x00","0x00","0x03"],
        "User area total cycle cnt": ["0x00","0x00","0x08","0xb6"], "Bus width": 4 bits
        "System area max cycle cnt": ["0x00","0x00","0x00","0x01"],
        "System area refresh cnt": ["0x00","0x00","0x00","0x00"],
        "Remaining Lifetime Percent": 99%,
        "Speed mode": SDR104 speed
        "Power cycle cnt": ["0","0","0","19"],
        "success":true
        }"#;
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    assert_eq!((health.family, health.number("life_left_percent")), (Family::SwissbitSd, Some(99.0)));
    assert_eq!(wear(&health, Area::User), [3, 2230, 100_000]);
    assert_eq!(wear(&health, Area::System), [1]);
    assert_eq!(health.number("power_cycles"), Some(19.0));
    assert_eq!(health.reading("firmware").unwrap().value, Value::Text("W 0 1 1 2".to_owned()));
}

#[test]
fn newer_swissbit_output_names_the_system_area_wrongly() {
    let text = r#"{"signature":"0x53 0x77","Swissbit":true,"User area max cycle cnt":3,"User area max cycle cnt":1}"#;
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    assert_eq!((wear(&health, Area::User), wear(&health, Area::System)), (vec![3], vec![1]));
}

#[test]
fn transcends_report_leaves_out_figures_that_sdmon_misreads() {
    // Source: Ognian/sdmon pull request 20.
    let text = "{\n{\n\"signature\":\"0x54 0x72\",\n\"Transcend\":\"true\",\n\"Bus width\": 4 bits\n\
        \"New bad blocks cnt\": 0x00,\n\"Runtime spare blocks cnt\": 0x33,\n\"Minimum erase cnt\": 0,\n\
        \"Maximum erase cnt\": 16777216,\n\"Total erase cnt\": 7,\n\"Average erase cnt\": 0,\n\
        \"Remaining card life\": 100%,\n\"Power cycle cnt\": 0,\n\"IC\": SM2707E,\n\"fw version\": T0408 ,\n}";
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    assert_eq!((health.family, health.number("spare_blocks_runtime")), (Family::TranscendSd, Some(51.0)));
    assert_eq!(health.number("power_cycles"), None);
    assert_eq!(wear(&health, Area::Global), [0, 0]);
    assert_eq!(health.implausible[0].found, "16777216");
}

#[test]
fn longsys_units_are_stripped() {
    let text = "{\"signature\":\"0x70 0x58\",\"Longsys\":\"true\",\"writeAllSectNum\": 2048 Sector(512Byte),\
        \"degreOfWear\": 1.50 Cycle,\"remainLifeTime\": 98%,\"lifeTimeTotal\": 3000.00 Cycle,\
        \"remainWrGBNum\": 1.50TB}";
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    assert_eq!(health.number("written_bytes"), Some(1_048_576.0));
    assert_eq!(health.number("writes_left_gigabytes"), Some(1536.0));
    assert_eq!(health.area(Area::Global).unwrap().average.as_ref().unwrap().value, Value::Decimal(1.5));
}

#[test]
fn a_vendors_name_without_its_signature_is_refused() {
    let text = r#"{"signature":"0x00 0x04","SanDisk":"true","healthStatusPercentUsed": 27}"#;
    let Err(Refusal::WrongSignature { expected, found, .. }) = &parse_sdmon(text.as_bytes())[0] else { panic!() };
    assert_eq!((expected.as_str(), found.as_str()), ("44 53", "00 04"));
    let text =
        r#"{"signature":"0x44 0x57","SanDisk":true,"method":"auto","healthStatusPercentUsed":1,"powerOnTimes":14}"#;
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    assert_eq!(health.family, Family::WesternDigitalSd);
    assert_eq!(health.reading("power_cycles").unwrap().confidence, Confidence::Uncertain);
}

#[test]
fn text_of_another_tool_is_refused() {
    let utf16: Vec<u8> = "{\"flashId\": 1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for text in [&b""[..], b"hello", b"{}", b"\xff\xfe\x00", &utf16] {
        for run in parse_sdmon(text) {
            assert!(matches!(run, Err(Refusal::NotHealth { .. } | Refusal::Damaged { .. })), "{run:?}");
        }
    }
    let usage = b"{\n\"usage\":\"wrong option, sdmon <device> [-a]\"\n}";
    assert!(matches!(parse_sdmon(usage)[0], Err(Refusal::NotHealth { .. })));
}

fn identity<'a>(health: &'a VendorHealth, name: &str) -> Option<&'a Value> {
    health.reading(name).map(|reading| &reading.value)
}

#[test]
fn sdmon_texts_of_transcend_swissbit_and_innodisk_are_read() {
    let text = |text: &str| Value::Text(text.to_owned());
    let transcend = one("constructed/transcend.json.txt");
    assert_eq!(transcend.family, Family::TranscendSd);
    assert_eq!(identity(&transcend, "uhs_speed_grade"), Some(&text("30MB/s and higher")));
    assert_eq!(identity(&transcend, "speed_class"), Some(&text("Class 10")));
    assert_eq!(identity(&transcend, "flash_id"), Some(&text("0x45 0x3e 0x98 0x03 0x76 0x64")));
    assert_eq!(identity(&transcend, "bus_width"), Some(&text("4 bits")));
    // The card lost power 7 times and was switched on 41 times: sdmon prints neither.
    assert_eq!((transcend.number("power_losses"), transcend.number("power_cycles")), (None, None));
    let losses = transcend.implausible.iter().find(|flagged| flagged.name == "power_losses").unwrap();
    assert!(losses.found == "855638016" && losses.expected.contains("spare blocks"), "{losses:?}");
    assert_eq!(transcend.number("life_left_percent"), Some(99.0));
    let swissbit = one("constructed/swissbit.json.txt");
    assert_eq!(identity(&swissbit, "bus_speed_mode"), Some(&text("SDR104 speed")));
    assert_eq!((swissbit.number("power_cycles"), wear(&swissbit, Area::System)), (Some(19.0), vec![1, 1, 8]));
    let innodisk = one("constructed/innodisk.json.txt");
    assert_eq!(identity(&innodisk, "uhs_speed_grade"), Some(&text("10MB/s and higher")));
}

#[test]
fn an_ambiguous_count_of_power_losses_is_uncertain() {
    let text = r#"{"signature":"0x54 0x72","Transcend":"true","Abnormal power loss": 12,"Remaining card life": 99%}"#;
    let health = parse_sdmon(text.as_bytes()).remove(0).unwrap();
    let losses = health.reading("power_losses").unwrap();
    assert_eq!((losses.value.as_i64(), losses.confidence), (Some(12), Confidence::Uncertain));
}

#[test]
fn replies_and_texts_agree() {
    let mut reply = [0u8; 512];
    reply[..2].copy_from_slice(b"Tr");
    (reply[16], reply[18], reply[19], reply[70], reply[167]) = (0x10, 4, 3, 99, 7);
    let health = crate::maker_health::decode_reply(None, Some(0x1100_05f9), &reply).unwrap();
    assert_eq!(identity(&health, "uhs_speed_grade"), Some(&Value::Text("U3: 30 MB/s and more".into())));
    assert_eq!(identity(&health, "speed_class"), Some(&Value::Text("Class 10".into())));
    assert_eq!(health.number("power_losses"), Some(7.0));
    reply[19] = 2;
    let health = crate::maker_health::decode_reply(None, Some(0x1100_05f9), &reply).unwrap();
    assert_eq!(identity(&health, "uhs_speed_grade"), None);
}
