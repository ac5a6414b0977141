//! Names of files as words of a shell command, for commands to copy.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use emmc_report::visible;

/// The name as one word that a POSIX shell reads as this name and a program does not take for an option.
///
/// A name with bytes that cannot be printed becomes `"$(printf '...')"`. `None` for such a name that ends in a line
/// break, which no shell keeps there.
pub(crate) fn word(name: &OsStr) -> Option<String> {
    let bytes = name.as_bytes();
    let is_dashed = bytes.first() == Some(&b'-') && bytes != b"-";
    let bytes = if is_dashed { [b"./", bytes].concat() } else { bytes.to_owned() };
    match String::from_utf8(bytes) {
        Ok(text) if matches!(visible(&text), std::borrow::Cow::Borrowed(_)) => Some(quoted(&text)),
        Ok(text) => printed(text.as_bytes()),
        Err(error) => printed(error.as_bytes()),
    }
}

/// In single quotes if a letter has a meaning for the shell.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%=,".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As octal escapes of `printf`, which every POSIX shell has.
fn printed(bytes: &[u8]) -> Option<String> {
    if bytes.last() == Some(&b'\n') {
        return None;
    }
    let mut format = String::new();
    for byte in bytes {
        match byte {
            b'%' => format.push_str("%%"),
            b'\\' | b'\'' | 0..=0x1f | 0x7f.. => {
                // Writing to a String cannot fail.
                let _ = write!(format, "\\{byte:03o}");
            }
            plain => format.push(char::from(*plain)),
        }
    }
    Some(format!("\"$(printf '{format}')\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_every_word_back_as_the_name() {
        for name in [
            &b"plain/name-1.hex"[..],
            b"with blank",
            b"it's",
            b"-x.hex",
            b"--help",
            b"a\x1b[31m\nb\tc",
            b"100%\x07\\n'$HOME",
            b"$(touch x)`y`\"z",
            b"~/a*b?[c]",
            b"# no comment",
            b"\xff\xfe",
            "ü中\u{202e}".as_bytes(),
            b"",
        ] {
            let word = word(OsStr::from_bytes(name)).unwrap();
            assert!(word.chars().all(|letter| !letter.is_control()), "{word}");
            let output = std::process::Command::new("sh").args(["-c", &format!("printf %s {word}")]).output().unwrap();
            let read = output.stdout.strip_prefix(b"./").filter(|_| name.starts_with(b"-")).unwrap_or(&output.stdout);
            assert_eq!(read, name, "{word}");
        }
        assert_eq!(word(OsStr::new("x\n")), None);
        assert_eq!(word(OsStr::new("sim:generic-8g@62%")).as_deref(), Some("sim:generic-8g@62%"));
    }
}
