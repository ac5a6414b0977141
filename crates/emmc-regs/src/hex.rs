//! Registers as hexadecimal digits, the way sysfs prints them: highest byte first.

use crate::error::Error;

/// The bytes of `text`, which must have exactly `2 * N` digits; blanks and a leading `0x` do not count.
pub(crate) fn parse<const N: usize>(register: &'static str, text: &str) -> Result<[u8; N], Error> {
    let blanks = text.len() - text.trim_start().len();
    let prefix = text.get(blanks..blanks + 2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    let digits_at = blanks + if prefix { 2 } else { 0 };
    let mut bytes = [0; N];
    let mut found = 0;
    for (offset, letter) in text.get(digits_at..).unwrap_or_default().char_indices() {
        if letter.is_whitespace() {
            continue;
        }
        let digit = letter.to_digit(16).ok_or(Error::NotHex { register, offset: digits_at + offset, found: letter })?;
        if let Some(byte) = bytes.get_mut(found / 2) {
            *byte = *byte << 4 | digit as u8;
        }
        found += 1;
    }
    if found == 2 * N { Ok(bytes) } else { Err(Error::DigitCount { register, expected: 2 * N, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_digits_are_read() {
        for text in ["02358002", "0x02358002", " 0X02358002\n", "02 35 80 02", "\t0235\r\n8002 "] {
            assert_eq!(parse::<4>("SCR", text), Ok([0x02, 0x35, 0x80, 0x02]), "{text:?}");
        }
        assert_eq!(parse::<1>("SCR", "aB"), Ok([0xab]));
    }

    #[test]
    fn invalid_digits_are_named_with_their_place() {
        let wrong = |offset, found| Err::<[u8; 4], _>(Error::NotHex { register: "SCR", offset, found });
        let count = |found| Err::<[u8; 4], _>(Error::DigitCount { register: "SCR", expected: 8, found });
        for (text, expected) in [
            ("", count(0)),
            ("0x", count(0)),
            ("0235800", count(7)),
            ("023580020", count(9)),
            ("0235g002", wrong(4, 'g')),
            ("0x0235 x02", wrong(7, 'x')),
            ("0x0x02358002", wrong(3, 'x')),
            ("0235é002", wrong(4, 'é')),
            ("é", wrong(0, 'é')),
            ("\u{2003}0x12 -", wrong(8, '-')),
        ] {
            assert_eq!(parse::<4>("SCR", text), expected, "{text:?}");
        }
    }

    #[test]
    fn messages_have_place_expected_and_found() {
        for (text, message) in [
            ("0235800", "SCR has 7 hexadecimal digits; expected 8"),
            ("0235g002", "SCR has 'g' at offset 4; expected a hexadecimal digit"),
        ] {
            assert_eq!(parse::<4>("SCR", text).map_err(|error| error.to_string()), Err(message.to_string()));
        }
    }
}
