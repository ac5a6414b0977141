//! Converts a phase to requests on a card.

use emmc_port::{BlockOp, CardTarget};
use emmc_units::{Bytes, Rng, SECTOR_BYTES, Size};

use super::{Amount, Replay, Target, Transfer, Trim};
use crate::drive::BlocksInUse;
use crate::drive::order::{Order, Positions};
use crate::drive::source::{Pattern, Places, Span, threshold};
use crate::trace::Recorded;

/// More bytes than any run writes: no end.
const ENDLESS: u64 = u64::MAX;

/// A part of an area, in requests of a size.
///
/// Errors: there is no such part, or no space for a request in it.
pub(super) fn span(target: &Target, block_bytes: u64, card: &impl CardTarget) -> Result<Span, String> {
    let (size, block) = (card.area_bytes(target.area) / SECTOR_BYTES, block_bytes / SECTOR_BYTES);
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
    Ok(Span { from_bytes: first * SECTOR_BYTES, bytes: (last - first) * SECTOR_BYTES, block_bytes })
}

/// All of a part, in requests of this size or, if it is smaller, in one.
pub(super) fn whole_span(target: &Target, block_bytes: u64, card: &impl CardTarget) -> Result<Span, String> {
    let sectors = span(target, SECTOR_BYTES, card)?;
    span(target, block_bytes.min(sectors.bytes), card)
}

/// The part in which a phase transfers.
pub(super) fn span_of(transfer: &Transfer, card: &impl CardTarget) -> Result<Span, String> {
    let (target, block) = (&transfer.target, u64::from(transfer.block_bytes));
    if transfer.amount == Amount::RangeOnce { whole_span(target, block, card) } else { span(target, block, card) }
}

/// The bytes that a phase transfers.
pub(super) fn amount(transfer: &Transfer, span: &Span, card: &impl CardTarget) -> u64 {
    let block = span.block_bytes;
    match transfer.amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Capacities(times) => {
            let sectors = card.area_bytes(transfer.target.area) / SECTOR_BYTES;
            (sectors as f64 * times) as u64 / (block / SECTOR_BYTES) * block
        }
        Amount::RangeOnce => span.bytes,
        Amount::UntilWornOut => ENDLESS,
    }
}

/// The requests of a transfer.
///
/// Errors: what does not fit the card.
pub(super) fn transfer(transfer: &Transfer, card: &impl CardTarget, mut rng: Rng) -> Result<Pattern<'static>, String> {
    let span = span_of(transfer, card)?;
    let all = amount(transfer, &span, card);
    let mut count = span.blocks();
    let order = match transfer.pattern {
        super::Pattern::Ordered(order) => order,
        super::Pattern::Sequential { streams, spacing, shuffled } => {
            // A single stream covers all of its range; everything else uses whole requests.
            if streams == 1 && spacing.is_none() && !shuffled {
                count = span.bytes.div_ceil(span.block_bytes);
            }
            let streams = u64::from(streams);
            let spacing = spacing.map_or(count / streams, |bytes| bytes / span.block_bytes);
            if spacing == 0 || streams * spacing > count {
                let needed = streams * spacing.max(1) * span.block_bytes / SECTOR_BYTES;
                let has = span.bytes / SECTOR_BYTES;
                return Err(format!("{streams} streams take {needed} sectors and the range has {has}"));
            }
            Order::Streams { streams, spacing, shuffled }
        }
        super::Pattern::Mixed { .. } => Order::Random,
    };
    let places = match transfer.pattern {
        super::Pattern::Mixed { trim_share } => {
            if count >= u64::from(u32::MAX) {
                return Err("mixed keeps track of every block, and there are more than 2^32".into());
            }
            let mut in_use = BlocksInUse::new(count, trim_share);
            let held = (0..count).filter(|block| card.is_mapped(transfer.target.area, span.block(*block).0));
            held.for_each(|block| in_use.add(block));
            Places::InUse(Box::new(in_use))
        }
        _ => {
            let seed = if order.needs_seed() { rng.next_u64() } else { 0 };
            Places::Ordered(Positions::new(order, count, seed))
        }
    };
    let reads_only = transfer.read_share >= 1.0;
    Ok(Pattern {
        places,
        span,
        op: if reads_only { BlockOp::Read } else { BlockOp::Write },
        reads: if reads_only { 0 } else { threshold(transfer.read_share) },
        through: transfer.force,
        discard: false,
        rng,
        mix: None,
        left: all,
        all,
    })
}

/// The trims of a phase.
///
/// Errors: what does not fit the card.
pub(super) fn trim(trim: &Trim, card: &impl CardTarget, mut rng: Rng) -> Result<Pattern<'static>, String> {
    let span = whole_span(&trim.target, u64::from(trim.block_bytes), card)?;
    let (order, blocks, all) = if trim.share >= 1.0 {
        (Order::Sequential, span.bytes.div_ceil(span.block_bytes), span.bytes)
    } else {
        let count = (span.blocks() as f64 * trim.share).round() as u64;
        (Order::Shuffled, span.blocks(), count * span.block_bytes)
    };
    let places = Places::Ordered(Positions::new(order, blocks, rng.next_u64()));
    let (op, discard) = (BlockOp::Trim, trim.discard);
    Ok(Pattern { places, span, op, reads: 0, through: false, discard, rng, mix: None, left: all, all })
}

/// The requests of a trace, with wrapped addresses if requested.
///
/// Errors: a request that does not fit the card.
pub(super) fn recorded(replay: &Replay, card: &impl CardTarget) -> Result<Recorded, String> {
    let size = card.area_bytes(emmc_regs::Area::User);
    let hint = "\"wrap\": true continues at its start";
    let requests = replay.trace.fitted((0, size), SECTOR_BYTES, replay.wrap, hint, |_| true)?;
    Ok(Recorded::new(requests, replay.timed))
}
