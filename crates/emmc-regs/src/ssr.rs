//! SD status: the speed promises of an SD card, its allocation units and its erase times.
//!
//! Absent on purpose: bits 311:0, the 39 bytes that belong to the maker.

use crate::Persistence::{NotSpecified, UntilReset};
use crate::error::Error;
use crate::hex;
use crate::layout::{self, BitField, bit, layout, number, of};
use crate::row::{FieldValue, RegisterField};

/// The SD status register, as ACMD13 sends it: bits 511:504 in the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ssr(pub [u8; 64]);

impl Ssr {
    /// Reads 128 hexadecimal digits, as sysfs prints them; blanks and a leading `0x` do not count.
    ///
    /// Errors: a character that is no digit, or another number of digits.
    pub fn parse_hex(text: &str) -> Result<Self, Error> {
        hex::parse("SSR", text).map(Self)
    }

    fn get(&self, field: &BitField) -> u64 {
        field.get(&self.0)
    }

    /// The speed class: 0, 2, 4, 6 or 10 MB/s sustained write speed, or `None` for a reserved code.
    pub fn speed_class(&self) -> Option<u64> {
        speed_class(self.get(SPEED_CLASS))
    }

    /// The UHS speed grade: 0, 1 (10 MB/s) or 3 (30 MB/s), or `None` for a reserved code.
    pub fn uhs_speed_grade(&self) -> Option<u64> {
        Some(self.get(UHS_SPEED_GRADE)).filter(|grade| matches!(grade, 0 | 1 | 3))
    }

    /// The video speed class: 0, 6, 10, 30, 60 or 90 MB/s, or `None` for a reserved code.
    pub fn video_speed_class(&self) -> Option<u64> {
        Some(self.get(VIDEO_SPEED_CLASS)).filter(|class| matches!(class, 0 | 6 | 10 | 30 | 60 | 90))
    }

    /// The application performance class: 0 for none, 1 (A1) or 2 (A2), or `None` for a reserved code.
    pub fn app_perf_class(&self) -> Option<u64> {
        Some(self.get(APP_PERF_CLASS)).filter(|&class| class <= 2)
    }

    /// The allocation unit that the speed class is measured in.
    ///
    /// Unit: bytes.
    pub fn au_size_bytes(&self) -> Option<u64> {
        au_size_kib(self.get(AU_SIZE)).map(|kib| kib << 10)
    }

    /// The allocation unit that the UHS speed grade is measured in.
    ///
    /// Unit: bytes.
    pub fn uhs_au_size_bytes(&self) -> Option<u64> {
        uhs_au_size_kib(self.get(UHS_AU_SIZE)).map(|kib| kib << 10)
    }

    /// How many allocation units ERASE_TIMEOUT is of; 0 where the card does not report it.
    pub fn erase_size(&self) -> u64 {
        self.get(ERASE_SIZE)
    }

    /// The longest that erasing this many allocation units may take.
    ///
    /// Unit: ms.
    pub fn erase_timeout_ms(&self, allocation_units: u64) -> Option<u64> {
        let (size, timeout_s) = (self.get(ERASE_SIZE), self.get(ERASE_TIMEOUT));
        let offset_s = self.get(ERASE_OFFSET);
        if size == 0 || timeout_s == 0 {
            return None;
        }
        (timeout_s * 1000).checked_mul(allocation_units).map(|total| total.div_ceil(size) + offset_s * 1000)
    }

    /// Whether erasing can discard: the card may forget the blocks instead of clearing them.
    pub fn supports_discard(&self) -> bool {
        DISCARD_SUPPORT.is_set(&self.0)
    }

    /// Whether the whole user area can be erased logically at once.
    pub fn supports_fule(&self) -> bool {
        FULE_SUPPORT.is_set(&self.0)
    }

    /// How many commands the card can queue, or `None` when it cannot.
    pub fn queue_depth(&self) -> Option<u64> {
        Some(queue(self.get(PERFORMANCE_ENHANCE))).filter(|&depth| depth > 0).map(|depth| depth + 1)
    }

    /// Every field but the maker's, for printing and comparing.
    pub fn fields(&self) -> Vec<RegisterField> {
        layout::rows("SSR", &self.0, FIELDS)
    }
}

// Source: SD physical layer simplified specification, clause 4.10.2; Linux `drivers/mmc/core/sd.c` for AU_SIZE.
layout! {
    DAT_BUS_WIDTH = of(511, 510, "bit", |raw| match raw {
        0 => FieldValue::Number(1),
        2 => FieldValue::Number(4),
        _ => FieldValue::Undefined,
    })
    .persists(UntilReset);
    SECURED_MODE = bit(509).persists(UntilReset);
    SD_CARD_TYPE = of(495, 480, "", |raw| match raw {
        0 => "regular".into(),
        1 => "SD ROM".into(),
        2 => "OTP".into(),
        _ => FieldValue::Undefined,
    });
    SIZE_OF_PROTECTED_AREA = number(479, 448, "");
    SPEED_CLASS = of(447, 440, "MB/s", |raw| speed_class(raw).into());
    PERFORMANCE_MOVE = of(439, 432, "MB/s", performance_move);
    AU_SIZE = of(431, 428, "KiB", |raw| au_size_kib(raw).into());
    ERASE_SIZE = of(423, 408, "AU", not_zero);
    ERASE_TIMEOUT = of(407, 402, "s", not_zero);
    ERASE_OFFSET = number(401, 400, "s");
    UHS_SPEED_GRADE = of(399, 396, "", |raw| Some(raw).filter(|grade| matches!(grade, 0 | 1 | 3)).into());
    UHS_AU_SIZE = of(395, 392, "KiB", |raw| uhs_au_size_kib(raw).into());
    VIDEO_SPEED_CLASS = number(391, 384, "MB/s");
    VSC_AU_SIZE = of(377, 368, "MiB", not_zero);
    SUS_ADDR = of(367, 346, "KiB", |raw| FieldValue::Number(raw * 512)).persists(NotSpecified);
    APP_PERF_CLASS = of(339, 336, "", |raw| match raw {
        0 => "none".into(),
        1 => "A1".into(),
        2 => "A2".into(),
        _ => FieldValue::Undefined,
    });
    PERFORMANCE_ENHANCE = of(335, 328, "", performance_enhance);
    DISCARD_SUPPORT = bit(313);
    FULE_SUPPORT = bit(312);
}

fn speed_class(code: u64) -> Option<u64> {
    [0, 2, 4, 6, 10].get(usize::try_from(code).ok()?).copied()
}

/// AU_SIZE doubles up to 8 MiB; above, the codes between hold 12 and 24 MiB. 0 is undefined.
fn au_size_kib(code: u64) -> Option<u64> {
    match code {
        1..=10 => Some(8 << code),
        11 => Some(12 << 10),
        12 => Some(16 << 10),
        13 => Some(24 << 10),
        14 => Some(32 << 10),
        15 => Some(64 << 10),
        _ => None,
    }
}

/// UHS_AU_SIZE has the same codes, from 1 MiB on.
fn uhs_au_size_kib(code: u64) -> Option<u64> {
    if code < 7 { None } else { au_size_kib(code) }
}

fn not_zero(raw: u64) -> FieldValue {
    Some(raw).filter(|&raw| raw > 0).into()
}

fn performance_move(raw: u64) -> FieldValue {
    match raw {
        0 => "sequential write".into(),
        0xff => "infinite".into(),
        _ => FieldValue::Number(raw),
    }
}

fn performance_enhance(raw: u64) -> FieldValue {
    let names = [(0, "card maintenance"), (1, "host maintenance"), (2, "cache")];
    let mut value = FieldValue::flags(raw & 7, &names);
    if let (FieldValue::Flags(flags), depth @ 1..) = (&mut value, queue(raw)) {
        flags.push(format!("command queue of {}", depth + 1).into());
    }
    value
}

/// The queue's depth - 1 in PERFORMANCE_ENHANCE; 0 without a queue.
fn queue(performance_enhance: u64) -> u64 {
    performance_enhance >> 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::set_bits;

    fn ssr(fields: &[(u16, u16, u64)]) -> Ssr {
        let mut bytes = [0; 64];
        for &(hi, lo, value) in fields {
            set_bits(&mut bytes, hi, lo, value);
        }
        Ssr(bytes)
    }

    fn value(ssr: &Ssr, name: &str) -> String {
        let fields = ssr.fields();
        let field = fields.iter().find(|field| field.name == name).unwrap();
        format!("{} {}", field.value, field.unit).trim_end().to_string()
    }

    #[test]
    fn the_status_of_a_fast_card_is_decoded() {
        // Four lines, class 10, U3, V30, A2, queue of 32 with cache and both maintenances, discard and FULE.
        let text = "8000000000000000040090000f053a1e000800000002ff0003".to_owned() + &"0".repeat(78);
        let ssr = Ssr::parse_hex(&text).unwrap();
        for (name, expected) in [
            ("DAT_BUS_WIDTH", "4 bit"),
            ("SD_CARD_TYPE", "regular"),
            ("SPEED_CLASS", "10 MB/s"),
            ("PERFORMANCE_MOVE", "sequential write MB/s"),
            ("AU_SIZE", "4096 KiB"),
            ("ERASE_SIZE", "15 AU"),
            ("ERASE_TIMEOUT", "1 s"),
            ("ERASE_OFFSET", "1 s"),
            ("UHS_SPEED_GRADE", "3"),
            ("UHS_AU_SIZE", "8192 KiB"),
            ("VIDEO_SPEED_CLASS", "30 MB/s"),
            ("VSC_AU_SIZE", "8 MiB"),
            ("APP_PERF_CLASS", "A2"),
            ("DISCARD_SUPPORT", "1"),
            ("FULE_SUPPORT", "1"),
        ] {
            assert_eq!(value(&ssr, name), expected, "{name}");
        }
        assert_eq!((ssr.speed_class(), ssr.uhs_speed_grade(), ssr.video_speed_class()), (Some(10), Some(3), Some(30)));
        assert_eq!((ssr.app_perf_class(), ssr.au_size_bytes()), (Some(2), Some(4 << 20)));
        assert_eq!(ssr.uhs_au_size_bytes(), Some(8 << 20));
        assert_eq!(ssr.erase_timeout_ms(30), Some(3000));
    }

    #[test]
    fn allocation_units_follow_the_table() {
        let kib = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384, 24576, 32768, 65536];
        for (code, kib) in (1..).zip(kib) {
            assert_eq!(ssr(&[(431, 428, code)]).au_size_bytes(), Some(kib << 10), "{code}");
            let uhs = ssr(&[(395, 392, code)]).uhs_au_size_bytes();
            assert_eq!(uhs, (code >= 7).then_some(kib << 10), "{code}");
        }
        assert_eq!((ssr(&[]).au_size_bytes(), ssr(&[]).uhs_au_size_bytes()), (None, None));
    }

    #[test]
    fn reserved_codes_are_unknown_and_not_zero() {
        let ssr = ssr(&[(447, 440, 5), (399, 396, 2), (391, 384, 31), (339, 336, 3), (511, 510, 1)]);
        assert_eq!((ssr.speed_class(), ssr.uhs_speed_grade()), (None, None));
        assert_eq!((ssr.video_speed_class(), ssr.app_perf_class()), (None, None));
        assert_eq!(value(&ssr, "DAT_BUS_WIDTH"), "undefined bit");
        assert_eq!((ssr.queue_depth(), ssr.erase_timeout_ms(1)), (None, None));
    }

    #[test]
    fn enhancements_and_limits_are_decoded() {
        let all = Ssr([0xff; 64]);
        assert_eq!(all.queue_depth(), Some(32));
        let expected = "card maintenance, host maintenance, cache, command queue of 32";
        assert_eq!(value(&all, "PERFORMANCE_ENHANCE"), expected);
        assert_eq!(value(&all, "PERFORMANCE_MOVE"), "infinite MB/s");
        assert!(all.supports_discard() && all.supports_fule());
        assert_eq!(all.erase_timeout_ms(u64::MAX), None);
        layout::assert_orderly(512, FIELDS);
    }
}
