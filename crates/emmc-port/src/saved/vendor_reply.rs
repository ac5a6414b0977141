//! Replies to vendor commands, recognised by the signature in their first two bytes.
//!
//! Absent on purpose: their meaning (`emmc-analysis`), and families whose replies have no signature.

use super::text::Text;
use crate::{CardData, Format, SavedReport, SourceError, VendorFormat};

/// Bytes in one block; a reply is a whole number of them.
pub(super) const REPLY_BYTES: usize = 512;

/// First bytes of replies to CMD56 that are known from public tools.
///
/// Source: sdmon, and the readers it was compared with; see docs of vendor health.
const SIGNATURES: [[u8; 2]; 8] = [
    *b"DS",       // SanDisk
    *b"DW",       // Western Digital
    [0x70, 0x58], // Longsys
    *b"LX",       // Innodisk
    [0x09, 0x41], // ADATA
    *b"Tr",       // Transcend
    *b"ME",       // Micron
    *b"Sw",       // Swissbit
];

/// Whether bytes are whole blocks that begin with a known signature.
pub(super) fn has_signature(bytes: &[u8]) -> bool {
    let whole_blocks = !bytes.is_empty() && bytes.len() % REPLY_BYTES == 0 && bytes.len() <= 8 * REPLY_BYTES;
    whole_blocks && bytes.first_chunk().is_some_and(|start| SIGNATURES.contains(start))
}

/// A saved reply; the decoder recognises its family.
pub(super) fn data(name: &str, bytes: Vec<u8>) -> CardData {
    let mut data = CardData::new(name, Format::VendorReport);
    data.reports.push(SavedReport { format: VendorFormat::Reply { family: None, argument: None }, content: bytes });
    data
}

/// Whether the text is `mmc gen_cmd read`: the reply to a CMD56, in hexadecimal without leading zeros.
pub(super) fn recognises(text: &Text) -> bool {
    reply_lines(text).next().is_some()
}

/// Reads the reply of `mmc gen_cmd read`.
///
/// Errors: another number of bytes than a block's.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let mut bytes = Vec::with_capacity(REPLY_BYTES);
    let mut last = 0;
    for (number, row) in reply_lines(text) {
        bytes.extend(row);
        last = number;
    }
    if bytes.len() != REPLY_BYTES {
        return Err(text.malformed(last, "a reply of 512 bytes", format!("{} bytes", bytes.len())));
    }
    Ok(data(text.name, bytes))
}

/// The rows of bytes after the line `Data:`.
fn reply_lines<'t>(text: &'t Text) -> impl Iterator<Item = (u64, Vec<u8>)> + 't {
    let mut rows = text.lines().skip_while(|line| line.text.trim() != "Data:").skip(1);
    std::iter::from_fn(move || {
        let line = rows.next()?;
        let tokens = line.text.split_whitespace().take(REPLY_BYTES);
        let row: Option<Vec<u8>> = tokens
            .map(|token| u8::from_str_radix(token, 16).ok().filter(|_| token.len() <= 2 && !token.starts_with('+')))
            .collect();
        row.filter(|row| !row.is_empty()).map(|row| (line.number, row))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_needs_a_whole_block() {
        let mut reply = vec![0; 1536];
        reply[..2].copy_from_slice(b"DS");
        assert!(has_signature(&reply));
        assert!(has_signature(&reply[..512]));
        assert!(!has_signature(&reply[..511]));
        assert!(!has_signature(&[]));
        assert!(!has_signature(&[0xff; 512]));
    }

    #[test]
    fn gen_cmd_prints_bytes_without_leading_zeros() {
        let row = "44 53  0  1 ff  a  0  0  0  0  0  0  0  0  0  0 \n";
        let log = |rows: usize| format!("# mmc gen_cmd read /dev/mmcblk0\nData:\n{}\n# ", row.repeat(rows));
        let text = log(32);
        let text = Text::new("log", text.as_bytes()).unwrap().unwrap();
        assert!(recognises(&text));
        let data = import(&text).unwrap();
        let expected = [0x44, 0x53, 0, 1, 0xff, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(32);
        assert_eq!(data.reports[0].content, expected);
        let text = log(31);
        let text = Text::new("log", text.as_bytes()).unwrap().unwrap();
        let message = import(&text).unwrap_err().to_string();
        assert_eq!(message, "log: at line 33: expected a reply of 512 bytes, found 496 bytes");
        assert!(!recognises(&Text::new("log", b"Data:\nnone\n").unwrap().unwrap()));
    }
}
