//! The other names of a file on an overlay: the merged one and the one in the upper folder lead to one content,
//! although the numbers of the two may differ.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use emmc_units::mount_name;

use crate::mounts::{self, Mount};

/// Every other name that leads to the content of a file, through any number of overlays.
pub(super) fn other_names(mounted: &[Mount], path: &Path) -> Vec<PathBuf> {
    let mut names = vec![path.to_owned()];
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        for other in through_one(mounted, &name) {
            if !names.contains(&other) && other.exists() {
                names.push(other);
            }
        }
    }
    names.split_off(1)
}

/// A file's place within its filesystem: the filesystem's number and the path from its root.
fn place(mounted: &[Mount], path: &Path) -> Option<(String, PathBuf)> {
    let mount = mounts::around(mounted, path)?;
    let root = mount.root.as_deref()?;
    Some((mount.number.clone()?, joined(root, path.strip_prefix(&mount.path).ok()?)))
}

/// Without the slash that an empty rest would add.
fn joined(folder: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { folder.to_owned() } else { folder.join(rest) }
}

fn through_one(mounted: &[Mount], path: &Path) -> Vec<PathBuf> {
    let Some((number, own)) = place(mounted, path) else { return Vec::new() };
    let mut names = Vec::new();
    for mount in mounted.iter().filter(|mount| mount.fstype == "overlay") {
        let Some(root) = mount.root.as_deref() else { continue };
        let upper = folders(&mount.options, "upperdir").pop();
        if mount.number.as_deref() == Some(number.as_str()) {
            // A name on the overlay: the file above. Below there is only what a first write copies.
            if let (Some(upper), Ok(rest)) = (&upper, own.strip_prefix("/")) {
                names.push(joined(upper, rest));
            }
        }
        let lower = folders(&mount.options, "lowerdir").into_iter().chain(folders(&mount.options, "lowerdir+"));
        for folder in lower.chain(upper) {
            let Some((of_folder, at)) = folder.canonicalize().ok().and_then(|folder| place(mounted, &folder)) else {
                continue;
            };
            let Ok(rest) = own.strip_prefix(&at) else { continue };
            // The mount may show a part of the overlay only.
            if let (true, Ok(rest)) = (of_folder == number, Path::new("/").join(rest).strip_prefix(root)) {
                names.push(joined(&mount.path, rest));
            }
        }
    }
    names
}

/// The folders that an option of the mount names, with `:` between them.
///
/// Source: Linux `Documentation/filesystems/overlayfs.rst`: a backslash stands before a `:` of a name; the kernel
/// prints `,` and blanks of a name as octal digits.
fn folders(options: &str, option: &str) -> Vec<PathBuf> {
    let values = options.split(',').filter_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    let mut folders = Vec::new();
    for value in values {
        let bytes = mount_name(value.as_bytes());
        let mut name = Vec::new();
        let mut bytes = bytes.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => name.extend(bytes.next()),
                b':' => folders.push(std::mem::take(&mut name)),
                _ => name.push(*byte),
            }
        }
        folders.push(name);
    }
    let path = |name: Vec<u8>| PathBuf::from(std::ffi::OsStr::from_bytes(&name));
    folders.into_iter().filter(|name| !name.is_empty()).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_an_option_are_separated_and_unescaped() {
        let options = r"rw,relatime,lowerdir=/a:/b\134:c::/d\040e,upperdir=/up\054per,workdir=/w";
        let of = |option| folders(options, option).iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(of("lowerdir"), ["/a", "/b:c", "/d e"]);
        assert_eq!(of("upperdir"), ["/up,per"]);
        assert!(of("upper").is_empty());
    }
}
