//! Files of pre-shared keys: lines `USER:HEXKEY`, as GnuTLS' `psktool` makes them.

use std::collections::BTreeMap;

/// Shorter keys can be guessed from a recorded handshake. Unit: bytes.
const KEY_BYTES_MIN: usize = 16;
/// The longest that OpenSSL takes. Unit: bytes.
const KEY_BYTES_MAX: usize = 256;

/// Keys by user.
pub(super) type Keys = BTreeMap<Vec<u8>, Vec<u8>>;

/// Users and keys of a file.
///
/// Errors: the line that is wrong and what was expected; never its content, which may be a key.
pub(super) fn parse(text: &[u8]) -> Result<Keys, String> {
    let mut keys = Keys::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let wrong = |what: &str| Err(format!("line {number}: {what}"));
        let Some(colon) = line.iter().rposition(|byte| *byte == b':') else { return wrong("expected USER:HEXKEY") };
        let (user, key) = (&line[..colon], &line[colon + 1..]);
        let Some(key) = bytes_of_hex(key) else { return wrong("the key is not hexadecimal") };
        if user.is_empty() {
            return wrong("expected a user's name before the colon");
        }
        if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&key.len()) {
            let bytes = key.len();
            return wrong(&format!("a key of {bytes} bytes; expected {KEY_BYTES_MIN} to {KEY_BYTES_MAX}"));
        }
        if keys.insert(user.to_vec(), key).is_some() {
            return wrong(&format!("a second key of user {:?}", String::from_utf8_lossy(user)));
        }
    }
    if keys.is_empty() { Err("no key; expected lines USER:HEXKEY".into()) } else { Ok(keys) }
}

fn bytes_of_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pairs = text.chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_psktool_are_read() {
        let text = b"alice:000102030405060708090a0b0c0d0e0f\n\nbob:x:FFfffffffffffffffffffffffffffffe\r\n";
        let keys = parse(text).unwrap();
        assert_eq!(keys.keys().map(Vec::as_slice).collect::<Vec<_>>(), [&b"alice"[..], b"bob:x"]);
        assert_eq!(keys[&b"alice"[..]], (0..16).collect::<Vec<u8>>());
        assert_eq!(keys[&b"bob:x"[..]][15], 0xfe);
    }

    #[test]
    fn other_files_are_refused_without_showing_a_key() {
        for (text, expected) in [
            ("", "no key"),
            ("alice", "line 1: expected USER:HEXKEY"),
            ("\nalice:secret", "line 2: the key is not hexadecimal"),
            ("alice:000102030405060708090a0b0c0d0e0", "not hexadecimal"),
            (":000102030405060708090a0b0c0d0e0f", "a user's name"),
            ("alice:0001", "a key of 2 bytes; expected 16 to 256"),
            ("a:000102030405060708090a0b0c0d0e0f\na:000102030405060708090a0b0c0d0e0f", "line 2: a second key"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(expected) && !error.contains("secret") && !error.contains("0001"), "{error}");
        }
    }
}
