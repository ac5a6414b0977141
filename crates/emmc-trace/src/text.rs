//! Small parts of text.

use emmc_units::Nanos;

/// A decimal number, and nothing else.
#[inline]
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, byte| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// A number that may be negative.
pub(crate) fn signed(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', rest @ ..] => i64::try_from(decimal(rest)?).ok().map(|value| -value),
        _ => i64::try_from(decimal(text)?).ok(),
    }
}

/// Hex digits, with or without `0x`.
pub(crate) fn hex(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    (1..=16).contains(&digits.len()).then_some(())?;
    digits.iter().try_fold(0u64, |sum, byte| Some(sum << 4 | u64::from((*byte as char).to_digit(16)?)))
}

/// Decimal, or hex with `0x`.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.starts_with(b"0x") { hex(text) } else { decimal(text) }
}

/// `seconds.fraction`, with up to nine digits of the fraction.
pub(crate) fn seconds(text: &[u8]) -> Option<Nanos> {
    let dot = memchr::memchr(b'.', text)?;
    let fraction = &text[dot + 1..];
    let scale = 10u64.checked_pow(9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?)?;
    let nanos = decimal(fraction)? * scale;
    decimal(&text[..dot])?.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos)
}

/// `major,minor` as one number.
pub(crate) fn device(text: &[u8]) -> Option<u32> {
    let comma = memchr::memchr2(b',', b':', text)?;
    let (major, minor) = (decimal(&text[..comma])?, decimal(&text[comma + 1..])?);
    (major < 1 << 12 && minor < 1 << 20).then_some((major << 20 | minor) as u32)
}

/// Words between blanks.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// For messages: at most 60 characters.
pub(crate) fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(60).collect()
}
