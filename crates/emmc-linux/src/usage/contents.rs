//! What is on a device or in a file, as far as its first bytes show.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Member;
use crate::signature::{SIGNATURE_BYTES, signature};

pub(super) fn contents_of_device(
    name: &str,
    node: &Path,
    parts: &[Member],
    size: impl Fn(&Path) -> u64,
) -> Vec<String> {
    let Ok(file) = File::open(node) else { return Vec::new() };
    let whole = read_signature(&file, 0).map(|what| format!("{name}: {what}"));
    let of_part = |part: &Member| {
        let start = std::fs::read_to_string(part.folder.join("start")).ok()?.trim().parse::<u64>().ok()?;
        let what = read_signature(&file, start.checked_mul(512)?).unwrap_or_else(|| "no known content".into());
        let bytes = emmc_units::Bytes(size(&part.folder)).rounded();
        Some(format!("{}: {bytes}, {what}", part.name))
    };
    whole.into_iter().chain(parts.iter().filter_map(of_part)).collect()
}

pub(super) fn contents_of_file(path: &Path, bytes: u64) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let what = read_signature(&file, 0).map(|what| format!(" that begins as {what}"));
    vec![format!("{} of a file{}", emmc_units::Bytes(bytes).rounded(), what.unwrap_or_default())]
}

fn read_signature(file: &File, at: u64) -> Option<String> {
    let mut bytes = vec![0; SIGNATURE_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    signature(&bytes[..filled])
}
