//! The pieces of a clone: from its file, or from a source that is read now.

use std::path::{Path, PathBuf};

use emmc_clone::Ranges;
use emmc_clone::format::{AreaShape, Coding, Content as Stored, Header, Record};
use sha2::{Digest, Sha256};

use super::coding;
use super::crew;
use super::file::{CloneFile, content};
use super::place::Place;
use super::put::{Content, Done, Expected, Pieces, Work};
use super::scheme::{Piece, Scheme};

/// A file that was read once as a whole, and is good.
pub(super) struct FromFile {
    path: PathBuf,
    pub(super) header: Header,
    covered: Vec<Ranges>,
    records: Vec<Record>,
}

impl FromFile {
    /// Reads and checks a whole file.
    ///
    /// Errors: no clone, damaged, cut off.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = CloneFile::open(path)?;
        let mut covered = vec![Ranges::default(); file.header.areas.len()];
        let mut records = Vec::new();
        let header = file.check(|record| {
            if let Some(covered) = covered.get_mut(usize::from(record.area)) {
                covered.push(record.offset_bytes, record.offset_bytes + record.bytes);
            }
            records.push(*record);
        })?;
        Ok(Self { path: path.into(), header, covered, records })
    }

    /// What a place holds that is equal.
    pub(super) fn expected(&self) -> Vec<Expected> {
        self.records.iter().filter_map(expected).collect()
    }
}

/// What a place holds that has the content of a record.
fn expected(record: &Record) -> Option<Expected> {
    let Record { area, offset_bytes, bytes, content } = *record;
    let what = match content {
        Stored::Data { sha256, .. } => Ok(sha256),
        Stored::Fill(byte) => Err(byte),
        Stored::End { .. } => return None,
    };
    Some(Expected { area: area.into(), offset_bytes, bytes, what })
}

impl Pieces for FromFile {
    fn shapes(&self) -> &[AreaShape] {
        &self.header.areas
    }

    fn covered(&self) -> &[Ranges] {
        &self.covered
    }

    fn each(
        &mut self,
        handles: Vec<Box<dyn Place>>,
        work: Work<'_>,
        done: &mut dyn FnMut(Done) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut file = CloneFile::open(&self.path)?;
        crew::ordered(
            handles,
            || file.next(),
            |place, stored| {
                let (record, data) = content(stored)?;
                let Some(expected) = expected(&record) else { return Ok(Done::default()) };
                let what = expected.what.map(|_| data);
                work(&mut **place, Content { expected, what })
            },
            |found: anyhow::Result<Done>| done(found?),
        )
    }
}

/// A source that is read.
pub(super) struct FromPlace<'a> {
    place: &'a dyn Place,
    scheme: &'a Scheme,
    covered: Vec<Ranges>,
}

impl<'a> FromPlace<'a> {
    pub(super) fn new(place: &'a dyn Place, scheme: &'a Scheme) -> Self {
        let mut covered = vec![Ranges::default(); scheme.areas.len()];
        for piece in &scheme.pieces {
            covered[usize::from(piece.area)].push(piece.offset_bytes, piece.offset_bytes + piece.bytes);
        }
        Self { place, scheme, covered }
    }
}

impl Pieces for FromPlace<'_> {
    fn shapes(&self) -> &[AreaShape] {
        &self.scheme.areas
    }

    fn covered(&self) -> &[Ranges] {
        &self.covered
    }

    fn each(
        &mut self,
        handles: Vec<Box<dyn Place>>,
        work: Work<'_>,
        done: &mut dyn FnMut(Done) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let sources = handles.iter().map(|_| self.place.another()).collect::<anyhow::Result<Vec<_>>>()?;
        let mut next = self.scheme.pieces.iter();
        crew::ordered(
            sources.into_iter().zip(handles).collect(),
            || Ok(next.next()),
            |(source, target), piece| {
                let what = match piece.fill {
                    Some(byte) => Err(byte),
                    None => {
                        let data = read(&mut **source, piece)?;
                        uniform(&data).map_or(Ok(data), Err)
                    }
                };
                let Piece { area, offset_bytes, bytes, .. } = *piece;
                let hash = what.as_ref().map(|data| Sha256::digest(data).into()).map_err(|byte| *byte);
                let expected = Expected { area: area.into(), offset_bytes, bytes, what: hash };
                work(&mut **target, Content { expected, what })
            },
            |found: anyhow::Result<Done>| done(found?),
        )
    }
}

/// The content of a piece.
///
/// Errors: unreadable.
pub(super) fn read(place: &mut dyn Place, piece: &Piece) -> anyhow::Result<Vec<u8>> {
    let mut data = vec![0; piece.bytes as usize];
    place.read(piece.area.into(), piece.offset_bytes, &mut data)?;
    Ok(data)
}

/// The byte that content consists of.
fn uniform(data: &[u8]) -> Option<u8> {
    let first = *data.first()?;
    data.iter().all(|byte| *byte == first).then_some(first)
}

/// A piece as a record and what is stored of it.
pub(super) fn record(piece: Piece, data: Option<Vec<u8>>, level: i32) -> (Record, Vec<u8>) {
    let Piece { area, offset_bytes, bytes, fill } = piece;
    let data = data.unwrap_or_default();
    if let Some(byte) = fill.or_else(|| uniform(&data)) {
        return (Record { area, offset_bytes, bytes, content: Stored::Fill(byte) }, Vec::new());
    }
    let sha256 = Sha256::digest(&data).into();
    let (coding, stored): (Coding, Vec<u8>) = coding::compress(level, &data);
    let content = Stored::Data { coding, stored_bytes: stored.len() as u32, sha256 };
    (Record { area, offset_bytes, bytes, content }, stored)
}
