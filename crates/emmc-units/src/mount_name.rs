//! Names in `/proc/self/mountinfo`, `/proc/mounts`, `/proc/swaps` and `/etc/fstab`.

/// The name that a word of such a file stands for: blanks and backslashes are printed as three octal digits, `\\040`.
///
/// Source: proc(5), fstab(5).
pub fn mount_name(word: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, behind @ ..] = rest {
        match behind {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] if *first == b'\\' => {
                name.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = behind;
            }
            _ => {
                name.push(*first);
                rest = behind;
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::mount_name;

    #[test]
    fn escapes_are_octal() {
        for (word, name) in [("a\\040b", "a b"), ("\\134", "\\"), ("\\", "\\"), ("\\04", "\\04"), ("\\777", "\\777")] {
            assert_eq!(mount_name(word.as_bytes()), name.as_bytes());
        }
    }
}
