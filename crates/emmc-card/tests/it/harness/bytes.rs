//! Blocks of data in scripts: `01 00*1ff`, `@5`, `~2 0b`.

/// Bytes as a script writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    /// `~2`: they start at this byte, and other bytes are ignored.
    pub(crate) offset: Option<usize>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A byte, repeated.
    Run(u8, usize),
    /// 512 bytes of a numbered pattern.
    Pattern(u64),
    /// 512 bytes of the pattern that has the round's number, plus this.
    Round(u64),
}

impl Bytes {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut bytes = Self { offset: None, parts: Vec::new() };
        for word in text.split_whitespace() {
            let part = match word.as_bytes() {
                [b'~', ..] => {
                    bytes.offset = Some(hex(&word[1..])? as usize);
                    continue;
                }
                [b'@', b'$', ..] => Part::Round(if word.len() > 3 { hex(&word[3..])? } else { 0 }),
                [b'@', ..] => Part::Pattern(hex(&word[1..])?),
                _ => match word.split_once('*') {
                    Some((byte, count)) => Part::Run(byte_of(byte)?, hex(count)? as usize),
                    None => {
                        for pair in word.as_bytes().chunks(2) {
                            let pair = std::str::from_utf8(pair).map_err(|error| error.to_string())?;
                            bytes.parts.push(Part::Run(byte_of(pair)?, 1));
                        }
                        continue;
                    }
                },
            };
            bytes.parts.push(part);
        }
        Ok(bytes)
    }

    /// The bytes, in a round of `repeat`.
    pub(crate) fn in_round(&self, round: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.parts {
            match *part {
                Part::Run(byte, count) => bytes.extend(std::iter::repeat_n(byte, count)),
                Part::Pattern(number) => bytes.extend(pattern(number)),
                Part::Round(plus) => bytes.extend(pattern(round + plus)),
            }
        }
        bytes
    }

    /// What is wrong with a block that should be this, if anything.
    pub(crate) fn differs(&self, round: u64, block: &[u8]) -> Option<String> {
        let expected = self.in_round(round);
        let found = match self.offset {
            Some(offset) => block.get(offset..offset + expected.len()).unwrap_or_default(),
            None => block,
        };
        if found == expected {
            return None;
        }
        let at = expected.iter().zip(found).position(|(a, b)| a != b).unwrap_or(expected.len().min(found.len()));
        let show = |bytes: &[u8]| bytes.iter().skip(at).take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
        let (count, expected) = (expected.len(), show(&expected));
        Some(format!("expected {count} bytes, first other byte {at}: {expected}, found {}", show(found)))
    }
}

/// 512 bytes that say which pattern they are and differ from sector to sector.
fn pattern(number: u64) -> impl Iterator<Item = u8> {
    (0..64).flat_map(move |word: u64| (number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word).to_le_bytes())
}

pub(crate) fn hex(text: &str) -> Result<u64, String> {
    let digits = text.trim_start_matches("0x");
    u64::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is no hexadecimal number"))
}

fn byte_of(text: &str) -> Result<u8, String> {
    u8::try_from(hex(text)?).map_err(|_| format!("{text:?} is no byte"))
}
