//! Detects the content of a device or partition from its first bytes.
//!
//! Absent on purpose: everything that is not needed to tell a user what would be lost.

/// How much must be read. Unit: bytes.
pub(crate) const SIGNATURE_BYTES: usize = (64 << 10) + 512;

/// A magic number.
struct Magic {
    name: &'static str,
    at: usize,
    bytes: &'static [u8],
    /// Position and length of its label: padded with zeros or blanks.
    label: Option<(usize, usize)>,
}

const fn magic(name: &'static str, at: usize, bytes: &'static [u8]) -> Magic {
    Magic { name, at, bytes, label: None }
}

const fn labelled(name: &'static str, at: usize, bytes: &'static [u8], label: (usize, usize)) -> Magic {
    Magic { name, at, bytes, label: Some(label) }
}

/// Source: the formats' descriptions in Linux `include/uapi/linux/magic.h` and in the headers of each filesystem.
const MAGICS: [Magic; 18] = [
    labelled("ext2/3/4", 1080, &[0x53, 0xef], (1144, 16)),
    magic("f2fs", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    labelled("btrfs", 65_600, b"_BHRfS_M", (65_835, 256)),
    labelled("xfs", 0, b"XFSB", (108, 12)),
    magic("LUKS", 0, b"LUKS\xba\xbe"),
    magic("LVM physical volume", 512, b"LABELONE"),
    magic("md RAID member", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    magic("md RAID member", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    labelled("swap", 4086, b"SWAPSPACE2", (1052, 16)),
    magic("squashfs", 0, b"hsqs"),
    magic("erofs", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    magic("NTFS", 3, b"NTFS    "),
    magic("exFAT", 3, b"EXFAT   "),
    labelled("FAT32", 82, b"FAT32   ", (71, 11)),
    labelled("FAT16", 54, b"FAT16   ", (43, 11)),
    labelled("FAT12", 54, b"FAT12   ", (43, 11)),
    labelled("ISO 9660", 32_769, b"CD001", (32_808, 32)),
    magic("GPT partition table", 512, b"EFI PART"),
];

/// The detected content, e.g. `ext2/3/4 "rootfs"`; `None` if nothing is recognised.
pub(crate) fn signature(bytes: &[u8]) -> Option<String> {
    let holds = |magic: &&Magic| bytes.get(magic.at..).is_some_and(|rest| rest.starts_with(magic.bytes));
    if let Some(magic) = MAGICS.iter().find(holds) {
        let label = magic.label.and_then(|(at, length)| label(bytes.get(at..at + length)?));
        return Some(label.map_or(magic.name.into(), |label| format!("{} {label:?}", magic.name)));
    }
    // A boot sector has the same two bytes; a partition table has a type in one of its four entries.
    let is_table = bytes.get(510..512) == Some(&[0x55, 0xaa])
        && [450, 466, 482, 498].iter().any(|at| bytes.get(*at).is_some_and(|kind| *kind != 0));
    is_table.then(|| "MBR partition table".into())
}

fn label(field: &[u8]) -> Option<String> {
    let text = field.split(|byte| *byte == 0).next()?;
    let text = String::from_utf8_lossy(text).trim().to_owned();
    (!text.is_empty() && text != "NO NAME").then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(parts: &[(usize, &[u8])]) -> Option<String> {
        let mut bytes = vec![0; SIGNATURE_BYTES];
        for (at, part) in parts {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
        signature(&bytes)
    }

    #[test]
    fn filesystems_are_named_with_their_labels() {
        let ext = with(&[(1080, &[0x53, 0xef]), (1144, b"rootfs")]);
        assert_eq!(ext.as_deref(), Some("ext2/3/4 \"rootfs\""));
        let fat = with(&[(82, b"FAT32   "), (71, b"BOOT       "), (510, &[0x55, 0xaa])]);
        assert_eq!(fat.as_deref(), Some("FAT32 \"BOOT\""));
        assert_eq!(with(&[(4086, b"SWAPSPACE2")]).as_deref(), Some("swap"));
        assert_eq!(with(&[(65_600, b"_BHRfS_M")]).as_deref(), Some("btrfs"));
    }

    #[test]
    fn partition_tables_are_distinguished_from_boot_sectors() {
        assert_eq!(with(&[(510, &[0x55, 0xaa]), (466, &[0x83])]).as_deref(), Some("MBR partition table"));
        assert_eq!(with(&[(510, &[0x55, 0xaa])]), None);
        let gpt = with(&[(510, &[0x55, 0xaa]), (450, &[0xee]), (512, b"EFI PART")]);
        assert_eq!(gpt.as_deref(), Some("GPT partition table"));
    }

    #[test]
    fn short_and_empty_content_has_no_signature() {
        assert_eq!((signature(&[]), signature(&[0; 600]), with(&[])), (None, None, None));
    }
}
