use std::borrow::Cow;
use std::fmt::Write;

use emmc_units::is_unprintable;

/// The text with every character that moves, hides or colours other text written out: ESC becomes `\x1b`.
///
/// A line break is such a character too: a card's name must not be able to add a line to a report.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unprintable) { Cow::Owned(written_out(text, |_| false)) } else { Cow::Borrowed(text) }
}

/// Like [`visible`], but line breaks and tabs stay.
pub(crate) fn visible_lines(text: &str) -> String {
    written_out(text, |c| c == '\n' || c == '\t')
}

fn written_out(text: &str, kept: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if kept(c) || !is_unprintable(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => write_escape(&mut out, c),
        }
    }
    out
}

/// The text for a locale without UTF-8: signs by their usual spelling in ASCII. Everything else stays, because a file's
/// name is the same bytes in every locale.
pub(crate) fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            '\u{a0}' | '\u{2009}' | '\u{202f}' => out.push(' '),
            'µ' | 'μ' => out.push('u'),
            '‐' | '‑' | '–' | '−' => out.push('-'),
            '—' => out.push_str("--"),
            '×' | '·' | '•' => out.push(if c == '×' { 'x' } else { '*' }),
            '≈' => out.push('~'),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            '≠' => out.push_str("!="),
            '±' => out.push_str("+/-"),
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            '…' => out.push_str("..."),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            '°' => out.push_str("deg"),
            '²' | '³' => out.push_str(if c == '²' { "^2" } else { "^3" }),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn write_escape(out: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = if u32::from(c) < 0x100 {
        write!(out, "\\x{:02x}", u32::from(c))
    } else {
        write!(out, "{}", c.escape_unicode())
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in [
            ("plain µs – 7,5 °C", "plain µs – 7,5 °C"),
            ("\x1b[2J\x07", "\\x1b[2J\\x07"),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\x00"),
            ("\u{9b}31m\u{7f}", "\\x9b31m\\x7f"),
            ("\u{202e}gpj\u{2066}\u{200b}\u{feff}", "\\u{202e}gpj\\u{2066}\\u{200b}\\u{feff}"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_lines("a\n\tb\r\x1b"), "a\n\tb\\r\\x1b");
    }

    #[test]
    fn ascii_spells_signs_and_escapes_the_rest() {
        assert_eq!(ascii("7512 MiB"), "7512 MiB");
        assert_eq!(ascii("5 µs ± 1, 8 × 4 ≥ 25 °C → ok…"), "5 us +/- 1, 8 x 4 >= 25 degC -> ok...");
        assert_eq!(ascii("/tmp/ü中☃.hex"), "/tmp/ü中☃.hex");
    }
}
