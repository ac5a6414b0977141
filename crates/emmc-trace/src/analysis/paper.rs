//! Three stages of a request and what follows from them, as in the white paper on command queueing.
//!
//! Conventions of the paper: its KB and MB/s are KiB and MiB/s. One request at a time: size / (pre + card + post);
//! a card that needs no time: size / (pre + post); many threads on several processors: size / the longest stage.
//! Software's share is (pre + post) / (pre + card + post). A row is a kind of request that a call waits for; what it
//! waited behind other requests is left out, because the paper has one thread.

use emmc_host::{Spans, Speed};
use emmc_units::{Bytes, Nanos};

use super::groups::{Group, named};
use super::result::PaperRow;
use crate::event::Op;
use crate::request::Mode;

/// `None` for kinds without all three stages: no call waits for them, or the card's time is not recorded.
pub(super) fn row(group: &Group) -> Option<PaperRow> {
    let is_waited = matches!(group.mode, Mode::Direct | Mode::Sync | Mode::Fsync);
    let moves = matches!(group.op, Op::Read | Op::Write) && group.sectors.is_some_and(|sectors| sectors > 0);
    if !is_waited || !moves {
        return None;
    }
    let [pre, hw, post] = group.stages()?;
    let spans = Spans { pre: Nanos(pre), hw: Nanos(hw), post: Nanos(post) };
    let size = Bytes(u64::from(group.sectors?) * 512);
    let speed = |ns: u64| Speed::of(size, ns.max(1) as f64).mib_s;
    let us = |span: Nanos| span.as_micros_f64();
    Some(PaperRow {
        device: named(group.number),
        op: group.op.name().into(),
        size_bytes: size.0,
        mode: group.mode.name().into(),
        is_sequential: group.sequential * 2 >= group.count,
        count: group.count,
        pre_us: us(spans.pre),
        hardware_us: us(spans.hw),
        post_us: us(spans.post),
        overhead_percent: 100.0 * spans.overhead_share(),
        theoretical_mib_per_s: speed(spans.total().0),
        zero_hardware_mib_per_s: speed(spans.software().0),
        many_threads_mib_per_s: speed(pre.max(hw).max(post)),
        measured_mib_per_s: speed(group.active_ns / group.count.max(1)),
    })
}
