//! Archives that the kernel unpacks as its first file system: cpio in the form `newc`.
//!
//! Source: Linux, `Documentation/driver-api/early-userspace/buffer-format.rst`. Several archives may follow each other;
//! later files replace earlier ones. Everything belongs to root with modification time 0, so that the same files give
//! the same bytes.

use std::collections::BTreeSet;
use std::path::Path;

/// An archive under construction.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    entries: u32,
}

const FOLDER: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

impl Archive {
    /// Adds a file; `path` has no leading slash, and its folders are created.
    pub(crate) fn file(&mut self, path: &str, is_executable: bool, content: &[u8]) {
        self.entry(path, if is_executable { 0o100_755 } else { 0o100_644 }, (0, 0), content);
    }

    /// A symbolic link to `target`.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK, (0, 0), target.as_bytes());
    }

    /// A character device.
    pub(crate) fn character_device(&mut self, path: &str, number: (u32, u32)) {
        self.entry(path, CHARACTER_DEVICE, number, b"");
    }

    /// A folder, and those above it.
    pub(crate) fn folder(&mut self, path: &str) {
        if !path.is_empty() && self.folders.insert(path.to_string()) {
            self.entry(path, FOLDER, (0, 0), b"");
        }
    }

    /// The finished bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.header("TRAILER!!!", 0, (0, 0), 0);
        // The kernel looks for the next archive at a multiple of four; a page works too.
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, number: (u32, u32), content: &[u8]) {
        let above = Path::new(path).parent().and_then(Path::to_str).unwrap_or_default();
        self.folder(above);
        self.header(path, mode, number, u32::try_from(content.len()).expect("no file of the guest has 4 GiB"));
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn header(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), size: u32) {
        self.entries += 1;
        let name_size = u32::try_from(name.len() + 1).expect("a path is short");
        let links = if mode & 0o170_000 == 0o040_000 { 2 } else { 1 };
        // magic, inode, mode, uid, gid, links, mtime, size, device, special device, size of the name, checksum
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_contains_its_files() {
        let mut archive = Archive::default();
        archive.file("usr/bin/a", true, b"12345");
        archive.link("usr/bin/b", "a");
        archive.character_device("dev/console", (5, 1));
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 512, 0);
        let mut rest = bytes.as_slice();
        let mut seen = Vec::new();
        loop {
            let field = |index: usize| {
                let text = std::str::from_utf8(&rest[6 + 8 * index..14 + 8 * index]).unwrap();
                u32::from_str_radix(text, 16).unwrap() as usize
            };
            assert_eq!(&rest[..6], b"070701");
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = std::str::from_utf8(&rest[110..110 + name_size - 1]).unwrap().to_string();
            let start = (110 + name_size).next_multiple_of(4);
            let content = rest[start..start + size].to_vec();
            rest = &rest[(start + size).next_multiple_of(4)..];
            if name == "TRAILER!!!" {
                break;
            }
            seen.push((name, mode, content));
        }
        let entry = |name: &str, mode: usize, content: &[u8]| (name.to_string(), mode, content.to_vec());
        let expected = [
            entry("usr", 0o040_755, b""),
            entry("usr/bin", 0o040_755, b""),
            entry("usr/bin/a", 0o100_755, b"12345"),
            entry("usr/bin/b", 0o120_777, b"a"),
            entry("dev", 0o040_755, b""),
            entry("dev/console", 0o020_600, b""),
        ];
        assert_eq!(seen, expected);
    }
}
