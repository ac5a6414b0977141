//! Lines that say which register they give: `cid: 1501...`, `csd=...`, `/sys/.../scr:0235...`, `CID[0]: 0x1501004d`.

use super::text::Line;

/// A register that a line can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// CID, 16 bytes.
    Cid,
    /// CSD, 16 bytes.
    Csd,
    /// SCR, 8 bytes.
    Scr,
    /// SSR, 64 bytes.
    Ssr,
    /// OCR, a number of 32 bits.
    Ocr,
    /// RCA, a number of 16 bits.
    Rca,
    /// EXT_CSD, 512 bytes.
    ExtCsd,
}

/// What a line with a label gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Labelled {
    /// All digits of a register.
    Whole(Register, String),
    /// U-Boot's `CID[0]: 0x1501004d`: a word of a register, or a byte of EXT_CSD.
    Part(Register, u16, u64),
    /// The same with another number of digits than U-Boot prints.
    BrokenPart(Register, u16),
}

impl Register {
    /// The standard's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cid => "CID",
            Self::Csd => "CSD",
            Self::Scr => "SCR",
            Self::Ssr => "SSR",
            Self::Ocr => "OCR",
            Self::Rca => "RCA",
            Self::ExtCsd => "EXT_CSD",
        }
    }

    /// Hexadecimal digits of the register.
    pub(super) const fn digits(self) -> usize {
        match self {
            Self::Cid | Self::Csd => 32,
            Self::Scr => 16,
            Self::Ssr => 128,
            Self::Ocr | Self::Rca => 8,
            Self::ExtCsd => 1024,
        }
    }

    /// Hexadecimal digits of each part that U-Boot prints: a byte of EXT_CSD, 32 bits of the others.
    pub(super) const fn part_digits(self) -> usize {
        if matches!(self, Self::ExtCsd) { 2 } else { 8 }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::Cid, Self::Csd, Self::Scr, Self::Ssr, Self::Ocr, Self::Rca, Self::ExtCsd];
        let name = if name.eq_ignore_ascii_case("extcsd") { "EXT_CSD" } else { name };
        all.into_iter().find(|register| register.name().eq_ignore_ascii_case(name))
    }
}

/// The register of which a line gives some or all digits.
pub(super) fn labelled(line: Line) -> Option<Labelled> {
    let text = line.text.trim();
    let parted = text.rsplit_once(':').or_else(|| text.rsplit_once('=')).or_else(|| text.split_once([' ', '\t']))?;
    let (label, value) = (parted.0.trim(), parted.1.trim().trim_matches('"'));
    if let Some((name, index)) = label.strip_suffix(']').and_then(|label| label.rsplit_once('[')) {
        let (register, index) = (Register::named(last_word(name))?, index.parse().ok()?);
        super::text::hex_number(value)?;
        let digits = register.part_digits();
        let value = super::text::hex_of_width(value, digits..=digits);
        return Some(
            value.map_or(Labelled::BrokenPart(register, index), |value| Labelled::Part(register, index, value)),
        );
    }
    let register = Register::named(last_word(label)).filter(|register| !is_choice(*register, label))?;
    let digits = digits(value)?;
    let prefixed = value.starts_with("0x") || value.starts_with("0X");
    // A short number after such a word is no register: `rca 1`, `csd 2`.
    let enough = match register {
        Register::Ocr | Register::Rca => prefixed || digits.len() >= 4,
        _ => digits.len() >= 8,
    };
    enough.then_some(Labelled::Whole(register, digits))
}

/// The register whose file a command prints, `cat /sys/block/mmcblk0/device/cid`, or that follows a heading of head or
/// tail, `==> cid <==`.
pub(super) fn asked_for(line: Line) -> Option<Register> {
    let text = line.text.trim_end();
    let heading = text.strip_prefix("==> ").and_then(|text| text.strip_suffix(" <=="));
    let (before, name) = match heading {
        Some(path) => path.rsplit_once('/').unwrap_or((".", path)),
        None => text.rsplit_once('/')?,
    };
    if before.is_empty() { None } else { Register::named(name).filter(|register| !is_choice(*register, text)) }
}

/// Whether a path is of the attribute `ocr`, which has the voltages that the kernel chose, not the card's register.
fn is_choice(register: Register, path: &str) -> bool {
    register == Register::Ocr && (path.contains("/sys/") || path.contains("==>") || path.contains("./"))
}

/// The hexadecimal digits of a text that otherwise has only blanks, commas and `0x`.
pub(super) fn digits(text: &str) -> Option<String> {
    let mut digits = String::new();
    for word in text.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()) {
        let bare = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let number = bare.unwrap_or(word);
        if number.is_empty() || !number.bytes().all(|letter| letter.is_ascii_hexdigit()) {
            return None;
        }
        if bare.is_some() && number.len() % 2 == 1 {
            digits.push('0');
        }
        digits.push_str(number);
    }
    (!digits.is_empty()).then_some(digits)
}

fn last_word(label: &str) -> &str {
    label.rsplit(['/', ' ', '\t', '.', '(', '#', '>', '"']).find(|word| !word.is_empty()).unwrap_or(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(Register, &str)>) {
        let expected = expected.map(|(register, digits)| Labelled::Whole(register, digits.to_string()));
        assert_eq!(labelled(Line { number: 1, text }), expected, "{text}");
    }

    #[test]
    fn labels_are_found_in_their_usual_shapes() {
        let (cid, csd) = ("1501004d384731474303dc0db061506f", "900e00320f5903ffffffffe796400000");
        check(&format!("cid: {cid}"), Some((Register::Cid, cid)));
        check(&format!("CID {cid}"), Some((Register::Cid, cid)));
        check(&format!("csd={csd}"), Some((Register::Csd, csd)));
        check(&format!("/sys/block/mmcblk0/device/cid:{cid}"), Some((Register::Cid, cid)));
        check("cid: 15 01 00 4d 38 47 31 47", Some((Register::Cid, "1501004d38473147")));
        check("ocr: 0x00300000", Some((Register::Ocr, "00300000")));
        check("RCA: 0x1", Some((Register::Rca, "01")));
        check("scr 0235804300000000", Some((Register::Scr, "0235804300000000")));
        for none in ["", "cid", "cid:", "cid: 12", "csd 2", "decided: 12345678", "ssr: yes", "x: 1501004d38473147"] {
            check(none, None);
        }
        let part = labelled(Line { number: 1, text: "EXT_CSD[192]: 0x08" });
        assert_eq!(part, Some(Labelled::Part(Register::ExtCsd, 192, 8)));
    }

    #[test]
    fn commands_name_their_file() {
        let asked = |text| asked_for(Line { number: 1, text });
        assert_eq!(asked("root@b:~# cat /sys/block/mmcblk0/device/cid"), Some(Register::Cid));
        assert_eq!(asked("# cat /sys/kernel/debug/mmc0/mmc0:0001/ext_csd"), Some(Register::ExtCsd));
        assert_eq!(asked("ls /tmp"), None);
    }

    #[test]
    fn digits_are_read_in_all_groupings() {
        assert_eq!(digits("0x1, 0x2f,").as_deref(), Some("012f"));
        assert_eq!(digits("00 11\t22").as_deref(), Some("001122"));
        assert_eq!(digits("hello"), None);
        assert_eq!(digits(" , "), None);
    }
}
