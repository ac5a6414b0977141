//! Saved text as numbered lines: byte order mark, CRLF, terminal colours and stray bytes are handled here once.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::{Place, SourceError};

/// Bytes of zero that a text may have, among letters only.
const NULS_MAX: usize = 4;

/// A saved file that is text, in any form.
pub(super) struct Text<'a> {
    /// The source, as the user named it.
    pub(super) name: &'a str,
    /// The saved bytes.
    pub(super) raw: &'a [u8],
    text: Cow<'a, str>,
    /// The last line, if it has no line end.
    cut_line: Option<u64>,
}

/// One line without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    /// Counted from 1.
    pub(super) number: u64,
    /// Without the line's end.
    pub(super) text: &'t str,
}

impl<'a> Text<'a> {
    /// The text in `raw`, or `None` when it is binary.
    ///
    /// Errors: UTF-16, which would otherwise be refused as binary without a hint at the remedy.
    pub(super) fn new(name: &'a str, raw: &'a [u8]) -> Result<Option<Self>, SourceError> {
        if is_utf16(raw) {
            let found = "UTF-16; convert it first, e.g. iconv -f UTF-16 -t UTF-8 (PowerShell's > writes UTF-16)";
            return Err(SourceError::malformed(name, Place::Byte(0), "UTF-8 text", found));
        }
        let body = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
        // mmc-utils prints an OID of zero as that byte; a register or a reply has many of them.
        let nuls = body.iter().filter(|&&byte| byte == 0).count();
        if nuls > NULS_MAX || (nuls > 0 && !body.contains(&b'\n')) {
            return Ok(None);
        }
        // Firmware versions and card names put a few arbitrary bytes into otherwise plain text.
        let text = String::from_utf8_lossy(body);
        // In valid UTF-8 a replacement character was in the text, for example from an earlier run of this tool.
        let is_lossy = matches!(text, Cow::Owned(_));
        let stray =
            text.chars().filter(|&letter| is_control(letter) || is_lossy && letter == char::REPLACEMENT_CHARACTER);
        let stray = stray.count();
        if (stray > 16 && stray > text.len() / 16) || (nuls > 0 && stray > NULS_MAX) {
            return Ok(None);
        }
        let text = if text.contains('\x1b') { Cow::Owned(without_escapes(&text)) } else { text };
        let ended = text.is_empty() || text.ends_with('\n');
        let cut_line = (!ended).then(|| text.lines().count() as u64);
        Ok(Some(Self { name, raw, text, cut_line }))
    }

    /// All of it.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The lines, in order.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.text.lines().zip(1..).map(|(text, number)| Line { number, text: text.trim_end_matches('\r') })
    }

    /// Whether a line is the last one and has no line end: its last value may continue in the source.
    pub(super) fn is_cut(&self, line: u64) -> bool {
        self.cut_line == Some(line)
    }

    /// The error for an invalid line.
    pub(super) fn malformed(&self, line: u64, expected: impl Into<String>, found: impl Into<String>) -> SourceError {
        SourceError::malformed(self.name, Place::Line(line), expected, found)
    }
}

/// Whether a character does not belong in text.
fn is_control(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\t' | '\n' | '\r' | '\x08' | '\x1b')
}

fn is_utf16(raw: &[u8]) -> bool {
    if raw.starts_with(b"\xff\xfe") || raw.starts_with(b"\xfe\xff") {
        // A read without a response also begins with 0xff bytes, but has no 0xfe.
        return raw.len() > 2;
    }
    // Without a byte order mark: every second byte of the start is zero, the others are text.
    let start = raw.get(..64).unwrap_or(raw);
    let looks = |text: usize| {
        start.len() >= 8
            && start.chunks_exact(2).all(|pair| {
                let (letter, zero) = (pair.get(text), pair.get(1 - text));
                zero == Some(&0)
                    && letter.is_some_and(|letter| letter.is_ascii_graphic() || letter.is_ascii_whitespace())
            })
    };
    looks(0) || looks(1)
}

/// Text without terminal colours and cursor moves, as a logged serial console has them.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\x1b' {
            plain.push(letter);
        } else if letters.next_if_eq(&'[').is_some() {
            while letters.next_if(|&letter| matches!(letter, '0'..='?' | ' '..='/')).is_some() {}
            letters.next_if(|letter| matches!(letter, '@'..='~'));
        }
    }
    plain
}

/// The first letters of a text, quoted, for a message.
pub(super) fn excerpt(text: &str) -> String {
    let text = text.trim();
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("{short:?}")
}

/// The number after a leading `0x`, up to the first other letter; `None` above 64 bits or without digits.
pub(super) fn hex_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let end = digits.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, 16).ok()
}

/// The number after a leading `0x` that has exactly `digits` digits, and is not followed by letters of a longer one.
///
/// Tools print registers in fixed widths: fewer digits, or more, are a value that was cut or changed.
pub(super) fn hex_of_width(text: &str, digits: RangeInclusive<usize>) -> Option<u64> {
    let number = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let end = number.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(number.len());
    let (number, behind) = number.split_at_checked(end)?;
    // A comment may follow, but not the rest of a broken number.
    let ends =
        behind.is_empty() || behind.starts_with([']', ' ', '\t', ',', '"', '\'', '`', ')', '*', '<', '\u{fffd}']);
    let whole = digits.contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_hexdigit());
    u64::from_str_radix(number, 16).ok().filter(|_| whole && ends)
}

/// The decimal number that a text begins with.
pub(super) fn decimal_number(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(raw: &[u8]) -> Vec<String> {
        let text = Text::new("log", raw).unwrap().unwrap();
        text.lines().map(|line| format!("{} {}", line.number, line.text)).collect()
    }

    #[test]
    fn line_ends_marks_and_colours_are_ignored() {
        for raw in [&b"a\nb"[..], b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n", b"\x1b[1;32ma\x1b[0m\nb", b"a\r\r\nb"] {
            assert_eq!(lines(raw), ["1 a", "2 b"], "{raw:?}");
        }
        assert_eq!(lines(b"Firmware \xc3\x28\x06"), ["1 Firmware \u{fffd}(\u{6}"]);
        assert_eq!(lines(b"\x1b"), [""; 0]);
    }

    #[test]
    fn a_few_zeros_among_lines_are_text() {
        assert_eq!(lines(b"manufacturer: 'x' '\0'\nb\n"), ["1 manufacturer: 'x' '\0'", "2 b"]);
        for binary in [&b"no line's end\0"[..], b"a\n\0\0\0\0\0", b"\x01\x02\0\n\x03\x04"] {
            assert!(Text::new("x", binary).unwrap().is_none(), "{binary:?}");
        }
    }

    #[test]
    fn only_a_last_line_without_a_line_end_is_truncated() {
        let cut = |raw: &str| {
            let text = Text::new("log", raw.as_bytes()).unwrap().unwrap();
            (1..4).filter(|&line| text.is_cut(line)).collect::<Vec<u64>>()
        };
        assert_eq!(
            [cut("a\nb\nc"), cut("a"), cut("a\nb\n"), cut("a\r\n"), cut("")],
            [vec![3], vec![1], vec![], vec![], vec![]]
        );
    }

    #[test]
    fn replacement_characters_in_utf8_are_text() {
        let written = "\u{fffd}".repeat(400);
        assert!(Text::new("f", written.as_bytes()).unwrap().is_some());
        assert!(Text::new("f", &[0xff; 400]).is_ok_and(|text| text.is_none()));
    }

    #[test]
    fn binary_is_not_text_and_utf16_is_named() {
        assert!(Text::new("x", &[0; 64]).unwrap().is_none());
        assert!(Text::new("x", &[0x87; 64]).unwrap().is_none());
        let wide: Vec<u8> = "Extended CSD".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [b"\xff\xfe", wide.as_slice()].concat();
        let big: Vec<u8> = "Extended CSD".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for raw in [wide, marked, big] {
            let message = Text::new("x", &raw).err().unwrap().to_string();
            assert!(message.contains("iconv -f UTF-16 -t UTF-8"), "{message}");
        }
        assert!(Text::new("x", &[0xff; 512]).unwrap().is_none());
    }

    #[test]
    fn numbers_end_where_their_digits_end() {
        assert_eq!(hex_number("0x1f] x"), Some(0x1f));
        assert_eq!(hex_number("0Xab"), Some(0xab));
        assert_eq!(hex_number("0x"), None);
        assert_eq!(hex_number("1f"), None);
        assert_eq!(hex_number("0x1ffffffffffffffff"), None);
        for (text, number) in [
            ("0x0b", Some(11)),
            ("0x0b] x", Some(11)),
            ("0x0B", Some(11)),
            ("0x0", None),
            ("0x00b", None),
            ("0x", None),
        ] {
            assert_eq!(hex_of_width(text, 2..=2), number, "{text}");
        }
        for text in ["0x0beMMC", "0x01_", "0x0g", "0b", "x0b", "0x0x0b", "0x01.1", "0x01-"] {
            assert_eq!(hex_of_width(text, 2..=2), None, "{text}");
        }
        assert_eq!(decimal_number("8192 KiB"), Some(8192));
        assert_eq!(decimal_number("x"), None);
        assert_eq!(excerpt(&"é".repeat(41)), format!("\"{}...\"", "é".repeat(40)));
    }
}
