//! Converts a phase to the card's sectors, and produces its requests.

use emmc_units::{Bytes, SECTOR_BYTES, Scramble, Size};

use super::latency::Kind;
use crate::device::{Area, Device, WriteFlags};
use crate::ftl::TrimKind;
use crate::sim::Rng;
use crate::sim::job::{Amount, Pattern, Replay, Target, Transfer, Trim};
use crate::sim::pattern::{Blocks, Choice, TWO_TO_64};
use crate::sim::trace::TraceOp;

/// More sectors than any run writes: no end.
const ENDLESS: u64 = u64::MAX;

/// Part of an area, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) area: Area,
    pub(super) first: u64,
    pub(super) sectors: u64,
    /// Sectors of a request.
    pub(super) block: u64,
}

impl Span {
    /// Errors: there is no such part, or no space for a request in it.
    pub(super) fn new(target: &Target, block_bytes: u32, device: &Device) -> Result<Self, String> {
        let (size, block) = (device.sectors(target.area), u64::from(block_bytes) / SECTOR_BYTES);
        if size == 0 {
            return Err(format!("the card has no area {:?}", target.area));
        }
        let end = |size_given: Size| match size_given {
            Size::Max => size,
            Size::Exact(Bytes(bytes)) => bytes / SECTOR_BYTES,
            Size::Percent(100) => size,
            // Shares end at request boundaries, so that two neighbouring ranges have no sector in common.
            Size::Percent(percent) => (u128::from(size) * u128::from(percent) / 100) as u64 / block * block,
        };
        let (first, last) = (end(target.from), end(target.to));
        if first >= last || last > size {
            return Err(format!("the range is sectors {first} to {last}; the area has {size}"));
        }
        if last - first < block {
            return Err(format!("a request takes {block} sectors and the range has {}", last - first));
        }
        Ok(Self { area: target.area, first, sectors: last - first, block })
    }

    /// All of an area, in requests of this size or, if it is smaller, in one.
    pub(super) fn whole(target: &Target, block_bytes: u32, device: &Device) -> Result<Self, String> {
        let sector = Self::new(target, SECTOR_BYTES as u32, device)?;
        let block = (u64::from(block_bytes) / SECTOR_BYTES).min(sector.sectors);
        Self::new(target, (block * SECTOR_BYTES) as u32, device)
    }

    /// The part in which a phase transfers.
    pub(super) fn of(transfer: &Transfer, device: &Device) -> Result<Self, String> {
        let of = if transfer.amount == Amount::RangeOnce { Self::whole } else { Self::new };
        of(&transfer.target, transfer.block_bytes, device)
    }

    /// Whole requests that fit in.
    pub(super) fn blocks(&self) -> u64 {
        self.sectors / self.block
    }

    /// The sectors of a block: fewer at the end of the range.
    #[inline]
    fn sectors_of(&self, block: u64) -> (u64, u32) {
        let within = block * self.block;
        (self.first + within, self.block.min(self.sectors - within) as u32)
    }
}

/// A request to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) area: Area,
    pub(super) lba: u64,
    pub(super) sectors: u32,
    pub(super) flags: WriteFlags,
    pub(super) trim: TrimKind,
    /// The trace's time, counted from the start of the phase.
    pub(super) at: Option<u64>,
}

/// The source of a phase's requests.
#[derive(Debug)]
pub(super) enum Source {
    /// A pattern.
    Pattern(Box<PatternSource>),
    /// Trims of a range.
    Trim(TrimSource),
    /// A trace.
    Trace(Replay, usize),
}

impl Source {
    /// The next request, if there is one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Request> {
        match self {
            Self::Pattern(source) => source.next(),
            Self::Trim(source) => source.next(),
            Self::Trace(replay, done) => {
                let record = replay.trace.records.get(*done)?;
                *done += 1;
                let kind = match record.op {
                    TraceOp::Read => Kind::Read,
                    TraceOp::Write => Kind::Write,
                    TraceOp::Trim | TraceOp::Discard => Kind::Trim,
                    TraceOp::Flush => Kind::Flush,
                };
                Some(Request {
                    kind,
                    area: Area::User,
                    lba: record.lba,
                    sectors: record.sectors,
                    flags: WriteFlags::default(),
                    trim: if record.op == TraceOp::Discard { TrimKind::Discard } else { TrimKind::Trim },
                    at: replay.timed.then_some(record.at.0),
                })
            }
        }
    }

    /// How much of it is done, 0 to 1.
    pub(super) fn done_share(&self) -> f64 {
        let share = |left: u64, all: u64| if all == 0 { 1.0 } else { 1.0 - left as f64 / all as f64 };
        match self {
            Self::Pattern(source) => share(source.left, source.all),
            Self::Trim(source) => share(source.count - source.done, source.count),
            Self::Trace(replay, done) => {
                share((replay.trace.records.len() - done) as u64, replay.trace.records.len() as u64)
            }
        }
    }

    /// The trims of a phase.
    pub(super) fn trim(trim: &Trim, device: &Device, rng: &mut Rng) -> Result<Self, String> {
        let span = Span::whole(&trim.target, trim.block_bytes, device)?;
        let whole = trim.share >= 1.0;
        let blocks = if whole { span.sectors.div_ceil(span.block) } else { span.blocks() };
        let count = if whole { blocks } else { (blocks as f64 * trim.share).round() as u64 };
        let order = (!whole).then(|| Scramble::new(blocks, rng.next_u64()));
        let kind = if trim.discard { TrimKind::Discard } else { TrimKind::Trim };
        Ok(Self::Trim(TrimSource { span, count, done: 0, order, kind }))
    }

    /// A trace, with wrapped addresses if requested.
    pub(super) fn trace(replay: &Replay, device: &Device) -> Result<Self, String> {
        let (mut replay, size) = (replay.clone(), device.sectors(Area::User));
        for (record, number) in replay.trace.records.iter_mut().zip(1..) {
            let (lba, sectors) = (record.lba, record.sectors);
            if record.op == TraceOp::Flush || lba + u64::from(sectors) <= size {
                continue;
            }
            if !replay.wrap || u64::from(sectors) > size {
                let what = format!("request {number} of the trace is sectors {lba} to {}", lba + u64::from(sectors));
                return Err(format!("{what}; the card has {size} (\"wrap\": true brings them inside)"));
            }
            record.lba = (lba % size).min(size - u64::from(sectors));
        }
        Ok(Self::Trace(replay, 0))
    }
}

/// Requests of a pattern.
#[derive(Debug)]
pub(super) struct PatternSource {
    blocks: Blocks,
    span: Span,
    rng: Rng,
    /// Share of reads, of 2^64.
    reads: u64,
    flags: WriteFlags,
    /// Sectors still to do, and in all.
    left: u64,
    all: u64,
}

impl PatternSource {
    /// Errors: what does not fit the card.
    pub(super) fn new(transfer: &Transfer, device: &Device, mut rng: Rng) -> Result<Self, String> {
        let span = Span::of(transfer, device)?;
        let capacity = device.sectors(span.area);
        let all = match transfer.amount {
            Amount::Bytes(bytes) => bytes / SECTOR_BYTES,
            Amount::Capacities(times) => (capacity as f64 * times) as u64 / span.block * span.block,
            Amount::RangeOnce => span.sectors,
            Amount::UntilWornOut => ENDLESS,
        };
        // A single stream covers all of its range; everything else uses whole requests.
        let (mut count, mut spacing) = (span.blocks(), 0);
        if let Pattern::Sequential { streams, spacing: given, shuffled } = transfer.pattern {
            if streams == 1 && given.is_none() && !shuffled {
                count = span.sectors.div_ceil(span.block);
            }
            let streams = u64::from(streams);
            spacing = given.map_or(count / streams, |bytes| bytes / SECTOR_BYTES / span.block);
            if spacing == 0 || streams * spacing > count {
                let needed = streams * spacing.max(1) * span.block;
                return Err(format!("{streams} streams take {needed} sectors and the range has {}", span.sectors));
            }
        }
        let mixed = matches!(transfer.pattern, Pattern::Mixed { .. });
        if mixed && count >= u64::from(u32::MAX) {
            return Err("mixed keeps track of every block, and there are more than 2^32".into());
        }
        let mut blocks = Blocks::new(&transfer.pattern, count, spacing, &mut rng);
        if let Blocks::Mixed(in_use) = &mut blocks {
            let held = (0..count).filter(|block| device.is_mapped(span.area, span.sectors_of(*block).0));
            held.for_each(|block| in_use.add(block));
        }
        let reads = if transfer.read_share >= 1.0 { u64::MAX } else { (transfer.read_share * TWO_TO_64) as u64 };
        let flags = WriteFlags { reliable: transfer.reliable, force: transfer.force };
        Ok(Self { blocks, span, rng, reads, flags, left: all, all })
    }

    #[inline]
    fn next(&mut self) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        let (kind, block) = match self.blocks.next(&mut self.rng) {
            Choice::Trim(block) => (Kind::Trim, block),
            Choice::Transfer(block) if self.is_read() => (Kind::Read, block),
            Choice::Transfer(block) => (Kind::Write, block),
        };
        let (lba, sectors) = self.span.sectors_of(block);
        let sectors = sectors.min(u32::try_from(self.left).unwrap_or(u32::MAX));
        self.left -= u64::from(sectors);
        let (area, flags) = (self.span.area, self.flags);
        Some(Request { kind, area, lba, sectors, flags, trim: TrimKind::Trim, at: None })
    }

    #[inline]
    fn is_read(&mut self) -> bool {
        match self.reads {
            0 => false,
            u64::MAX => true,
            share => self.rng.next_u64() < share,
        }
    }

    pub(super) fn is_endless(&self) -> bool {
        self.all == ENDLESS
    }
}

/// Trims of the blocks of a range: all in sequence, or a random share.
#[derive(Debug)]
pub(super) struct TrimSource {
    span: Span,
    count: u64,
    done: u64,
    order: Option<Scramble>,
    kind: TrimKind,
}

impl TrimSource {
    fn next(&mut self) -> Option<Request> {
        if self.done == self.count {
            return None;
        }
        let block = self.order.as_ref().map_or(self.done, |order| order.of(self.done));
        self.done += 1;
        let (lba, sectors) = self.span.sectors_of(block);
        let flags = WriteFlags::default();
        Some(Request { kind: Kind::Trim, area: self.span.area, lba, sectors, flags, trim: self.kind, at: None })
    }
}
