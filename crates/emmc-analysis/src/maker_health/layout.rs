//! Layout tables of replies: position, byte order and meaning of each value.

use super::builder::Builder;
use super::meaning::{Limit, Meaning};
use super::model::{Confidence, Value};
use super::refusal::hex;

/// How a number or text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    U8,
    Be16,
    Le16,
    Be24,
    Be32,
    Le32,
    Be64,
    Le64,
    /// The sum of that many bytes.
    Sum(usize),
    /// That many bytes of ASCII.
    Ascii(usize),
    /// That many bytes, as hexadecimal digits.
    Hex(usize),
    /// Two halves of 16 bits, big-endian: the upper one at the first offset, the lower one here.
    Split(usize),
    /// One byte that stands for a text; other values are absent.
    Code(&'static [(u8, &'static str)]),
}

/// Scale of the raw number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    One,
    Times(u64),
    Per(u32),
}

/// One value of a reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    at: usize,
    form: Form,
    scale: Scale,
    meaning: Meaning,
    confidence: Confidence,
    remark: &'static str,
    /// Zero means unknown.
    zero_is_absent: bool,
}

/// A value at an offset, known from one source.
pub(super) const fn at(at: usize, form: Form, meaning: Meaning) -> Field {
    Field {
        at,
        form,
        scale: Scale::One,
        meaning,
        confidence: Confidence::SingleSource,
        remark: "",
        zero_is_absent: false,
    }
}

impl Field {
    pub(super) const fn times(self, factor: u64) -> Self {
        Self { scale: Scale::Times(factor), ..self }
    }

    pub(super) const fn per(self, divisor: u32) -> Self {
        Self { scale: Scale::Per(divisor), ..self }
    }

    pub(super) const fn sure(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    pub(super) const fn remark(self, remark: &'static str) -> Self {
        Self { remark, ..self }
    }

    pub(super) const fn unless_zero(self) -> Self {
        Self { zero_is_absent: true, ..self }
    }
}

/// The raw number of a field, and whether all its bits are set; `None` past the reply's end or for text.
pub(super) fn number(reply: &[u8], at: usize, form: Form) -> Option<(u64, bool)> {
    let big = |width: usize| raw(reply, at, width).map(|bytes| fold(bytes.iter(), width));
    let little = |width: usize| raw(reply, at, width).map(|bytes| fold(bytes.iter().rev(), width));
    match form {
        Form::U8 => big(1),
        Form::Be16 => big(2),
        Form::Be24 => big(3),
        Form::Be32 => big(4),
        Form::Be64 => big(8),
        Form::Le16 => little(2),
        Form::Le32 => little(4),
        Form::Le64 => little(8),
        Form::Sum(width) => {
            let bytes = raw(reply, at, width)?;
            let sum = bytes.iter().map(|&byte| u64::from(byte)).sum();
            Some((sum, bytes.iter().all(|&byte| byte == 0xff)))
        }
        Form::Split(lower) => {
            let (high, low) = (raw(reply, at, 2)?, raw(reply, lower, 2)?);
            Some(fold(high.iter().chain(low), 4))
        }
        Form::Ascii(_) | Form::Hex(_) | Form::Code(_) => None,
    }
}

fn fold<'a>(bytes: impl Iterator<Item = &'a u8>, width: usize) -> (u64, bool) {
    let value = bytes.fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    (value, value == u64::MAX >> (64 - 8 * width.clamp(1, 8)))
}

fn raw(reply: &[u8], at: usize, width: usize) -> Option<&[u8]> {
    reply.get(at..at.checked_add(width)?)
}

/// Printable ASCII without the padding around it; `None` if there is none.
pub(super) fn ascii(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text: String = bytes.get(..end)?.iter().copied().map(char::from).collect();
    let text = text.trim();
    (!text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ')).then(|| text.to_owned())
}

/// Reads every field into the report.
pub(super) fn read(builder: &mut Builder, reply: &[u8], fields: &[Field]) {
    for field in fields {
        read_one(builder, reply, field);
    }
}

fn read_one(builder: &mut Builder, reply: &[u8], field: &Field) {
    let source = source_of(builder.source(), field);
    let value = match field.form {
        Form::Ascii(width) => match raw(reply, field.at, width).map(ascii) {
            Some(Some(text)) => Value::Text(text),
            _ => return,
        },
        Form::Hex(width) => match raw(reply, field.at, width) {
            Some(bytes) if bytes.iter().any(|&byte| byte != 0) => Value::Text(hex(bytes)),
            _ => return,
        },
        Form::Code(texts) => {
            let code = reply.get(field.at).copied();
            match texts.iter().find(|(known, _)| Some(*known) == code) {
                Some((_, text)) => Value::Text((*text).to_owned()),
                None => return,
            }
        }
        form => {
            let Some((raw, all_ones)) = number(reply, field.at, form) else { return };
            if raw == 0 && field.zero_is_absent {
                return;
            }
            if all_ones && field.meaning.limit != Limit::Free {
                let expected = "a count: all bits set means unset or overflowed";
                return builder.flag(&field.meaning, format!("{raw:#x}"), expected, source);
            }
            // Temperatures are the only signed numbers, all of them 32 bits wide.
            let value = match field.meaning.limit {
                Limit::Celsius => Some(Value::Integer(i64::from(raw as u32 as i32))),
                _ => scaled(raw, field.scale),
            };
            match value {
                Some(value) => value,
                None => return builder.flag(&field.meaning, format!("{raw}"), "a count that fits 63 bits", source),
            }
        }
    };
    builder.put(&field.meaning, value, source, field.confidence);
}

fn scaled(raw: u64, scale: Scale) -> Option<Value> {
    Some(match scale {
        Scale::One => Value::Integer(i64::try_from(raw).ok()?),
        Scale::Times(factor) => Value::Integer(i64::try_from(raw.checked_mul(factor)?).ok()?),
        Scale::Per(divisor) => Value::Decimal(raw as f64 / f64::from(divisor.max(1))),
    })
}

fn source_of(report: &str, field: &Field) -> String {
    let (at, width, order) = match field.form {
        Form::U8 | Form::Code(_) => (field.at, 1, ""),
        Form::Be16 => (field.at, 2, ", big-endian"),
        Form::Be24 => (field.at, 3, ", big-endian"),
        Form::Be32 => (field.at, 4, ", big-endian"),
        Form::Be64 => (field.at, 8, ", big-endian"),
        Form::Le16 => (field.at, 2, ", little-endian"),
        Form::Le32 => (field.at, 4, ", little-endian"),
        Form::Le64 => (field.at, 8, ", little-endian"),
        Form::Sum(width) => (field.at, width, ", summed"),
        Form::Ascii(width) => (field.at, width, ", ASCII"),
        Form::Hex(width) => (field.at, width, ""),
        Form::Split(_) => (field.at, 2, ", big-endian, upper half"),
    };
    let mut source = match width {
        1 => format!("{report}, byte {at}"),
        _ => format!("{report}, bytes {at}..{}{order}", at + width),
    };
    if let Form::Split(lower) = field.form {
        source.push_str(&format!("; bytes {lower}..{}, lower half", lower + 2));
    }
    match field.scale {
        Scale::One => {}
        Scale::Times(factor) => source.push_str(&format!(", x {factor}")),
        Scale::Per(divisor) => source.push_str(&format!(", / {divisor}")),
    }
    if !field.remark.is_empty() {
        source.push_str(&format!(" ({})", field.remark));
    }
    source
}

#[cfg(test)]
mod tests {
    use super::super::Family;
    use super::super::meaning::{FIRMWARE, INITIAL_BAD_BLOCKS, WRITTEN_BYTES, count};
    use super::*;

    #[test]
    fn every_format_reads_its_bytes_and_none_beyond_the_end() {
        let reply = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08];
        assert_eq!(number(&reply, 7, Form::U8), Some((8, false)));
        assert_eq!(number(&reply, 0, Form::Be16), Some((0x0102, false)));
        assert_eq!(number(&reply, 0, Form::Le16), Some((0x0201, false)));
        assert_eq!(number(&reply, 1, Form::Be24), Some((0x02_0304, false)));
        assert_eq!(number(&reply, 4, Form::Be32), Some((0x0506_0708, false)));
        assert_eq!(number(&reply, 4, Form::Le32), Some((0x0807_0605, false)));
        assert_eq!(number(&reply, 0, Form::Be64), Some((0x0102_0304_0506_0708, false)));
        assert_eq!(number(&reply, 0, Form::Le64), Some((0x0807_0605_0403_0201, false)));
        assert_eq!(number(&reply, 0, Form::Sum(8)), Some((36, false)));
        assert_eq!(number(&reply, 0, Form::Split(6)), Some((0x0102_0708, false)));
        assert_eq!(number(&reply, 5, Form::Be32), None);
        assert_eq!(number(&reply, usize::MAX, Form::Be32), None);
        assert_eq!(number(&[0xff; 8], 0, Form::Le64), Some((u64::MAX, true)));
        assert_eq!(number(&[0xff; 8], 0, Form::Be24), Some((0xff_ffff, true)));
    }

    #[test]
    fn sources_name_bytes_byte_order_and_factor() {
        let mut reply = [0u8; 512];
        reply[0..2].copy_from_slice(&[0, 7]);
        reply[64..68].copy_from_slice(&[3, 0, 0, 0]);
        reply[32..36].copy_from_slice(b"V1  ");
        reply[100..104].copy_from_slice(&[0xff; 4]);
        let fields = [
            at(0, Form::Be16, INITIAL_BAD_BLOCKS),
            at(64, Form::Le32, WRITTEN_BYTES).times(100_000_000).remark("MB"),
            at(32, Form::Ascii(4), FIRMWARE),
            at(100, Form::Be32, count("power_cycles")),
            at(200, Form::Be32, count("resets")).unless_zero(),
        ];
        let mut builder = Builder::new(Family::Micron, "CMD56 argument 0x00000011");
        read(&mut builder, &reply, &fields);
        let health = builder.finish();
        let bad = health.reading("initial_bad_blocks").unwrap();
        assert_eq!(bad.source, "CMD56 argument 0x00000011, bytes 0..2, big-endian");
        let written = health.reading("written_bytes").unwrap();
        assert_eq!(written.value, Value::Integer(300_000_000));
        assert!(written.source.ends_with("bytes 64..68, little-endian, x 100000000 (MB)"), "{}", written.source);
        assert_eq!(health.reading("firmware").unwrap().value, Value::Text("V1".to_owned()));
        assert_eq!(health.implausible[0].found, "0xffffffff");
        assert_eq!((health.reading("power_cycles"), health.reading("resets")), (None, None));
    }
}
