//! Random virtual cards whose parameters are known, and how many of them a probe finds.

mod fakes;
mod slc;
mod uneven;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_port::BlockTarget;
use emmc_sim::SimTarget;
use emmc_units::{Instant, Nanos, Rng};

use crate::noise::{Noise, NoisyTarget};
use crate::part::{Part, Settings};
use crate::probe::{BUDGET, probe};
use crate::result::{Bound, Confidence, Findings, Value};
pub use fakes::TrueCapacity;
pub use slc::TrueSlc;
pub use uneven::TruePart;
use uneven::TwoCards;

const KIB: u64 = 1 << 10;
/// A command and its response on the bus, 2 to 3.2 us at 52 MHz. Unit: microseconds.
const COMMAND_US: f64 = 2.6;
const MIB: u64 = 1 << 20;

/// The parameters that are scored.
pub const SCORED: [&str; 12] = [
    "page",
    "allocation_unit",
    "open_units",
    "open_units_random",
    "mapping_class",
    "discard",
    "command_overhead",
    "slc_cache",
    "slc_refill",
    "regions",
    "fat_region",
    "idle_collection",
];
/// The noise levels, with their names.
pub const LEVELS: [(&str, Noise); 4] =
    [("none", Noise::NONE), ("low", Noise::LOW), ("middle", Noise::MIDDLE), ("high", Noise::HIGH)];

/// What a random card was built with.
#[derive(Clone, Debug)]
pub struct TrueCard {
    /// Its number.
    pub seed: u64,
    /// The profile as TOML.
    pub profile: String,
    /// Its stated capacity. Unit: bytes.
    pub user_bytes: u64,
    /// Unit: bytes.
    pub page_bytes: u64,
    /// The size of an allocation unit; none on a card that maps by pages. Unit: bytes.
    pub unit_bytes: Option<u64>,
    /// How many units are open; none on a card that maps by pages.
    pub open_units: Option<u64>,
    /// How many of them take writes in any order; none also where logs of a profile decide.
    open_random: Option<u64>,
    mapping_class: &'static str,
    /// Whether a discard frees anything.
    pub discards: bool,
    /// Firmware's time of a read. Unit: microseconds.
    pub read_overhead_us: f64,
    /// The cache of single-bit cells.
    pub slc: Option<TrueSlc>,
    /// Whether it merges while it rests.
    pub merges_idle: bool,
    /// A part that differs; none on the card as it is drawn.
    pub part: Option<TruePart>,
    /// Index in [`LEVELS`].
    pub level: usize,
}

/// How a probe did on one parameter of one card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The true value, or a bound that holds.
    Right,
    /// Another value.
    Wrong,
    /// "Cannot tell".
    Silent,
}

/// Verdicts, by parameter.
pub type Verdicts = BTreeMap<&'static str, (Verdict, Option<Confidence>)>;

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

impl TrueCard {
    /// A card at random.
    pub fn random(seed: u64) -> Self {
        let rng = &mut Rng::new(seed ^ 0x7072_6f62_6500);
        let is_segment = rng.below(10) < 6;
        let page_bytes = pick(rng, &[8 * KIB, 16 * KIB, 16 * KIB, 32 * KIB]);
        let planes = pick(rng, &[1, 1, 2]);
        let dies = if is_segment { 1 } else { pick(rng, &[1, 1, 2]) };
        let sizes = [1024, 1536, 2048, 3072, 4096, 4096, 5120, 6144, 8192, 10240, 12288, 16384, 24576, 32768];
        let unit_bytes = pick(rng, &sizes) * KIB;
        let gigabytes = pick(rng, &[2u64, 4, 8, 16]);
        // The log of trims of a large card needs large blocks.
        let gigabytes = if unit_bytes / page_bytes < 128 { gigabytes.min(4) } else { gigabytes };
        let user_bytes = gigabytes * 1_000_000_000 / (32 * MIB) * (32 * MIB);
        let open = pick(rng, &[1u64, 2, 3, 5, 6, 7, 9, 11, 14, 20, 30]);
        let random_order = rng.below(2) == 0;
        let logs = if random_order { 0 } else { pick(rng, &[0u64, 0, 1, 2]) };
        let blocks = user_bytes / unit_bytes;
        let spare = match is_segment {
            true => (open + logs + 8) as f64 / blocks as f64 + 0.01,
            false => 0.07 + 12.0 / blocks as f64,
        };
        let read_overhead_us = 40.0 + rng.below(400) as f64;
        let write_overhead_us = 100.0 + rng.below(1400) as f64;
        let program = 250 + rng.below(450);
        let program_us = match rng.below(3) {
            0 => format!("[{program}.0]"),
            1 => format!("[{program}.0, {}.0]", program * 3),
            _ => format!("[{program}.0, {program}.0, {}.0]", program * 2),
        };
        let cell = match program_us.matches(',').count() {
            0 => "slc",
            1 => "mlc",
            _ => "tlc",
        };
        let discards = rng.below(5) > 0;
        let cache = if is_segment { 0 } else { pick(rng, &[0u64, 256 * KIB, 512 * KIB, 2 * MIB]) };
        let mapping_unit = if is_segment { pick(rng, &[4 * KIB, 8 * KIB, page_bytes]) } else { 4 * KIB };
        let stripe = page_bytes * planes * dies;
        let bus = pick(rng, &["hs52x4", "hs52", "ddr52", "hs200"]);
        let level = rng.below(LEVELS.len() as u64) as usize;
        // Drawn apart, so that what is above stays the same for a seed.
        let more = &mut Rng::new(seed ^ 0x7072_6f62_6501);
        let bits = program_us.matches(',').count() as u64 + 1;
        let slc = TrueSlc::random(more, unit_bytes, bits, user_bytes).filter(|_| !is_segment);
        let (slc_nand, slc_ftl) = slc.map(|slc| slc.sections(program)).unwrap_or_default();
        let spare = spare + slc.map_or(0.0, |slc| slc.flash_blocks() as f64 / blocks as f64);
        let mut text = format!(
            "name = \"random\"\ndescription = \"random card {seed}\"\nkind = \"emmc\"\n\
             [identity]\nmanufacturer_id = 0xfe\noem_id = 0x0100\nproduct = \"RANDOM\"\next_csd_rev = 7\n\
             [areas]\nuser_bytes = {user_bytes}\nboot_bytes = 1048576\nrpmb_bytes = 131072\n\
             [nand]\ncell = \"{cell}\"\nchannels = 1\ndies = {dies}\nplanes = {planes}\npage_bytes = {page_bytes}\n\
             pages_per_block = {}\nover_provisioning = {spare:.5}\nspare_blocks = 24\nfactory_bad_blocks = 4\n\
             channel_mb_s = {}.0\ncached_program = {}\n\
             [nand.native]\nread_us = {}.0\nprogram_us = {program_us}\nerase_ms = 3.5\nendurance = 3000\n\
             time_spread = 0.05\nendurance_spread = 0.1\n\
             {slc_nand}[ftl]\nmapping = \"{}\"\nunit_bytes = {mapping_unit}\ngc_low_blocks = 4\ntrim_frees = {discards}\n\
             wear = {{ dynamic = true, static_gap = 0 }}\n{slc_ftl}",
            unit_bytes / page_bytes,
            pick(rng, &[50, 133, 200, 400]),
            rng.below(2) == 0,
            40 + rng.below(50),
            if is_segment { "segment" } else { "page" },
        );
        if is_segment {
            let order = if random_order { "random" } else { "linear" };
            let _ = writeln!(text, "segment = {{ open_aus = {open}, order = \"{order}\", random_logs = {logs} }}");
        }
        let _ = write!(
            text,
            "[controller]\nread_overhead_us = {read_overhead_us}\nwrite_overhead_us = {write_overhead_us}\n\
             buffer_bytes = {}\ncache_bytes = {cache}\nbus_max = \"{bus}\"\n",
            (2 * stripe).max(64 * KIB)
        );
        if is_segment && rng.below(3) == 0 {
            let load = 60 + rng.below(150);
            let _ = writeln!(text, "map_load_us = {load}.0\nmap_span_bytes = {unit_bytes}\nmap_spans = 4");
        }
        if is_segment {
            // As on the shipped cards of segments: with it, each durable write ends on a whole word line or merges.
            text.push_str("[registers]\nWR_REL_SET = 0\n");
        }
        Self {
            seed,
            profile: text,
            user_bytes,
            page_bytes,
            unit_bytes: is_segment.then_some(unit_bytes),
            open_units: is_segment.then_some(open),
            open_random: match (is_segment, random_order, logs) {
                (true, true, _) => Some(open),
                (true, false, 0) => Some(0),
                _ => None,
            },
            mapping_class: match (is_segment, random_order, logs) {
                (false, ..) => "random",
                (true, false, 0) => "sequential",
                _ => "semi-sequential",
            },
            discards,
            read_overhead_us,
            slc,
            merges_idle: false,
            part: None,
            level,
        }
    }

    /// Probes some parts of it, or everything that writes if there are none; within a time and an amount of written
    /// bytes if they are given.
    ///
    /// Errors: the profile is wrong, or the card fails: as text.
    pub fn probe(&self, parts: &[Part], within: Option<(Nanos, u64)>) -> Result<Findings, String> {
        match &self.part {
            None => self.probed(self.target()?, parts, within),
            Some(part) => self.probed(TwoCards::new(self, part)?, parts, within),
        }
    }

    fn probed(
        &self,
        target: impl BlockTarget,
        parts: &[Part],
        within: Option<(Nanos, u64)>,
    ) -> Result<Findings, String> {
        let (time, budget_bytes) = within.map_or((None, BUDGET), |(time, bytes)| (Some(time), bytes));
        let mut target = NoisyTarget::new(target, LEVELS[self.level].1, self.seed);
        let (parts, seed, to_bytes) = (parts.to_vec(), self.seed, target.shape().size_bytes);
        let settings = Settings { write: true, from_bytes: 0, to_bytes, budget_bytes, time, parts, seed };
        probe(&mut target, &settings, &mut |_, _| true).map_err(|error| error.to_string())
    }

    /// The same card, which also merges while it rests.
    #[must_use]
    pub fn idling(self) -> Self {
        let profile = self.profile.replace("gc_low_blocks = 4\n", "gc_low_blocks = 4\ngc_high_blocks = 100000\n");
        Self { profile, merges_idle: true, ..self }
    }

    /// The same card with a part that differs.
    #[must_use]
    pub fn uneven(self) -> Self {
        Self { part: Some(TruePart::random(&self)), ..self }
    }

    /// A new one without noise and without content.
    fn target(&self) -> Result<SimTarget, String> {
        self.target_of(&self.profile)
    }

    fn target_of(&self, profile: &str) -> Result<SimTarget, String> {
        let profile = Profile::from_toml(profile).map_err(|error| error.to_string())?;
        let options = DeviceOptions { keep: StoredContent::Nothing, seed: self.seed };
        let card = Card::new(profile, options).map_err(|error| error.to_string())?;
        Ok(SimTarget::new(card.into_parts().0, "random", Instant::START, false))
    }

    /// Compares findings with the truth.
    pub fn verdicts(&self, findings: &Findings) -> Verdicts {
        SCORED.into_iter().filter_map(|name| Some((name, self.verdict(name, findings)?))).collect()
    }

    /// None: the card has no such parameter, and the probe gives none.
    fn verdict(&self, name: &str, findings: &Findings) -> Option<(Verdict, Option<Confidence>)> {
        let found = findings.parameters.get(name)?;
        let is_right = match (name, &found.value) {
            // Each kind of part shows one of the two; the whole card shows that neither is invented.
            ("regions", _) if self.part.as_ref().is_some_and(|part| part.is_for_fat) => return None,
            ("fat_region", _) if self.part.is_some() && !self.has_fat_region() => return None,
            // How long logs for writes out of order last depends on their sizes, so that no number is the true one.
            ("open_units_random", _) if self.open_units.is_some() && self.open_random.is_none() => return None,
            ("allocation_unit" | "idle_collection", None) if self.unit_bytes.is_none() => return None,
            ("slc_cache" | "slc_refill", None) if !self.slc.is_some_and(|slc| slc.shows()) => return None,
            (_, None) => return Some((Verdict::Silent, None)),
            ("page", Some(value)) => *value == Value::Whole(self.page_bytes),
            ("allocation_unit", Some(value)) => value.whole() == self.unit_bytes,
            ("open_units" | "open_units_random", Some(value)) => {
                let truth = if name == "open_units" { self.open_units } else { self.open_random };
                match (found.bound, value.whole()) {
                    (Some(Bound::AtLeast), Some(least)) => truth.is_none_or(|open| open >= least),
                    (_, value) => value == truth,
                }
            }
            ("mapping_class", Some(value)) => *value == Value::Kind(self.mapping_class.into()),
            ("idle_collection", Some(value)) => {
                let truth = if self.merges_idle { "effective" } else { "none" };
                self.open_units.is_some() && *value == Value::Kind(truth.into())
            }
            ("regions", Some(value)) => {
                let differs = self.part.as_ref().is_some_and(|part| !part.is_for_fat);
                *value == Value::Kind(if differs { "differ" } else { "uniform" }.into())
            }
            ("fat_region", Some(Value::Kind(kind))) => self.is_fat_region(kind),
            ("discard", Some(value)) => {
                *value == Value::Kind(if self.discards { "effective" } else { "ignored" }.into())
            }
            ("slc_cache", Some(value)) => value.whole().is_some_and(|size| self.is_slc_size(size)),
            ("slc_refill", Some(Value::Measured(rate))) => self.is_slc_refill(*rate),
            (_, Some(Value::Measured(value))) => (value / (self.read_overhead_us + COMMAND_US) - 1.0).abs() < 0.15,
            _ => false,
        };
        Some((if is_right { Verdict::Right } else { Verdict::Wrong }, found.confidence))
    }
}
