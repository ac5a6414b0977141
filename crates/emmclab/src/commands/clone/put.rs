//! Content of a clone onto a place: deallocate, write, and read everything back.
//!
//! The first sectors are cleared before anything else is written, and written last, so that a target which was
//! interrupted has no partition table. Where it stands is in its content alone: `--resume` and `--verify` read it.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use emmc_clone::Ranges;
use emmc_clone::format::AreaShape;
use emmc_linux::hold::{self, Point};
use sha2::{Digest, Sha256};

use super::place::{Area, Place, REQUEST_BYTES};
use super::{crew, unable};
use crate::progress::Bar;
use crate::save::Refused;

/// What is cleared first and written last. Unit: bytes.
const HEAD_BYTES: u64 = 4096;

/// What a range holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) area: usize,
    pub(super) offset_bytes: u64,
    pub(super) bytes: u64,
    /// SHA-256 of the content, or the byte it consists of.
    pub(super) what: Result<[u8; 32], u8>,
}

/// A piece with its content.
pub(super) struct Content {
    pub(super) expected: Expected,
    /// The content, or the byte it consists of.
    pub(super) what: Result<Vec<u8>, u8>,
}

impl Content {
    /// The first bytes, and the rest if there is any. What is expected of the whole does not go with them.
    fn divided(self, first_bytes: u64) -> (Option<Self>, Option<Self>) {
        let Self { expected, what } = self;
        if expected.bytes <= first_bytes {
            return (Some(Self { expected, what }), None);
        }
        let (first, rest) = match what {
            Ok(mut data) => {
                let rest = data.split_off(first_bytes as usize);
                (Ok(data), Ok(rest))
            }
            Err(byte) => (Err(byte), Err(byte)),
        };
        let behind = Expected {
            offset_bytes: expected.offset_bytes + first_bytes,
            bytes: expected.bytes - first_bytes,
            ..expected
        };
        let first = Self { expected: Expected { bytes: first_bytes, ..expected }, what: first };
        (Some(first), Some(Self { expected: behind, what: rest }))
    }
}

/// What was done with a piece.
#[derive(Default)]
pub(super) struct Done {
    counts: Counts,
    expected: Option<Expected>,
    /// The piece of the first sectors, which is written last.
    head: Option<Content>,
}

/// What is done with each piece, in some thread with a handle of the target.
pub(super) type Work<'a> = &'a (dyn Fn(&mut dyn Place, Content) -> anyhow::Result<Done> + Sync);

/// The pieces of a clone.
pub(super) trait Pieces {
    /// The areas of the clone.
    fn shapes(&self) -> &[AreaShape];

    /// What they cover, by area. Unit: bytes.
    fn covered(&self) -> &[Ranges];

    /// Calls `work` with every piece, with several at a time, and `done` with the results in the order of the pieces.
    ///
    /// Errors: unreadable, damaged; those of `work` and `done`.
    fn each(
        &mut self,
        handles: Vec<Box<dyn Place>>,
        work: Work<'_>,
        done: &mut dyn FnMut(Done) -> anyhow::Result<()>,
    ) -> anyhow::Result<()>;
}

/// How content is put onto a target.
#[derive(Clone, Debug)]
pub(super) struct Putting {
    /// The areas that are written.
    pub(super) areas: Vec<String>,
    /// Unallocated space is discarded; else it stays as it is.
    pub(super) discard: bool,
    /// A smaller target is good enough if everything fits.
    pub(super) shrink: bool,
    /// What is there already is not written again.
    pub(super) resume: bool,
    /// Everything is read back.
    pub(super) read_back: bool,
}

/// What was done. Unit: bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Counts {
    /// Allocated content, with what is one byte all over.
    pub(super) content_bytes: u64,
    /// What was written.
    pub(super) written_bytes: u64,
    /// What was there already.
    pub(super) present_bytes: u64,
    /// What was deallocated.
    pub(super) discarded_bytes: u64,
    /// What was read back and is equal.
    pub(super) compared_bytes: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        let Self { content_bytes, written_bytes, present_bytes, discarded_bytes, compared_bytes } = other;
        self.content_bytes += content_bytes;
        self.written_bytes += written_bytes;
        self.present_bytes += present_bytes;
        self.discarded_bytes += discarded_bytes;
        self.compared_bytes += compared_bytes;
    }
}

/// Which area of the target takes which area of the clone: numbers of both.
pub(super) type Mapping = Vec<(usize, usize)>;

/// Finds out whether a clone fits onto a target.
///
/// Errors: [`Refused`]: other sectors, too small, no such area.
pub(super) fn fit(name: &str, pieces: &dyn Pieces, targets: &[Area], how: &Putting) -> anyhow::Result<Mapping> {
    let refused = |what: String| anyhow::Error::from(Refused(format!("{name}: {what}; nothing was written")));
    let mut mapping = Vec::new();
    for wanted in &how.areas {
        let shapes = pieces.shapes();
        let from = shapes.iter().position(|shape| shape.name == *wanted);
        let from = from.ok_or_else(|| refused(format!("the clone has no area {wanted}")))?;
        let to = targets.iter().position(|area| area.name == *wanted);
        let to = to.ok_or_else(|| refused(format!("the target has no area {wanted}")))?;
        let (shape, target) = (&shapes[from], &targets[to]);
        if shape.sector_bytes != target.sector_bytes {
            return Err(refused(format!(
                "{wanted} has sectors of {} bytes, the clone's has {}: tables and filesystems would not be readable",
                target.sector_bytes, shape.sector_bytes
            )));
        }
        let last = pieces.covered()[from].as_slice().last().map_or(0, |range| range[1]);
        let (size, own) = (target.size_bytes, shape.size_bytes);
        if size < last {
            let gpt = if last == own { "; the second copy of a GPT is at the end of its disk" } else { "" };
            return Err(refused(format!(
                "{wanted} is too small: {size} bytes, and the clone has content up to byte {last} of {own}{gpt}"
            )));
        }
        if size < own && !how.shrink {
            return Err(refused(format!(
                "{wanted} is smaller than the clone's, {size} of {own} bytes; all content fits: --shrink allows that"
            )));
        }
        mapping.push((from, to));
    }
    Ok(mapping)
}

/// Writes, and reads back.
///
/// Errors: the target's, stopped by a signal; content that does not read as written.
pub(super) fn put(
    place: &mut dyn Place,
    pieces: &mut dyn Pieces,
    (mapping, how): (&Mapping, &Putting),
    stop: &AtomicBool,
) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    let total: u64 = mapping.iter().map(|(from, _)| pieces.covered()[*from].bytes()).sum();
    let head = mapping.iter().find(|(from, _)| pieces.shapes()[*from].name == "user").copied();
    if let Some((_, to)) = head {
        place.write(to, 0, &[0; HEAD_BYTES as usize])?;
        place.sync()?;
    }
    let stopped = || -> anyhow::Result<()> {
        let what = "stopped: the target has no valid content; --resume continues";
        if stop.load(Ordering::Relaxed) { Err(unable("interrupted", what)) } else { Ok(()) }
    };
    if how.discard {
        for (from, to) in mapping {
            let size = place.areas()[*to].size_bytes;
            for range in pieces.covered()[*from].gaps(0, size).as_slice() {
                stopped()?;
                if place.discard(*to, *range)? {
                    counts.discarded_bytes += range[1] - range[0];
                }
            }
        }
    }
    let known = Fills::of(place)?;
    let work = |place: &mut dyn Place, content: Content| -> anyhow::Result<Done> {
        let Expected { area, offset_bytes, bytes, .. } = content.expected;
        let Some((_, to)) = mapping.iter().find(|(from, _)| *from == area) else { return Ok(Done::default()) };
        let mut counts = Counts { content_bytes: bytes, ..Counts::default() };
        let expected = Some(content.expected);
        let is_first = offset_bytes == 0 && head.is_some_and(|(from, _)| from == area);
        let (head, rest) = if is_first { content.divided(HEAD_BYTES) } else { (None, Some(content)) };
        if let Some(rest) = rest {
            one(place, *to, &rest, how, &known, &mut counts)?;
        }
        Ok(Done { counts, expected, head })
    };
    let (mut first, mut all, mut bar) = (None, Vec::new(), Bar::new());
    pieces.each(crew::handles(place)?, &work, &mut |done: Done| {
        stopped()?;
        hold::reached(Point::Step, stop);
        counts.add(done.counts);
        all.extend(done.expected);
        first = first.take().or(done.head);
        bar.show(Some(counts.content_bytes as f64 / total.max(1) as f64), "writing");
        Ok(())
    })?;
    bar.finish();
    place.sync()?;
    if let Some((content, (_, to))) = first.zip(head) {
        one(place, to, &content, &Putting { resume: false, ..how.clone() }, &Fills::none(), &mut counts)?;
        place.sync()?;
    }
    if how.read_back {
        counts.compared_bytes = compare(place, all, mapping, stop)?;
    }
    Ok(counts)
}

/// What of a place is known to read as one byte, by area.
struct Fills(Vec<Vec<([u64; 2], u8)>>);

impl Fills {
    fn none() -> Self {
        Self(Vec::new())
    }

    fn of(place: &mut dyn Place) -> anyhow::Result<Self> {
        (0..place.areas().len()).map(|area| place.fills(area)).collect::<anyhow::Result<_>>().map(Self)
    }

    /// What of a range is not known to read as this byte.
    fn unknown(&self, area: usize, [from, to]: [u64; 2], byte: u8) -> Ranges {
        let fills = self.0.get(area).map(Vec::as_slice).unwrap_or_default();
        // Ascending: the first one that ends behind the start.
        let begin = fills.partition_point(|(range, _)| range[1] <= from);
        let near = fills[begin..].iter().take_while(|(range, _)| range[0] < to);
        Ranges::of(near.filter(|(_, of)| *of == byte).map(|(range, _)| *range).collect()).gaps(from, to)
    }
}

/// Brings one piece onto the target.
fn one(
    place: &mut dyn Place,
    to: usize,
    content: &Content,
    how: &Putting,
    known: &Fills,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let Expected { offset_bytes, bytes, .. } = content.expected;
    match &content.what {
        Ok(data) => {
            if how.resume {
                let mut found = vec![0; data.len()];
                place.read(to, offset_bytes, &mut found)?;
                if found == *data {
                    counts.present_bytes += bytes;
                    return Ok(());
                }
            }
            place.write(to, offset_bytes, data)?;
            counts.written_bytes += bytes;
        }
        Err(byte) => {
            for range in known.unknown(to, [offset_bytes, offset_bytes + bytes], *byte).as_slice() {
                fill(place, to, *range, *byte, counts)?;
            }
        }
    }
    Ok(())
}

/// Makes a range read as one byte: deallocated, and written only where that does not show.
fn fill(place: &mut dyn Place, to: usize, range: [u64; 2], byte: u8, counts: &mut Counts) -> anyhow::Result<()> {
    if place.discard(to, range)? {
        counts.discarded_bytes += range[1] - range[0];
    }
    let mut at = range[0];
    while at < range[1] {
        let bytes = (range[1] - at).min(REQUEST_BYTES as u64);
        let mut found = vec![0; bytes as usize];
        place.read(to, at, &mut found)?;
        if found.iter().any(|found| *found != byte) {
            found.fill(byte);
            place.write(to, at, &found)?;
            counts.written_bytes += bytes;
        }
        at += bytes;
    }
    Ok(())
}

/// Reads everything back. Returns how much is equal. Unit: bytes.
///
/// Errors: unreadable; other content.
pub(super) fn compare(
    place: &mut dyn Place,
    expected: Vec<Expected>,
    mapping: &Mapping,
    stop: &AtomicBool,
) -> anyhow::Result<u64> {
    let known = Fills::of(place)?;
    let mut all = Vec::new();
    for Expected { area, offset_bytes, bytes, what } in expected {
        let Some((_, to)) = mapping.iter().find(|(from, _)| *from == area) else { continue };
        let range = [offset_bytes, offset_bytes + bytes];
        match what {
            Ok(sha256) => all.push((*to, range, Ok(sha256))),
            Err(byte) => {
                for [mut at, end] in known.unknown(*to, range, byte).as_slice().iter().copied() {
                    while at < end {
                        let next = end.min(at + REQUEST_BYTES as u64);
                        all.push((*to, [at, next], Err(byte)));
                        at = next;
                    }
                }
            }
        }
    }
    let mut bar = Bar::new();
    let names: Vec<String> = place.areas().iter().map(|area| area.name.clone()).collect();
    let (count, mut index, mut compared) = (all.len(), 0, 0);
    let mut next = all.into_iter();
    crew::ordered(
        crew::handles(place)?,
        || {
            let what = "stopped by a signal";
            if stop.load(Ordering::Relaxed) { Err(unable("compare", what)) } else { Ok(next.next()) }
        },
        |place, (to, [from, end], content)| {
            let mut found = vec![0; (end - from) as usize];
            place.read(to, from, &mut found)?;
            let is_equal = match content {
                Ok(sha256) => Sha256::digest(&found).as_slice() == sha256,
                Err(byte) => found.iter().all(|found| *found == byte),
            };
            Ok((to, from, end - from, is_equal))
        },
        |found: anyhow::Result<_>| {
            let (to, from, bytes, is_equal) = found?;
            index += 1;
            bar.show(Some(index as f64 / count as f64), "comparing");
            let what = || format!("byte {from} of {} differs from the clone", names[to]);
            is_equal.then_some(()).with_context(what)?;
            compared += bytes;
            Ok(())
        },
    )?;
    bar.finish();
    Ok(compared)
}
