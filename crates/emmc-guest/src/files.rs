//! Files of a file system, each replaced safely: a new file, synced, renamed, the folder synced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::pattern::{self, Content, SECTOR, mixed};
use crate::sectors::Records;

/// How many names there are.
const NAMES: u64 = 24;

/// Largest file in sectors.
const SECTORS_MAX: u64 = 400;

/// Replaces files until the file system fails, each time with the next `generation`.
///
/// Records: `n FILE WRITE SECTORS` before, `s FILE WRITE` when it is synced.
pub(crate) fn write<W: io::Write>(folder: &Path, seed: u64, generation: u64, records: &Records<W>) -> io::Result<()> {
    let mut state = mixed(seed);
    let mut chance = |below: u64| {
        state = mixed(state);
        state % below
    };
    let mut step = |number: u64| -> io::Result<()> {
        let (name, sectors) = (chance(NAMES), 1 + chance(SECTORS_MAX));
        let mut bytes = vec![0; sectors as usize * SECTOR];
        pattern::fill(&mut bytes, 0, number);
        records.say(&format!("n {name} {number} {sectors}"))?;
        let new = folder.join(format!("new-{name}"));
        let mut file = File::create(&new)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, folder.join(name.to_string()))?;
        File::open(folder)?.sync_all()?;
        records.say(&format!("s {name} {number}"))
    };
    let mut number = generation;
    // Its last error is the power cut, which it waits for.
    while step(number).is_ok() {
        number += 1;
    }
    Ok(())
}

/// Reports the content of each file.
///
/// Records: `v FILE WRITE SECTORS`, all of one write; `b FILE`, unreadable, or anything else.
pub(crate) fn read<W: io::Write>(folder: &Path, records: &Records<W>) -> io::Result<()> {
    for name in 0..NAMES {
        let path = folder.join(name.to_string());
        match fs::read(&path) {
            Ok(bytes) => match only_write(&bytes) {
                Some(number) => records.say(&format!("v {name} {number} {}", bytes.len() / SECTOR))?,
                None => records.say(&format!("b {name}"))?,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => records.say(&format!("b {name}"))?,
        }
    }
    Ok(())
}

/// The write that all of a file belongs to.
fn only_write(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() % SECTOR != 0 {
        return None;
    }
    let mut contents = (0..).zip(bytes.chunks_exact(SECTOR)).map(|(sector, bytes)| pattern::content(bytes, sector));
    let Some(Content::Written(number)) = contents.next() else { return None };
    contents.all(|content| content == Content::Written(number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_content_of_one_write_or_none() {
        let mut bytes = vec![0; 3 * SECTOR];
        pattern::fill(&mut bytes, 0, 5);
        assert_eq!(only_write(&bytes), Some(5));
        assert_eq!(only_write(&bytes[..SECTOR + 1]), None);
        assert_eq!(only_write(&[]), None);
        pattern::fill(&mut bytes[SECTOR..2 * SECTOR], 1, 6);
        assert_eq!(only_write(&bytes), None);
    }
}
