//! Files that a server writes to, by a name from the user: never a block device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Creates a file, or empties the one that is there.
///
/// Errors: a block device; the system's.
pub fn create(path: &Path) -> io::Result<File> {
    let file = no_device(File::options().write(true).create(true).truncate(false).open(path)?)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a file to append to, or creates it.
///
/// Errors: a block device; the system's.
pub fn append(path: &Path) -> io::Result<File> {
    no_device(File::options().create(true).append(true).open(path)?)
}

/// The opened file is checked: its name may lead elsewhere a moment later.
fn no_device(file: File) -> io::Result<File> {
    match file.metadata()?.file_type().is_block_device() {
        true => Err(io::Error::other("is a block device and its content would be overwritten: name a file")),
        false => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_block_device_is_never_an_output() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        append(&path).unwrap().write_all(b"one").unwrap();
        append(&path).unwrap().write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
        create(&path).unwrap().write_all(b"x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
        // Every loop device that can be opened, attached or not.
        let nodes = (0..8).map(|number| format!("/dev/loop{number}"));
        let nodes: Vec<_> = nodes.filter(|node| File::options().write(true).open(node).is_ok()).collect();
        if nodes.is_empty() {
            return eprintln!("SKIPPED: no block device that may be written");
        }
        for node in nodes {
            for refused in [create(Path::new(&node)), append(Path::new(&node))] {
                assert!(refused.unwrap_err().to_string().contains("is a block device"), "{node}");
            }
        }
    }
}
