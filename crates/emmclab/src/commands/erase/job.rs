//! What is to be erased, checked against what the target has; and the work, the same on every target.

use std::sync::atomic::{AtomicBool, Ordering};

use emmc_analysis::erase::{
    self, Ended, EraseKind, Event, Geometry, Offer, Reach, Sample, Verdict, in_chunks, positions, verify,
};
use emmc_linux::hold::{self, Point};
use emmc_port::{CardData, CommandPort, PortError};
use emmc_regs::Area;
use emmc_units::Bytes;

use super::{Done, EraseDocument, unable};
use crate::cli::EraseArgs;
use crate::progress::Bar;
use crate::save::Refused;

/// What one sample reads. Unit: bytes.
const SAMPLE_BYTES: u64 = 4096;
/// How a kind ends that the target does not have.
pub(super) const UNSUPPORTED: &str = "unsupported";
/// Places that are read before and after.
const SAMPLES: u64 = 256;

/// A target that may be erased: agreed to, and held.
pub(super) trait Erasable {
    /// Reads whole samples.
    ///
    /// Errors: unreadable, gone.
    fn read(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<(), String>;

    /// Erases one chunk.
    ///
    /// Errors: how the work ends: not supported, refused, no answer.
    fn erase(&mut self, kind: EraseKind, chunk: [u64; 2]) -> Result<(), Ended>;

    /// Has the card remove everything unmapped.
    fn sanitize(&mut self) -> Ended;

    /// Makes it durable, and has nobody see what was there before.
    fn finish(&mut self);

    /// What one command erases at most. Unit: bytes.
    fn chunk_bytes(&self, kind: EraseKind) -> u64;

    /// What erased memory may read as.
    fn erased(&self) -> Vec<u8>;

    /// The target's time. Unit: ms.
    fn now_ms(&mut self) -> u64;
}

/// What is to be erased.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) kinds: Vec<EraseKind>,
    /// Ascending. Unit: bytes.
    pub(super) ranges: Vec<[u64; 2]>,
    pub(super) from: u64,
}

impl Job {
    /// The ranges that the arguments name; `part` looks a partition up.
    ///
    /// Errors: [`Refused`]: outside, overlapping, no such partition; those of `part`.
    pub(super) fn new(
        args: &EraseArgs,
        size_bytes: u64,
        part: impl FnOnce(u32) -> anyhow::Result<[u64; 2]>,
    ) -> anyhow::Result<Self> {
        let kinds: Vec<EraseKind> = args.kinds.iter().map(|kind| EraseKind::from(*kind)).collect();
        let has_range = kinds.is_empty() || kinds.iter().any(|kind| kind.has_range());
        if kinds.contains(&EraseKind::Sanitize) && args.area() != Area::User {
            let what =
                "sanitize is of the whole card, all of its areas: give it without --area, in a command of its own";
            anyhow::bail!("{what}; nothing was sent");
        }
        let is_partial = !args.range.is_empty() || args.partition.is_some() || args.from.0 > 0;
        anyhow::ensure!(has_range || !is_partial, "sanitize is of the whole card: no range, partition or --from");
        let refused = |what: String| anyhow::Error::from(Refused(format!("{}: {what}; nothing was sent", args.target)));
        let mut ranges: Vec<[u64; 2]> = match args.partition {
            Some(number) => vec![part(number)?],
            None if args.range.is_empty() => vec![[0, size_bytes]],
            None => {
                args.range.iter().map(|range| [range.start.0, range.start.0.saturating_add(range.size.0)]).collect()
            }
        };
        ranges.sort_unstable();
        for range in &ranges {
            if range[1] > size_bytes {
                return Err(refused(format!("bytes {} to {} end behind its {size_bytes}", range[0], range[1])));
            }
        }
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0][1] > pair[1][0]) {
            return Err(refused(format!("two ranges overlap at byte {}", pair[1][0])));
        }
        if args.from.0 > ranges.last().map_or(0, |range| range[1]) {
            return Err(refused(format!("--from {} lies behind what is to be erased", args.from.0)));
        }
        Ok(Self { kinds, ranges, from: args.from.0 })
    }

    /// Unit: bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|[from, to]| to - from).sum()
    }

    /// Compares the job with what the target has.
    ///
    /// Errors: [`Refused`]: ranges that are not whole units, which a card would round; a kind that it does not have
    /// is not supported.
    pub(super) fn check(&self, target: &str, offers: &[Offer], size_bytes: u64) -> anyhow::Result<()> {
        for kind in &self.kinds {
            let offer = offers.iter().find(|offer| offer.kind == *kind);
            let Some(offer) = offer.filter(|offer| offer.available != Some(false)) else {
                let why = offer.map_or("not for this target".into(), |offer| offer.why.clone());
                let has: Vec<&str> = offers.iter().filter(|offer| offer.available != Some(false)).map(named).collect();
                let what = format!("has no {}: {why}; it has {}; nothing was sent", kind.name(), has.join(", "));
                return Err(super::unable(target, what));
            };
            if !kind.has_range() {
                continue;
            }
            let Some(unit) = offer.unit_bytes.filter(|unit| *unit > 0) else {
                let what = "the size of its erase groups is not known: use trim or discard; nothing was sent";
                return Err(super::unable(target, format!("{}: {what}", kind.name())));
            };
            for range in self.ranges.iter().chain(&[[self.from, self.from]]) {
                if let Some(nearest) = offer.rounded(*range, size_bytes) {
                    if range[0] == range[1] {
                        let what = format!("--from {} is not a multiple of {unit}", range[0]);
                        return Err(Refused(format!("{target}: {}: {what}; nothing was sent", kind.name())).into());
                    }
                    let what = format!(
                        "{} takes whole units of {}: bytes {} to {} would become {} to {}",
                        kind.name(),
                        Bytes(unit).rounded(),
                        range[0],
                        range[1],
                        nearest[0],
                        nearest[1]
                    );
                    return Err(Refused(format!("{target}: {what}; nothing was sent")).into());
                }
            }
        }
        Ok(())
    }

    /// Looks for write protection: a card would skip what is protected, the whole area or groups of it.
    ///
    /// Errors: [`Refused`]; a card that does not answer.
    pub(super) fn refuse_protected(
        &self,
        target: &str,
        card: &CardData,
        port: &mut dyn CommandPort,
        geometry: &Geometry,
    ) -> anyhow::Result<()> {
        if !self.kinds.iter().any(|kind| kind.has_range()) {
            return Ok(());
        }
        let refused = |what: String| anyhow::Error::from(Refused(format!("{target}: {what}; nothing was sent")));
        if let Some(why) = erase::protection(card, geometry.area) {
            return Err(refused(why));
        }
        let found = match erase::protected(port, geometry, &self.ranges) {
            Ok(found) => found,
            // A card that does not report it is asked by the erase itself.
            Err(PortError::Refused { .. }) => Vec::new(),
            Err(error) => return Err(unable(target, format!("{error}; nothing was erased"))),
        };
        let Some([from, to]) = found.first() else { return Ok(()) };
        let more = if found.len() > 1 { format!(" and {} more ranges", found.len() - 1) } else { String::new() };
        let what = format!("bytes {from} to {to}{more} are write-protected, and the card would skip them");
        Err(refused(what))
    }

    /// Erases, one kind after the other, and reads samples before and after each.
    pub(super) fn run(&self, target: &mut dyn Erasable, stop: &AtomicBool, document: &mut EraseDocument) {
        for (index, kind) in self.kinds.iter().enumerate() {
            // A resumed job begins with the kind that was interrupted.
            let from = if index == 0 { self.from } else { 0 };
            let done = self.one(*kind, from, target, stop);
            let is_complete = done.ended == "complete";
            document.done.push(done);
            if !is_complete {
                break;
            }
        }
        target.finish();
    }

    fn one(&self, kind: EraseKind, from: u64, target: &mut dyn Erasable, stop: &AtomicBool) -> Done {
        let at = positions(&self.ranges, SAMPLE_BYTES, SAMPLES).into_iter().filter(|at| *at >= from);
        let mut samples: Vec<Sample> =
            at.map(|at| Sample { offset_bytes: at, before: sample(target, at), after: None }).collect();
        let begun = target.now_ms();
        let mut bar = Bar::new();
        let reach = if kind.has_range() {
            let total = self.bytes();
            let chunk = target.chunk_bytes(kind);
            let mut erased = 0;
            let mut watch = |event: Event| {
                match event {
                    Event::Sends(_) => hold::reached(Point::Step, stop),
                    Event::Sent([from, to]) => erased += to - from,
                }
                bar.show(Some(erased as f64 / total.max(1) as f64), kind.name());
                !stop.load(Ordering::Relaxed)
            };
            in_chunks(&self.ranges, from, chunk, &mut |chunk| target.erase(kind, chunk), &mut watch)
        } else {
            hold::reached(Point::Step, stop);
            bar.show(None, kind.name());
            let is_stopped = stop.load(Ordering::Relaxed);
            let ended = if is_stopped { Ended::Stopped } else { target.sanitize() };
            Reach { ended, to_bytes: 0, erased_bytes: 0, unsure: None }
        };
        bar.finish();
        let time_ms = target.now_ms() - begun;
        let (ended, reason) = words(&reach.ended);
        // Of a card that is gone nothing can be read, and behind the end nothing is erased.
        let is_there = !matches!(reach.ended, Ended::Lost(_));
        let verification = (is_there && (ended == "complete" || reach.erased_bytes > 0)).then(|| {
            if kind.has_range() {
                samples.retain(|sample| sample.offset_bytes + SAMPLE_BYTES <= reach.to_bytes);
            }
            for sample in &mut samples {
                sample.after = self::sample(target, sample.offset_bytes);
            }
            verify(kind, &target.erased(), &samples)
        });
        Done {
            kind,
            ended,
            reason,
            to_bytes: kind.has_range().then_some(reach.to_bytes),
            erased_bytes: reach.erased_bytes,
            unsure: reach.unsure,
            time_ms,
            verification,
        }
    }
}

fn named(offer: &Offer) -> &'static str {
    offer.kind.name()
}

fn sample(target: &mut dyn Erasable, at: u64) -> Option<Vec<u8>> {
    let mut content = vec![0; SAMPLE_BYTES as usize];
    target.read(at, &mut content).ok().map(|()| content)
}

fn words(ended: &Ended) -> (&'static str, Option<String>) {
    match ended {
        Ended::Complete => ("complete", None),
        Ended::Stopped => ("stopped", Some("by a signal, between two commands".into())),
        Ended::Unsupported(reason) => (UNSUPPORTED, Some(reason.clone())),
        Ended::Refused(reason) => ("refused", Some(reason.clone())),
        Ended::Lost(reason) => ("lost", Some(reason.clone())),
    }
}

/// Whether some kind was accepted and not done.
pub(super) fn is_ignored(document: &EraseDocument) -> bool {
    let verdicts = document.done.iter().filter_map(|done| done.verification.as_ref());
    verdicts.into_iter().any(|found| found.verdict == Verdict::Ignored)
}
