//! Binary files: 512 bytes of EXT_CSD, or a vendor's reply. Other well-known files are named in the error.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::EXT_CSD_BYTES;

use super::ext_csd_bytes;
use super::vendor_reply;
use crate::{CardData, Format, Place, SourceError};

/// First bytes of files that are often mistaken for a dump, and their kind.
const OTHER_FILES: [(&[u8], &str); 12] = [
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "gzip; unpack it first"),
    (b"\xfd7zXZ\0", "xz; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd; unpack it first"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"\x7fELF", "an ELF program"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x17\x08\x44tracing", "a trace of trace-cmd"),
    (b"hsqs", "a SquashFS image"),
];

/// The description of a file of another kind.
pub(super) fn other_file(bytes: &[u8]) -> Option<&'static str> {
    OTHER_FILES.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, name)| *name)
}

/// Reads a register or a reply.
///
/// Errors: anything else, with its description or the first implausible byte.
pub(super) fn import(name: &str, bytes: &[u8]) -> Result<CardData, SourceError> {
    let expected = "512 bytes of EXT_CSD, or text with data of a card";
    let wrong = |at: u64, found: String| SourceError::malformed(name, Place::Byte(at), expected, found);
    if let Some(other) = other_file(bytes) {
        return Err(wrong(0, other.into()));
    }
    if let Some(junk) = ext_csd_bytes::known_junk(bytes) {
        return Err(wrong(0, junk));
    }
    if vendor_reply::has_signature(bytes) {
        return Ok(vendor_reply::data(name, bytes.to_vec()));
    }
    let Ok(register) = <[u8; EXT_CSD_BYTES]>::try_from(bytes) else {
        return Err(match bytes.len() {
            count if count < EXT_CSD_BYTES => wrong(count as u64, format!("the end after {count} bytes")),
            count => wrong(EXT_CSD_BYTES as u64, format!("{} more bytes", count - EXT_CSD_BYTES)),
        });
    };
    let (ext_csd, reversed) = ext_csd_bytes::ordered(&register)
        .map_err(|fault| SourceError::malformed(name, Place::Byte(fault.offset), fault.expected, fault.found))?;
    let mut data = CardData::new(name, Format::ExtCsdBinary);
    if reversed {
        data.note("byte 511 is first, as printed by old kernels; the order was reversed");
    }
    data.kind = Some(CardKind::Emmc);
    data.ext_csd = Some(ext_csd);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        let message = import("f", bytes).unwrap_err().to_string();
        let prefix = "expected 512 bytes of EXT_CSD, or text with data of a card, found ";
        assert_eq!(message.replace(prefix, ""), expected);
    }

    #[test]
    fn bytes_of_another_kind_are_named() {
        let mut noise: Vec<u8> = (0..=255).cycle().take(512).collect();
        check(&noise, "f: at byte 192: expected EXT_CSD_REV from 0 to 9, found 0xc0");
        noise[510..].copy_from_slice(&[0x55, 0xaa]);
        check(&noise, "f: at byte 0: a boot sector (55 aa at its end): the card's first block, not a register");
        noise.push(1);
        check(&noise[1..=511], "f: at byte 511: the end after 511 bytes");
        check(&[1, 2, 0], "f: at byte 3: the end after 3 bytes");
        check(&[7; 513], "f: at byte 512: 1 more bytes");
        check(&[0; 1 << 20], "f: at byte 0: 1048576 bytes of 0x00: nothing was read");
        check(&[0xff; 512], "f: at byte 0: 512 bytes of 0xff: no card answered");
        check(b"\x89PNG\r\n\x1a\n\0\0", "f: at byte 0: a PNG image");
        check(b"\x1f\x8b\x08\0", "f: at byte 0: gzip; unpack it first");
    }

    #[test]
    fn a_vendor_reply_is_kept_as_bytes() {
        let mut reply = [0; 512];
        reply[..2].copy_from_slice(b"Sw");
        let data = import("f", &reply).unwrap();
        assert_eq!((data.origins[0].format, data.reports[0].content.as_slice()), (Format::VendorReport, &reply[..]));
        assert_eq!(data.ext_csd, None);
    }
}
