//! Characters that act on the text around them instead of being shown.

use std::fmt::Write;

/// Whether a character controls a terminal, is invisible, or changes the direction of text (Unicode: `Cc`, the
/// bidirectional controls of UAX #9, zero-width and interlinear characters, line and paragraph separators, tags).
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// JSON with its unprintable characters as `\uXXXX` (RFC 8259, section 7): the same value for every reader.
///
/// Shape: a complete JSON text, whose characters below U+0020 are escaped already, as `serde_json` does; line breaks
/// between its values stay.
pub fn printable_json(json: String) -> String {
    let is_raw = |c: char| c > '\u{7e}' && is_unprintable(c);
    if !json.contains(is_raw) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_raw(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_value_and_shows_every_character() {
        let hostile = "a\u{7f}\u{9b}31m\u{202e}\u{2066}x\u{200b}\u{feff}\u{e0041}\u{2028}µ\n";
        // Quoted as serde_json does: only what is below U+0020.
        let json = format!("{{\n  \"name\": \"{}\"\n}}", hostile.replace('\n', "\\n"));
        let shown = printable_json(json.clone());
        let names = "a\\u007f\\u009b31m\\u202e\\u2066x\\u200b\\ufeff\\udb40\\udc41\\u2028µ\\n";
        assert_eq!(shown, format!("{{\n  \"name\": \"{names}\"\n}}"));
        assert!(shown.chars().all(|c| c == '\n' || !is_unprintable(c)));
        let plain = "{\"a\": \"µs – °C\"}".to_owned();
        assert_eq!(printable_json(plain.clone()), plain);
    }
}
