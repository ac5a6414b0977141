//! `clone`: a card as a file or on another card; `restore`: from the file back.

mod carried;
mod coding;
mod crew;
mod file;
#[cfg(feature = "sim")]
pub(super) mod folder;
mod pieces;
pub(super) mod place;
mod put;
mod read_back;
pub(super) mod real;
mod report;
mod scheme;
mod target;

use std::fmt::Write as _;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use emmc_clone::format::{Header, PIECE_BYTES_MAX, SourceKind};
use emmc_linux::hold::{self, Point};
use emmc_port::{CardData, Snapshot, SourceError};

use self::file::PartFile;
use self::pieces::{FromFile, FromPlace};
use self::place::Place;
use self::put::{Pieces, Putting};
use self::real::RealPlace;
use self::scheme::Scheme;
use crate::CommandResult;
use crate::cli::{CloneArgs, RestoreArgs, TargetArgs, UnallocatedArg};
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::signals::{outlive_file_limits, stop_by_signal};

pub(crate) use report::{CloneDocument, PutDocument};

pub(crate) const SCHEMA: &str = "emmclab.clone/1";
pub(crate) const PUT_SCHEMA: &str = "emmclab.clone-restore/1";

/// What a target holds differs from the clone.
#[derive(Debug)]
struct Differs(String);

impl std::fmt::Display for Differs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Differs {}

/// An error of the system or the card, with the name of what failed.
pub(super) fn unable(name: &str, reason: impl ToString) -> anyhow::Error {
    SourceError::Unsupported { name: name.into(), reason: reason.to_string() }.into()
}

/// Bytes as lower-case digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a name is that of a target rather than of a file of ours.
fn is_card(path: &Path) -> bool {
    let is_device = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    is_device || path.to_string_lossy().starts_with("sim:") || emmc_linux::is_card_name(&path.to_string_lossy())
}

/// A source that is open, what is known of its card, and why nothing is left out.
struct Source {
    place: Box<dyn Place>,
    kind: SourceKind,
    card: Option<CardData>,
    whole: Option<&'static str>,
    /// Changes when the source does, where that can be seen.
    state: Vec<u8>,
}

fn source(args: &CloneArgs, stop: &Arc<AtomicBool>) -> anyhow::Result<Source> {
    let name = args.source.as_str();
    let whole = args.whole.then_some("--whole was given");
    #[cfg(feature = "sim")]
    if let Some(folder) = name.strip_prefix("sim:") {
        let (place, card) = folder::VirtualPlace::source(name)?;
        let state = times(&Path::new(folder).join(emmc_serve::store::STATE_FILE));
        return Ok(Source { place: Box::new(place), kind: SourceKind::VirtualCard, card: Some(card), whole, state });
    }
    let found = std::fs::metadata(emmc_linux::card_node(name).unwrap_or_else(|| name.into()));
    let kind = match found.map_err(|error| unable(name, error))?.file_type() {
        kind if kind.is_block_device() => SourceKind::Device,
        kind if kind.is_file() => SourceKind::File,
        _ => return Err(unable(name, "expected a block device, an image file, or sim:FOLDER of a virtual card")),
    };
    real::refuse_part(name)?;
    let card = emmc_linux::is_card_name(name).then(|| crate::source::open_one(name, None)).transpose()?;
    let (place, is_used) = RealPlace::source(name, card.as_ref(), args.live, stop)?;
    let state = if kind == SourceKind::File { times(Path::new(name)) } else { Vec::new() };
    // The tables of a filesystem that is mounted are behind what is in memory.
    let whole = whole.or(is_used.then_some("it is in use (--live)"));
    Ok(Source { place: Box::new(place), kind, card, whole, state })
}

/// The time of the last change of a file.
fn times(path: &Path) -> Vec<u8> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path);
    found
        .map(|found| [found.mtime(), found.mtime_nsec(), found.len() as i64].map(i64::to_le_bytes).concat())
        .unwrap_or_default()
}

/// `clone`.
pub(crate) fn run(args: &CloneArgs, output: &mut Output) -> CommandResult {
    outlive_file_limits()?;
    let stop = Arc::new(AtomicBool::new(false));
    let Source { mut place, kind, card, whole, state } = source(args, &stop)?;
    let scheme = scheme::of(&mut *place, whole, &state)?;
    let (not_carried, plans) = carried::not_carried(card.as_ref());
    let header = Header {
        tool: concat!("emmclab ", env!("CARGO_PKG_VERSION")).into(),
        source: args.source.clone(),
        kind,
        areas: scheme.areas.clone(),
        fingerprint: scheme.fingerprint.clone(),
        piece_bytes: PIECE_BYTES_MAX,
        card: card.as_ref().map(Snapshot::from),
        not_carried,
        plans,
    };
    if is_card(&args.output) {
        let name = args.output.to_string_lossy().into_owned();
        let mut from = FromPlace::new(&*place, &scheme);
        let how = putting(&args.target, args.resume);
        let counts = target::overwrite(&name, &mut from, &how, &args.target, &args.source, &stop, output.is_json())?;
        let document = PutDocument::new("clone", &args.source, &name, &how, Some(counts), &header);
        output.print(PUT_SCHEMA, &document, PutDocument::present)?;
        return Ok(Exit::Good);
    }
    crate::save::refuse_inputs(&args.output, &[Path::new(args.source.trim_start_matches("sim:"))])?;
    let part = PartFile::open(&args.output, &header, args.resume, args.force)?;
    stop_by_signal(&stop)?;
    let resumed_bytes = part.resumed_bytes;
    let (stored_bytes, read_bytes) = store(part, &*place, &scheme, args.level, &stop)?;
    if args.verify {
        let expected = FromFile::open(&args.output)?.expected();
        let mapping = (0..scheme.areas.len()).map(|area| (area, area)).collect();
        put::compare(&mut *place, expected, &mapping, &stop)
            .with_context(|| format!("{}: changed while it was cloned", args.source))?;
    }
    let document = CloneDocument::new(args, header, &scheme, [read_bytes, stored_bytes, resumed_bytes]);
    output.print(SCHEMA, &document, CloneDocument::present)?;
    Ok(Exit::Good)
}

/// Writes the pieces that are not in the file yet. Returns the size of the file and what was read. Unit: bytes.
fn store(
    mut part: PartFile,
    place: &dyn Place,
    scheme: &Scheme,
    level: i32,
    stop: &AtomicBool,
) -> anyhow::Result<(u64, u64)> {
    let (area, offset) = part.next();
    let todo = scheme.pieces.iter().filter_map(|piece| {
        // A fill may have grown over several pieces.
        let end = piece.offset_bytes + piece.bytes;
        let begin = if piece.area == area { piece.offset_bytes.max(offset) } else { piece.offset_bytes };
        let is_left = piece.area > area || piece.area == area && end > offset;
        is_left.then(|| scheme::Piece { offset_bytes: begin, bytes: end - begin, ..*piece })
    });
    let todo: Vec<scheme::Piece> = todo.collect();
    let total: u64 = todo.iter().filter(|piece| piece.fill.is_none()).map(|piece| piece.bytes).sum();
    let (mut read_bytes, mut next, mut bar) = (0u64, todo.into_iter(), Bar::new());
    let done = crew::handles(place).and_then(|handles| {
        crew::ordered(
            handles,
            || {
                let what = "stopped by a signal: --resume continues it";
                if stop.load(Ordering::Relaxed) { Err(unable("clone", what)) } else { Ok(next.next()) }
            },
            |place, piece: scheme::Piece| {
                let data = piece.fill.is_none().then(|| pieces::read(&mut **place, &piece)).transpose()?;
                let read = data.as_ref().map_or(0, |data| data.len() as u64);
                Ok((read, pieces::record(piece, data, level)))
            },
            |found: anyhow::Result<_>| {
                let (read, (record, stored)) = found?;
                read_bytes += read;
                bar.show(Some(read_bytes as f64 / total.max(1) as f64), "copying");
                hold::reached(Point::Step, stop);
                part.append(record, &stored)
            },
        )
    });
    bar.finish();
    match done {
        Ok(()) => Ok((part.finish()?, read_bytes)),
        Err(error) => {
            part.leave();
            Err(error)
        }
    }
}

fn putting(args: &TargetArgs, resume: bool) -> Putting {
    Putting {
        areas: args.areas.clone(),
        discard: args.unallocated == UnallocatedArg::Discard,
        shrink: args.shrink,
        resume,
        read_back: !args.no_read_back,
    }
}

/// `restore`.
pub(crate) fn restore(args: &RestoreArgs, output: &mut Output) -> CommandResult {
    outlive_file_limits()?;
    let stop = Arc::new(AtomicBool::new(false));
    // The whole file, before anything is written.
    let mut file = FromFile::open(&args.file)?;
    let header = file.header.clone();
    let from = args.file.display().to_string();
    let how = putting(&args.how, args.resume);
    let Some(name) = args.target.as_deref() else {
        let document = PutDocument::new("check", &from, "", &how, None, &header);
        output.print(PUT_SCHEMA, &document, PutDocument::present)?;
        return Ok(Exit::Good);
    };
    if args.verify {
        return verify(&file, name, &how, &stop)
            .and_then(|counts| {
                let document = PutDocument::new("verify", &from, name, &how, Some(counts), &header);
                output.print(PUT_SCHEMA, &document, PutDocument::present)?;
                Ok(Exit::Good)
            })
            .or_else(|error| match error.downcast_ref::<Differs>() {
                Some(Differs(what)) => {
                    output.error(what);
                    Ok(Exit::Findings)
                }
                None => Err(error),
            });
    }
    let counts = target::overwrite(name, &mut file, &how, &args.how, &from, &stop, output.is_json())?;
    let document = PutDocument::new("restore", &from, name, &how, Some(counts), &header);
    output.print(PUT_SCHEMA, &document, PutDocument::present)?;
    Ok(Exit::Good)
}

/// Compares a target with a file; nothing is written.
fn verify(file: &FromFile, name: &str, how: &Putting, stop: &Arc<AtomicBool>) -> anyhow::Result<put::Counts> {
    let mut place = target::look(name, stop)?;
    let how = Putting { shrink: true, ..how.clone() };
    let mapping = put::fit(name, file, place.areas(), &how)?;
    let content_bytes = mapping.iter().map(|(from, _)| file.covered()[*from].bytes()).sum();
    match put::compare(&mut *place, file.expected(), &mapping, stop) {
        Ok(compared_bytes) => Ok(put::Counts { content_bytes, compared_bytes, ..put::Counts::default() }),
        Err(error) if error.is::<SourceError>() => Err(error),
        Err(error) => Err(Differs(format!("{name}: {error}")).into()),
    }
}
