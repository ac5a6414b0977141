//! Allocated ranges of a file; the rest are holes.

use std::fs::File;
use std::io;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::data::PAGE_BYTES;

/// The allocated parts of a range, in order, in whole pages; all of it if the filesystem does not report holes.
///
/// Errors: the kernel's.
pub(super) fn with_content(file: &File, from_bytes: u64, to_bytes: u64) -> io::Result<Vec<[u64; 2]>> {
    let page = PAGE_BYTES as u64;
    let mut found: Vec<[u64; 2]> = Vec::new();
    let mut at = from_bytes;
    while at < to_bytes {
        let begin = match seek(file, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => break,
            // A device, or a filesystem without holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(vec![[from_bytes, to_bytes]]),
            begin => begin?.max(at),
        };
        if begin >= to_bytes {
            break;
        }
        let end = seek(file, SeekFrom::Hole(begin))?.min(to_bytes).max(begin + 1);
        let (begin, end) = ((begin / page * page).max(from_bytes), end.next_multiple_of(page).min(to_bytes));
        match found.last_mut().filter(|last| last[1] >= begin) {
            Some(last) => last[1] = end,
            None => found.push([begin, end]),
        }
        at = end;
    }
    Ok(found)
}

/// The holes of a range: the gaps between these parts.
pub(super) fn without_content(content: &[[u64; 2]], from_bytes: u64, to_bytes: u64) -> Vec<[u64; 2]> {
    let begins = std::iter::once(from_bytes).chain(content.iter().map(|part| part[1]));
    let ends = content.iter().map(|part| part[0]).chain([to_bytes]);
    begins.zip(ends).filter(|(begin, end)| begin < end).map(|(begin, end)| [begin, end]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn data_and_holes_of_a_file_are_distinguished() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        for at in [0, 200 << 10, 204 << 10] {
            file.write_all_at(&[1; 4096], at).unwrap();
        }
        let found = with_content(&file, 0, 1 << 20).unwrap();
        if found == [[0, 1 << 20]] {
            eprintln!("SKIPPED: the filesystem knows no holes");
            return;
        }
        assert_eq!(found, [[0, 4096], [200 << 10, 208 << 10]]);
        assert_eq!(with_content(&file, 8192, 206 << 10).unwrap(), [[200 << 10, 206 << 10]]);
        assert_eq!(with_content(&file, 512 << 10, 1 << 20).unwrap(), [[0; 2]; 0]);
        assert_eq!(without_content(&found, 0, 1 << 20), [[4096, 200 << 10], [208 << 10, 1 << 20]]);
        assert_eq!(without_content(&[], 5, 9), [[5, 9]]);
        assert_eq!(without_content(&[[5, 9]], 5, 9), [[0; 2]; 0]);
    }
}
