//! The home of content that could not be restored: the file that it is in, else the first place that takes it.

use std::io;
use std::path::{Path, PathBuf};

use super::chunk::CHUNK_BYTES;
use super::copy::{Copy, NewFile, unique};
use super::{Keeper, Saved};
use crate::block_io::data;

/// The places for content that is in memory only: $TMPDIR, the working directory, /run.
fn places() -> Vec<PathBuf> {
    let mut places = vec![std::env::temp_dir()];
    places.extend(std::env::current_dir());
    places.push("/run".into());
    places.dedup();
    places
}

impl Saved {
    /// Where the content is now. Content in memory is written to a file in the first place that takes it; while none
    /// does, the caller waits.
    pub fn rescue(&self, why: &str, keeper: &mut dyn Keeper) -> String {
        self.rescue_in(&places, why, keeper)
    }

    fn rescue_in(&self, places: &dyn Fn() -> Vec<PathBuf>, why: &str, keeper: &mut dyn Keeper) -> String {
        if let Some(path) = self.copy.path() {
            return format!("the content is in {}", path.display());
        }
        loop {
            let mut failed = Vec::new();
            for place in places() {
                match self.write_in(&place) {
                    Ok(path) => {
                        let from = self.header.from_bytes;
                        return format!("the content from byte {from} on is in {}", path.display());
                    }
                    Err(error) => failed.push(format!("{}: {error}", place.display())),
                }
            }
            let failed = failed.join("; ");
            if !keeper.wait(&format!("{}: {why}; {failed}", self.header.target)) {
                return format!("the content cannot be saved either: {failed}");
            }
        }
    }

    fn write_in(&self, folder: &Path) -> io::Result<PathBuf> {
        let path = folder.join(format!("emmclab-saved-{}", unique()));
        let file = NewFile::create(&path)?;
        let mut copy = Copy::File(file);
        let written = self.copied_to(&mut copy);
        if let (Err(_), Copy::File(file)) = (&written, &copy) {
            // A partial file would only take space.
            let _ = file.remove();
        }
        written.map(|()| path)
    }

    fn copied_to(&self, copy: &mut Copy) -> io::Result<()> {
        let mut memory = data::zeros(CHUNK_BYTES as usize)?;
        for (chunk, packed) in self.chunks() {
            let part = &mut memory[..chunk.length as usize];
            self.get(&chunk, packed, part)?;
            copy.put(chunk.at - self.header.from_bytes, packed, part)?;
        }
        match copy {
            Copy::File(file) => file.complete(self.header.clone(), &self.chunks),
            Copy::Memory(_) | Copy::Opened(..) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_workload::{Unwatched, Watch};

    use super::*;
    use crate::block_io::{EngineChoice, Opening, open};

    /// Makes a place after some waits.
    struct Waits {
        folder: PathBuf,
        left: u32,
        said: Vec<String>,
    }

    impl Keeper for Waits {
        fn watch(&mut self) -> &mut dyn Watch {
            unreachable!("nothing is restored here")
        }

        fn wait(&mut self, why: &str) -> bool {
            self.said.push(why.into());
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            if self.left == 0 {
                std::fs::create_dir(&self.folder).unwrap();
            }
            true
        }
    }

    #[test]
    fn content_in_memory_waits_for_a_place_and_names_are_unique() {
        let scratch = tempfile::tempdir().unwrap();
        let (file, [first, second]) = (scratch.path().join("file"), ["a", "b"].map(|name| scratch.path().join(name)));
        std::fs::write(&file, vec![7; 3 << 19]).unwrap();
        let opening =
            Opening { engine: EngineChoice::Pread, write: false, flush_all: false, seed: 1, stop: Default::default() };
        let target = open(&file, "file", &opening).unwrap();
        let saved = Saved::take(&target, [4096, 3 << 19], None, &mut Unwatched).unwrap();
        let places = || vec![first.clone(), second.clone()];
        let mut never = Waits { folder: second.clone(), left: 0, said: Vec::new() };
        let told = saved.rescue_in(&places, "EIO", &mut never);
        assert!(told.contains("cannot be saved either: ") && never.said.len() == 1, "{told}");
        assert!(never.said[0].contains("EIO") && never.said[0].contains("No such file"), "{:?}", never.said);
        let mut later = Waits { folder: second.clone(), left: 3, said: Vec::new() };
        let told = saved.rescue_in(&places, "EIO", &mut later);
        assert_eq!(later.said.len(), 3);
        let path = PathBuf::from(told.strip_prefix("the content from byte 4096 on is in ").unwrap());
        assert!(path.starts_with(&second));
        let again = saved.rescue_in(&places, "EIO", &mut later);
        assert!(!again.contains(path.to_str().unwrap()), "{again}");
        // Each is whole and can be restored.
        let opened = Saved::open(&path, &mut Unwatched).unwrap();
        assert_eq!((opened.range(), opened.mismatch(&target)), ([4096, 3 << 19], Ok(None)));
        assert_eq!(std::fs::read_dir(&second).unwrap().count(), 2);
    }
}
