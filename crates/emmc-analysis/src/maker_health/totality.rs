//! No input makes a decoder panic or turns an impossible value into a reading.

use super::{Area, Family, VendorHealth, decode_reply, parse_emmcparm, parse_sdmon};

/// A small generator with a fixed seed, so that a failure repeats.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        // Dense, sparse, and with runs of 0xFF: each reaches other branches.
        let style = self.below(3);
        (0..length)
            .map(|_| match (style, self.below(8)) {
                (0, _) | (1, 0) => self.next() as u8,
                (2, 0..=3) => 0xff,
                _ => 0,
            })
            .collect()
    }
}

const ARGUMENTS: [u32; 20] = [
    0x01,
    0x0d,
    0x11,
    0x21,
    0x23,
    0x25,
    0x29,
    0x35,
    0x39,
    0x81,
    0x83,
    0x85,
    0x87,
    0x0385,
    0x0001_0081,
    0x1100_0001,
    0x1100_05f1,
    0x2000_05f1,
    0x5345_4852,
    0xf000_0061,
];

fn check(health: &VendorHealth) {
    serde_json::to_string(health).unwrap();
    assert!(!health.is_empty());
    for (_, reading) in health.readings() {
        let Some(number) = reading.value.as_f64() else { continue };
        assert!(number.is_finite(), "{reading:?}");
        if reading.unit == Some("percent") {
            assert!((0.0..=100.0).contains(&number), "{reading:?}");
        }
        assert!(!reading.source.is_empty());
    }
    for wear in &health.areas {
        let number = |reading: &Option<super::Reading>| reading.as_ref().and_then(|reading| reading.value.as_f64());
        if let (Some(min), Some(max)) = (number(&wear.min), number(&wear.max)) {
            assert!(min <= max, "{wear:?}");
        }
    }
    let mut areas: Vec<Area> = health.areas.iter().map(|wear| wear.area).collect();
    areas.sort_unstable();
    areas.dedup();
    assert_eq!(areas.len(), health.areas.len());
}

#[test]
fn no_reply_of_any_family_panics() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let families: Vec<Option<Family>> = Family::all().map(Some).chain([None]).collect();
    let mut decoded = 0;
    for round in 0..40 {
        for &family in &families {
            for argument in ARGUMENTS.into_iter().map(Some).chain([None, Some(rng.next() as u32)]) {
                let length = match round % 4 {
                    0 => rng.below(1600),
                    1 => 1536,
                    _ => 512,
                };
                let mut reply = rng.bytes(length);
                if let (Some([first, second]), true) = (family.and_then(Family::signature), length > 1) {
                    (reply[0], reply[1]) = (first, second);
                }
                if family == Some(Family::ToshibaEmmc) && length > 3 {
                    (reply[0], reply[3]) = (if round % 2 == 0 { 5 } else { 7 }, 0xa0);
                }
                if family == Some(Family::TwoStepSd) && length > 0 {
                    reply[0] = 0x98;
                }
                if let Ok(health) = decode_reply(family, argument, &reply) {
                    check(&health);
                    decoded += 1;
                }
            }
        }
    }
    assert!(decoded > 2000, "only {decoded} replies were decoded");
}

#[test]
fn no_whole_cut_or_damaged_text_panics() {
    let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    let files = [
        "sdmon/apacer-readme/sdmon.json.txt",
        "sdmon/sandisk-ultra-sd128/sdmon.json.txt",
        "sdmon/transcend-460t-64g/sdmon.json.txt",
        "sdmon/negative-apacer-ak6-slc-32g/sdmon.json.txt",
        "seeds_console/emmcparm_erase_count.txt",
        "seeds_console/emmcparm_sect_count.txt",
        "seeds_console/emmcparm_spare_block.txt",
    ];
    let mut rng = Rng(0x2545_f491_4f6c_dd1d);
    for file in files {
        let text = std::fs::read(format!("{testdata}/{file}")).unwrap();
        for _ in 0..400 {
            let mut spoilt = text.clone();
            for _ in 0..rng.below(6) {
                let at = rng.below(spoilt.len());
                spoilt[at] = match rng.below(4) {
                    0 => b'"',
                    1 => b'[',
                    2 => b'9',
                    _ => rng.next() as u8,
                };
            }
            spoilt.truncate(rng.below(spoilt.len()) + 1);
            parse_sdmon(&spoilt).iter().flatten().for_each(check);
            parse_emmcparm(&spoilt).iter().for_each(check);
        }
    }
    for _ in 0..200 {
        let length = rng.below(400);
        let noise = rng.bytes(length);
        parse_sdmon(&noise).iter().flatten().for_each(check);
        parse_emmcparm(&noise).iter().for_each(check);
    }
}

#[test]
fn long_texts_take_linear_time() {
    // A megabyte of each shape that could be read twice over: this finishes at once, or not at all.
    for unit in ["{", "\"a\":[", "\"a\":1,", "\"", "[", "\"a\": \"", "\"signature\":\"0x0 0x1\"", "Block#\n1 2 -\n"] {
        let text = unit.repeat(1_000_000 / unit.len());
        assert!(!parse_sdmon(text.as_bytes()).is_empty());
        let _ = parse_emmcparm(text.as_bytes());
    }
}
