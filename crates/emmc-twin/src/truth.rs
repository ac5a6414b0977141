//! Random virtual cards whose parameters are known: how far fits of their measurements recover them.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{MeasuringHost, Profile};
use emmc_regs::CardKind;
use emmc_units::{Instant, Rng, Size};
use emmc_workload::Unwatched;

use crate::cell::{BURST_KIB, Cell, Column, Figure, Requests, time};
use crate::known::Known;
use crate::measured::Measured;
use crate::parameters::PARAMETERS;
use crate::part::{Firmware, Part};
use crate::result::{ErrorSummary, Twin};
use crate::simulate::{Plan, SimulateError, simulate, small};
use crate::what_if::{Answer, Change, Question, Setup, WhatIfError, Written, what_if};

/// The file of the measurements. Unit: bytes.
const FILE_BYTES: u64 = 100 << 20;
/// Records of the measurements. Unit: KiB.
const RECORDS_KIB: [u64; 7] = [1, 4, 16, 64, 128, 512, 4096];
/// The range of the suite `burst`: more than a log of 500 MiB takes in pages of which a half is data. Unit: bytes.
const BURST_BYTES: u64 = 320 << 20;
/// The range of requests at a depth. Unit: bytes.
const RANGE_BYTES: u64 = 64 << 20;
/// Standard deviation of the logarithm of a measured time.
const NOISE: f64 = 0.02;
/// Depths that are predicted.
pub const DEPTHS: [u16; 2] = [8, 32];
/// The changes of the questions.
pub const CHANGES: [&str; 2] = ["pslc=all", "unpartitioned=20%"];

/// A card that a fit does not see.
#[derive(Clone, Debug)]
pub struct HiddenCard {
    /// Its number.
    pub seed: u64,
    part: Part,
}

/// How a fit did.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Parameters that the fit calls determined.
    pub determined: usize,
    /// Of them, those with their true value outside of the interval.
    pub outside: Vec<&'static str>,
    /// Each parameter.
    pub recovered: Vec<Recovered>,
    /// The kind of firmware of the card, and of the twin.
    pub firmwares: [Firmware; 2],
    /// The median difference of the measured cells from the twin and from the card itself: noise alone. Unit: %.
    pub misfit: [f64; 2],
    /// Errors of the speeds at each depth, random and sequential, reads and writes. Unit: %.
    pub depths: Vec<f64>,
    /// Errors of p50, p90 and p99 of random writes to the full card. Unit: %.
    pub percentiles: Vec<f64>,
    /// Errors of the years to the end of life: as it is, and with each change. Unit: %.
    pub lives: Vec<f64>,
    /// Errors of the years with each change over those without. Unit: %.
    pub gains: Vec<f64>,
    /// Errors of the write amplification, of the same. Unit: %.
    pub amplifications: Vec<f64>,
}

/// A parameter of a hidden card and of its twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// Its name.
    pub name: &'static str,
    /// Of the card.
    pub own: f64,
    /// Of the twin.
    pub value: f64,
    /// The interval.
    pub interval: [f64; 2],
    /// Whether the fit calls it determined.
    pub is_determined: bool,
}

impl Recovered {
    /// The distance of the logarithms in standard deviations, as the interval has them.
    pub fn deviations(&self) -> f64 {
        let [low, high] = self.interval.map(f64::ln);
        (self.value / self.own).ln() / ((high - low) / 3.92)
    }
}

impl HiddenCard {
    /// Every value between bounds of cards on the market, uniformly in its logarithm.
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7477_696e);
        let mut draw = |low: f64, high: f64| low * (high / low).powf(rng.unit_f64());
        let values = vec![
            draw(5.5, 12.0),   // bus
            draw(60.0, 250.0), // read_overhead
            draw(80.0, 600.0), // write_overhead
            draw(14.0, 45.0),  // program
            draw(60.0, 600.0), // small_write_overhead
            draw(4.0, 13.0),   // log_program
            draw(5.0, 80.0),   // small_write_missing
            draw(5.0, 80.0),   // missing
            1.0,               // commit: none on an eMMC
            draw(96.0, 400.0), // merge_unit
            draw(2.0, 60.0),   // debt
            draw(30.0, 100.0), // sense
            draw(16.0, 128.0), // read_ahead
            draw(1.5, 6.0),    // channel
            draw(1.0, 20.0),   // read_missing
            draw(15.0, 60.0),  // host_read
            draw(20.0, 90.0),  // host_write
            draw(0.05, 0.4),   // host_mapping
            draw(20.0, 500.0), // log
            draw(5.0, 25.0),   // over_provisioning
        ];
        let mut flip = || rng.unit_f64() < 0.5;
        let firmware = Firmware {
            threshold_kib: if flip() { 8 } else { 64 },
            read_ahead_always: flip(),
            page_kib: if flip() { 16 } else { 8 },
            ..Firmware::FIRST
        };
        let part = Part { kind: CardKind::Emmc, firmware, values, known: Known::default() };
        Self { seed, part: part.knowing(&Self::registers()) }
    }

    /// What its registers say, it has a command queue, and its host's own times, which `lab calibrate` measures.
    pub fn known(&self) -> Known {
        Known { host: self.host(), ..Self::registers() }
    }

    fn registers() -> Known {
        Known { queue_depth: Some(32), ..Known::default() }
    }

    fn host(&self) -> Option<MeasuringHost> {
        self.part.profile().ok()?.host
    }

    fn requests(is_aged: bool, is_write: bool, is_random: bool, depth: u16) -> Requests {
        Requests { is_aged, is_write, is_random, depth, figure: Figure::Rate }
    }

    /// What is measured: a table of iozone, the rate of random writes to the full card, and a burst of them.
    fn wanted() -> Measured {
        let cell = |column, kib| Cell { column, kib, us: 1.0 };
        let table = RECORDS_KIB.into_iter().flat_map(|kib| Column::IOZONE.map(|column| cell(column, kib)));
        let full = cell(Column::Requests(Self::requests(true, true, true, 1)), 4);
        Measured {
            cells: table.chain([full, Cell::burst(BURST_BYTES as f64)]).collect(),
            file_bytes: FILE_BYTES,
            range_bytes: RANGE_BYTES,
            burst_bytes: BURST_BYTES,
            ..Measured::default()
        }
    }

    /// What is predicted: requests at depths, percentiles.
    fn predicted() -> Measured {
        let cell = |requests| Cell { column: Column::Requests(requests), kib: 4, us: 1.0 };
        let at_depth = |depth| {
            [(true, true), (false, true), (true, false), (false, false)]
                .map(|(is_write, is_random)| cell(Self::requests(false, is_write, is_random, depth)))
        };
        let figures = [Figure::P50, Figure::P90, Figure::P99]
            .map(|figure| cell(Requests { figure, ..Self::requests(true, true, true, 1) }));
        let cells = DEPTHS.into_iter().flat_map(at_depth).chain(figures).collect();
        Measured { cells, range_bytes: RANGE_BYTES, ..Measured::default() }
    }

    /// Its measurements, with noise.
    ///
    /// Errors: the simulator's.
    pub fn measured(&self) -> Result<Measured, SimulateError> {
        let mut measured = Self::wanted();
        let profile = self.part.profile().map_err(|error| SimulateError::Card(error.to_string()))?;
        let simulated = simulate(&profile, &Plan { measured: measured.clone(), is_search: false })?;
        let mut rng = Rng::new(self.seed ^ 0x6e6f_6973);
        for cell in &mut measured.cells {
            // A sum of twelve is as good as a normal distribution here.
            let normal = (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0;
            cell.us = time(&simulated, cell.column, cell.kib).unwrap_or(cell.us) * (NOISE * normal).exp();
        }
        // As the suite reports it: a rate that does not fall has no volume.
        let all = Cell::burst(BURST_BYTES as f64).us;
        let falls = time(&simulated, Column::Burst, BURST_KIB).is_some_and(|us| us > all);
        measured.cells.retain(|cell| cell.column != Column::Burst || falls);
        Ok(measured)
    }

    /// How a fit of its measurements did.
    ///
    /// Errors: the simulator's; a question that a card refuses.
    pub fn verdict(&self, profile: &Profile, twin: &Twin) -> Result<Verdict, String> {
        let own = self.part.profile().map_err(|error| error.to_string())?;
        let true_value = |name: &str| {
            let place = PARAMETERS.iter().position(|parameter| parameter.name == name);
            place.map_or(f64::NAN, |place| self.part.values[place])
        };
        let determined: Vec<_> = twin.parameters.iter().filter(|found| found.is_determined).collect();
        let is_outside = |found: &&&crate::result::ParameterFound| {
            let value = true_value(found.name);
            value < found.low || value > found.high
        };
        let recovered = twin.parameters.iter().map(|found| Recovered {
            name: found.name,
            own: true_value(found.name),
            value: found.value,
            interval: [found.low, found.high],
            is_determined: found.is_determined,
        });
        let recovered = recovered.collect();
        let own_cells = simulate(&own, &Plan { measured: Self::wanted(), is_search: false });
        let own_cells = own_cells.map_err(|error| error.to_string())?;
        let own_cells =
            crate::result::side_by_side(&self.measured().map_err(|error| error.to_string())?.cells, &own_cells);
        let own_error = ErrorSummary::of_cells(&own_cells).map_or(0.0, |found| found.median);
        let outside = determined.iter().filter(is_outside).map(|found| found.name).collect();
        let plan = Plan { measured: Self::predicted(), is_search: false };
        let cells = |profile: &Profile| simulate(profile, &plan).map_err(|error| error.to_string());
        let (mine, theirs) = (cells(profile)?, cells(&own)?);
        let error = |cell: &Cell| {
            let [twin, own] = [&mine, &theirs].map(|cells| time(cells, cell.column, cell.kib));
            Some((own? / twin? - 1.0) * 100.0)
        };
        let (aged, new): (Vec<Cell>, Vec<Cell>) = plan
            .measured
            .cells
            .iter()
            .copied()
            .partition(|cell| matches!(cell.column, Column::Requests(requests) if requests.is_aged));
        let (mine, theirs) = (lives(profile)?, lives(&own)?);
        let differences = |of: &dyn Fn(&[Life]) -> Vec<f64>| -> Vec<f64> {
            of(&mine).iter().zip(of(&theirs)).map(|(twin, own)| (twin / own - 1.0) * 100.0).collect()
        };
        let years = |lives: &[Life]| lives.iter().map(|life| life.years).collect::<Vec<f64>>();
        let gains = |lives: &[Life]| lives.iter().skip(1).map(|life| life.years / lives[0].years).collect();
        Ok(Verdict {
            determined: determined.len(),
            outside,
            recovered,
            firmwares: [self.part.firmware, twin.firmware],
            misfit: [twin.error.median, own_error],
            depths: new.iter().filter_map(error).collect(),
            percentiles: aged.iter().filter_map(error).collect(),
            lives: differences(&years),
            gains: differences(&gains),
            amplifications: differences(&|lives| lives.iter().map(|life| life.amplification).collect()),
        })
    }
}

/// A life under random writes.
struct Life {
    years: f64,
    amplification: f64,
}

/// As it is, and with each change. Endurance is the template's, so that only amplification and the log differ.
fn lives(profile: &Profile) -> Result<Vec<Life>, String> {
    let written = Written::Rate { bytes_per_day: 1e9, random_share: 1.0, block_bytes: 4096, data: Size::Percent(40) };
    let question = Question { written, today: Setup { flush_s: None, ..Setup::default() }, seed: 1 };
    let changes: Result<Vec<Change>, _> = CHANGES.iter().map(|change| Change::parse(change)).collect();
    let changes = changes.map_err(|error| error.to_string())?;
    let mut profile = small(profile);
    // The registers say it, and nothing that is measured does.
    let bits = u64::from(profile.nand.cell.bits());
    profile.areas.enhanced_groups_max =
        (profile.areas.user_bytes / u64::from(profile.areas.wp_group_bytes) / bits) as u32;
    let card = || {
        let options = DeviceOptions { keep: StoredContent::Nothing, seed: 1 };
        let card = Card::new(profile.clone(), options).map_err(|error| error.to_string())?;
        Ok((card, Instant::START))
    };
    let answers =
        what_if(&card, &question, &changes, &mut Unwatched).map_err(|error: WhatIfError| error.to_string())?;
    let life = |answer: &Answer| {
        let years = answer.years_to_end_of_life.ok_or("no end of life")?;
        Ok(Life { years, amplification: answer.write_amplification })
    };
    answers.answers.iter().map(life).collect()
}
