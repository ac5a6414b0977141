//! Fake cards at random, and honest ones: what a probe says of their capacity.

use emmc_card::card::Card;
use emmc_card::device::{Beyond, DeviceOptions, Missing};
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_port::{BlockContent, BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError, TargetFill, TargetShape};
use emmc_sim::SimTarget;
use emmc_units::{Instant, Nanos, Rng};

use super::{LEVELS, TrueCard};
use crate::noise::NoisyTarget;
use crate::part::{Part, Settings};
use crate::probe::{BUDGET, probe};
use crate::result::Findings;

const MIB: u64 = 1 << 20;

/// A card of which a part is missing, or none.
#[derive(Clone, Debug)]
pub struct TrueCapacity {
    /// Everything else.
    pub card: TrueCard,
    /// What exists of the stated capacity; none on an honest card. Unit: bytes.
    pub real_bytes: Option<u64>,
    beyond: Beyond,
    buffer_bytes: u64,
}

impl TrueCapacity {
    /// An honest card at random.
    pub fn honest(seed: u64) -> Self {
        Self { card: TrueCard::random(seed), real_bytes: None, beyond: Beyond::Wrap, buffer_bytes: 0 }
    }

    /// A fake at random: 3 % to 97 % of the stated capacity exist, to any sector; the rest wraps to the start or in the
    /// last part of what exists, or drops writes and reads as zeros or ones; half of them buffer the last writes.
    pub fn fake(seed: u64) -> Self {
        let card = TrueCard::random(seed);
        let rng = &mut Rng::new(seed ^ 0x0066_616b_6500);
        let stated = card.user_bytes;
        let share = 0.03 + 0.94 * rng.unit_f64();
        let real = (stated as f64 * share) as u64;
        let real = match rng.below(3) {
            // Chips have sizes of powers of two.
            0 => 1 << real.ilog2(),
            1 => real / MIB * MIB,
            _ => real / 512 * 512,
        };
        let beyond = match rng.below(5) {
            0 => Beyond::Wrap,
            1 => Beyond::WrapAtEnd((real / (2 + rng.below(50))).max(MIB) / 4096 * 4096),
            2 => Beyond::WrapAtEnd(4096 << rng.below(12)),
            3 => Beyond::Nothing(0),
            _ => Beyond::Nothing(0xff),
        };
        let buffer_bytes = if rng.below(2) == 0 { 0 } else { MIB << rng.below(4) };
        Self { card, real_bytes: Some(real), beyond, buffer_bytes }
    }

    /// What kind of fake, in words.
    pub fn kind(&self) -> String {
        match (self.real_bytes, self.beyond) {
            (None, _) => "honest".into(),
            (_, Beyond::Wrap) => "wraps".into(),
            (_, Beyond::WrapAtEnd(_)) => "wraps at its end".into(),
            (_, Beyond::Nothing(0)) => "drops writes, reads zeros".into(),
            (_, Beyond::Nothing(_)) => "drops writes, reads ones".into(),
        }
    }

    /// Probes the capacity alone.
    ///
    /// Errors: the profile is wrong, or the card fails: as text.
    pub fn probe(&self) -> Result<Findings, String> {
        let profile = Profile::from_toml(&self.card.profile).map_err(|error| error.to_string())?;
        let options = DeviceOptions { keep: StoredContent::Data, seed: self.card.seed };
        let card = Card::new(profile, options).map_err(|error| error.to_string())?;
        let inner = SimTarget::new(card.into_parts().0, "random", Instant::START, false);
        // An honest card is one with all of its capacity.
        let real = self.real_bytes.unwrap_or(inner.shape().size_bytes);
        let missing = Missing::new(real, self.beyond, self.buffer_bytes)?;
        let target = FakeTarget { inner, missing };
        let mut target = NoisyTarget::new(target, LEVELS[self.card.level].1, self.card.seed);
        let settings = Settings {
            write: true,
            from_bytes: 0,
            to_bytes: target.shape().size_bytes,
            budget_bytes: BUDGET,
            time: None,
            parts: vec![Part::Capacity],
            seed: self.card.seed,
        };
        probe(&mut target, &settings, &mut |_, _| true).map_err(|error| error.to_string())
    }

    /// What a probe says of the capacity: the value, and whether it is the true one.
    pub fn verdict(&self, findings: &Findings) -> (Option<u64>, bool) {
        let value = findings.parameters.get("capacity").and_then(|found| found.value.as_ref()).and_then(|v| v.whole());
        (value, value == Some(self.real_bytes.unwrap_or(self.card.user_bytes)))
    }
}

/// A card of which a part is missing.
struct FakeTarget {
    inner: SimTarget,
    missing: Missing,
}

impl FakeTarget {
    /// A request that reaches no flash takes a moment.
    fn nothing(&mut self, request: BlockRequest) -> Result<BlockDone, TargetError> {
        let submitted = self.inner.now();
        self.inner.idle(Nanos::from_micros(200))?;
        Ok(BlockDone { request, submitted, done: self.inner.now(), error: None })
    }

    fn content_of_inner(&mut self) -> Result<&mut dyn BlockContent, TargetError> {
        let name = self.inner.shape().name.clone();
        self.inner.content().ok_or(TargetError::Failed { name, reason: "stores no data".into() })
    }
}

impl BlockTarget for FakeTarget {
    fn shape(&self) -> &TargetShape {
        self.inner.shape()
    }

    fn now(&mut self) -> Instant {
        self.inner.now()
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.inner.submit(request)
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        self.inner.wait()
    }

    /// Each piece of a request at its real place.
    fn complete(&mut self, request: BlockRequest) -> Result<BlockDone, TargetError> {
        if request.op == BlockOp::Flush {
            return self.inner.complete(request);
        }
        let mut last = None;
        let submitted = self.inner.now();
        for piece in self.missing.pieces(request.offset_bytes, request.bytes) {
            let bytes = piece.range.end - piece.range.start;
            last = Some(match piece.real {
                Some(offset_bytes) => self.inner.complete(BlockRequest { offset_bytes, bytes, ..request })?,
                None => self.nothing(request)?,
            });
        }
        if request.op != BlockOp::Read {
            self.missing.wrote(request.offset_bytes, request.bytes, None);
        }
        let (done, error) = last.map_or((submitted, None), |last| (last.done, last.error));
        Ok(BlockDone { request, submitted, done, error })
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.inner.idle(time)
    }

    fn fill(&self) -> Option<TargetFill> {
        self.inner.fill()
    }

    fn content(&mut self) -> Option<&mut dyn BlockContent> {
        Some(self)
    }
}

impl BlockContent for FakeTarget {
    fn read_into(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<BlockDone, TargetError> {
        let request =
            BlockRequest { op: BlockOp::Read, offset_bytes, bytes: into.len() as u64, through: false, tag: 0 };
        let submitted = self.inner.now();
        for piece in self.missing.pieces(offset_bytes, request.bytes) {
            let part = &mut into[piece.range.start as usize..piece.range.end as usize];
            match piece.real {
                Some(offset) => self.content_of_inner()?.read_into(offset, part)?,
                None => {
                    part.fill(self.missing.filler());
                    self.nothing(request)?
                }
            };
        }
        self.missing.buffered(offset_bytes, into);
        Ok(BlockDone { request, submitted, done: self.inner.now(), error: None })
    }

    fn write_from(&mut self, offset_bytes: u64, data: &[u8], through: bool) -> Result<BlockDone, TargetError> {
        let request = BlockRequest { op: BlockOp::Write, offset_bytes, bytes: data.len() as u64, through, tag: 0 };
        let submitted = self.inner.now();
        for piece in self.missing.pieces(offset_bytes, request.bytes) {
            let part = &data[piece.range.start as usize..piece.range.end as usize];
            match piece.real {
                Some(offset) => self.content_of_inner()?.write_from(offset, part, through)?,
                None => self.nothing(request)?,
            };
        }
        self.missing.wrote(offset_bytes, request.bytes, Some(data));
        Ok(BlockDone { request, submitted, done: self.inner.now(), error: None })
    }
}
