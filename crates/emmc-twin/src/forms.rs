//! The search for a card that maps pages: form by form, each with an ensemble, then the best one to the end.

use emmc_regs::CardKind;
use nalgebra::DMatrix;

use crate::cell;
use crate::ensemble::Ensemble;
use crate::fit::{Fitted, Given, Training, best};
use crate::measured::Measured;
use crate::part::{COMMANDS_KIB, Firmware, PAGES_KIB, Part, plausible};

/// Files of a search are at most this large, so that a simulation is short. Unit: bytes.
const SMALL_FILE_BYTES: u64 = 32 << 20;
/// Simulations from each start: the slopes twice, and some steps.
const FIRST: usize = 60;
/// Simulations from the mean of an ensemble.
const OTHERS: usize = 45;
/// Simulations at the end: steps, slopes and scans of the surroundings.
const LAST: usize = 240;
/// Members for a form. Fewer say little of the slopes of some ten unknowns.
const SOME: usize = 64;
/// The same for reads, which have fewer.
const SOME_OF_READS: usize = 32;
/// Members for the intervals: a correlation that is sampled from this number is wrong by a tenth. Several forms share
/// them, but with fewer than a half each an ensemble scatters too little.
const MANY: usize = 120;
/// Assimilations for a form.
const ROUNDS: u32 = 6;
/// Of them, those after which only the best forms go on.
const FEW_ROUNDS: u32 = 3;
/// How many these are.
const BEST: usize = 3;
/// Assimilations at the end.
const LAST_ROUNDS: u32 = 3;
/// Of them, those before cells of other suites count: an aged card takes long to simulate.
const QUICK_ROUNDS: u32 = 1;

/// Forms that match the cells nearly as well as the best one are searched further beside it: the difference of their
/// costs. Where a search of a form ends is not certain by less.
const RIVAL: f64 = 6.0;
/// Such forms at most, the best one included.
const RIVALS: usize = 3;
/// The ensembles of forms whose costs differ by less than this from the best one's count in the intervals.
const ALIKE: f64 = 2.0;
/// Logs that are tried, as multiples of the best form's. Where folds hardly show, the search does not lead from one to
/// another.
const OTHER_LOGS: [f64; 2] = [0.3, 3.0];
/// An unusual form is chosen if it matches the cells better than a usual one by more than this: the difference of
/// their costs. Unusual are reads of more than was asked for at random reads, commands above 512 KiB, which sdhci does
/// not send, and channels that are slower than the bus.
const UNUSUAL: f64 = 1.0;

/// The cost of a form to choose by.
fn cost(fitted: &Fitted) -> f64 {
    let firmware = &fitted.part.firmware;
    let unusual = [firmware.read_ahead_always, firmware.command_kib > COMMANDS_KIB[0], firmware.channels > 1];
    fitted.minimum.cost + UNUSUAL * f64::from(unusual.map(u8::from).iter().sum::<u8>())
}

/// A form that is tried.
struct Form {
    start: Part,
    file_bytes: u64,
    ensemble: Ensemble,
}

impl Form {
    fn new(training: &Training<'_>, start: Part, members: usize) -> Self {
        let file_bytes = training.measured.file_bytes.min(SMALL_FILE_BYTES);
        let ensemble = Ensemble::drawn(&training.searched(&start), members, ROUNDS);
        Self { start, file_bytes, ensemble }
    }

    /// Nothing if no member has values.
    fn assimilate(&mut self, training: &Training<'_>, count: u32) -> Option<()> {
        let Self { start, file_bytes, ensemble } = self;
        let mut model = |points: &[Vec<f64>]| training.model(start, *file_bytes, points);
        ensemble.assimilate(&training.searched(start), training.observed(), count, &mut model)
    }

    /// Its mean.
    fn mean(&self) -> Part {
        self.start.at(&self.ensemble.mean())
    }

    /// The cells, less what is left out at the mean.
    fn corrected<'a>(&self, training: &Training<'a>) -> Training<'a> {
        training.corrected_at(&self.mean(), self.file_bytes)
    }

    /// The best part near the mean.
    fn improved(&self, training: &Training<'_>, evaluations: usize) -> Fitted {
        training.improve(&self.mean(), self.file_bytes, (evaluations, self.ensemble.slopes().as_ref()))
    }
}

/// Starts of each kind of firmware that the cells leave open, without read-ahead at random reads.
fn starts(kind: CardKind, training: &Training<'_>, with: &Given<'_>) -> Vec<Fitted> {
    let cells = &training.measured.cells;
    // An eMMC of the template has no buffer to commit from.
    let commits: &[bool] = if kind == CardKind::Sd { &[false, true] } else { &[false] };
    let firmwares = plausible(cells).into_iter().filter(|firmware| !firmware.read_ahead_always);
    let of = |firmware: Firmware| {
        let start = |commits: &bool| Part::start(kind, firmware, *commits, (cells, with.known));
        let starts = commits.iter().map(start).map(|start| start.with_log_of(training.measured.file_bytes));
        best(starts.map(|start| training.improve(&start, SMALL_FILE_BYTES, (FIRST, None))))
    };
    firmwares.filter_map(of).collect()
}

/// The best way to read for each size of a page. Reads are quick to simulate, and depend on the page alone.
fn ways_to_read(part: &Part, training: &Training<'_>) -> Vec<Part> {
    let pages = PAGES_KIB.map(|kib| part.clone().with_pages(kib));
    let Some(reads) = training.reads() else { return pages.into() };
    let best_of_page = |page: Part| {
        let ways = [page.clone(), page.reading_ahead_always()].into_iter();
        best(ways.filter_map(|start| read_as(start, &reads))).map(|found| found.part)
    };
    pages.into_iter().filter_map(best_of_page).collect()
}

/// The best part near a start for reads alone.
fn read_as(start: Part, reads: &Training<'_>) -> Option<Fitted> {
    let mut form = Form::new(reads, start, SOME_OF_READS);
    form.assimilate(reads, ROUNDS)?;
    Some(form.improved(reads, OTHERS))
}

/// The best forms, each improved, the best one first.
fn best_forms(starts: impl Iterator<Item = Part>, training: &Training<'_>) -> Vec<(Fitted, Form)> {
    let mut forms: Vec<Form> = starts.map(|start| Form::new(training, start, SOME)).collect();
    forms.retain_mut(|form| form.assimilate(training, FEW_ROUNDS).is_some());
    let cost = |form: &Form| form.ensemble.cost(training.observed());
    forms.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    forms.truncate(BEST);
    forms.retain_mut(|form| form.assimilate(&form.corrected(training), ROUNDS - FEW_ROUNDS).is_some());
    let improved = |form: Form| (form.improved(&form.corrected(training), OTHERS), form);
    let mut improved: Vec<_> = forms.into_iter().map(improved).collect();
    improved.sort_by(|a, b| a.0.minimum.cost.total_cmp(&b.0.minimum.cost));
    improved
}

/// The forms that match the cells nearly as well as the best one, itself first: `found`, and what differs from the
/// first of them in its firmware, in its way to read, or in what bounds its reads.
fn rivals(
    found: Vec<(Fitted, Form)>,
    (firmwares, reading): (&[Firmware], &[Part]),
    training: &Training<'_>,
) -> Option<(Vec<Part>, Ensemble)> {
    let mut rivals: Vec<Fitted> = found.iter().map(|(fitted, _)| fitted.clone()).collect();
    let (mut first, Form { file_bytes, ensemble, .. }) = found.into_iter().next()?;
    let improved = |part: Part, slopes: &DMatrix<f64>| {
        training.corrected_at(&part, file_bytes).improve(&part, file_bytes, (OTHERS, Some(slopes)))
    };
    // What the host sends at once comes first: all others have that.
    let shows_commands = cell::records(&training.measured.cells).iter().any(|kib| *kib > u64::from(COMMANDS_KIB[0]));
    if shows_commands && first.part.known.host.is_none() {
        let other = COMMANDS_KIB.iter().find(|kib| **kib != first.part.firmware.command_kib);
        let other = other.map(|kib| improved(first.part.clone().with_commands(*kib), &first.minimum.jacobian));
        rivals.extend(other.clone());
        first = [first].into_iter().chain(other).min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    }
    // Steps, as an ensemble is drawn from the priors and would not begin there.
    let otherwise = training.reads().map(|reads| {
        let start = first.part.clone().bound_otherwise();
        first.part.reading_as(&reads.improve(&start, SMALL_FILE_BYTES, (FIRST, None)).part)
    });
    let channels = training.reads().and_then(|reads| {
        let starts = PAGES_KIB.map(|kib| first.part.clone().with_pages(kib).with_slow_channels());
        let found = best(starts.map(|start| reads.improve(&start, SMALL_FILE_BYTES, (FIRST, None))))?;
        Some(first.part.reading_as(&found.part))
    });
    // An ensemble of another size of a page may have lost its way: once more from where the best one is.
    let other_pages = reading.iter().filter(|reading| reading.firmware.page_kib != first.part.firmware.page_kib);
    let others = first.part.other_firmwares(firmwares).into_iter().chain(otherwise);
    let others = others.chain(other_pages.map(|reading| first.part.reading_as(reading)));
    let others = others.chain(channels).chain(OTHER_LOGS.map(|times| first.part.clone().with_log_times(times)));
    rivals.extend(others.map(|part| improved(part, &first.minimum.jacobian)));
    rivals.sort_by(|a, b| a.minimum.cost.total_cmp(&b.minimum.cost));
    let least = rivals[0].minimum.cost;
    let alike = rivals.into_iter().take_while(|rival| rival.minimum.cost < least + RIVAL).take(RIVALS);
    Some((alike.map(|rival| rival.part).collect(), ensemble))
}

/// The best card that maps pages and has a log.
pub(crate) fn search_pages(kind: CardKind, measured: &Measured, with: &Given<'_>) -> Option<Fitted> {
    let training = Training::new(measured.quick(), with);
    let starts = starts(kind, &training, with);
    let reading = ways_to_read(&best(starts.clone())?.part, &training);
    let firmwares: Vec<Firmware> = starts.iter().map(|start| start.part.firmware).collect();
    let forms = starts.iter().flat_map(|start| reading.iter().map(|reading| start.part.reading_as(reading)));
    let (parts, ensemble) = rivals(best_forms(forms, &training), (&firmwares, &reading), &training)?;
    // Cells of other suites decide only now.
    let whole = Training::new(measured.clone(), with).scaled_at(parts.first()?);
    let count = parts.len();
    let file_bytes = measured.file_bytes.min(SMALL_FILE_BYTES);
    let searched = parts.into_iter().filter_map(|part| {
        let ensemble = ensemble.around(&whole.searched(&part), MANY / count.min(2), LAST_ROUNDS)?;
        let mut last = Form { start: part, file_bytes, ensemble };
        last.assimilate(&training.corrected_at(&last.start, last.file_bytes), QUICK_ROUNDS)?;
        last.assimilate(&last.corrected(&whole), LAST_ROUNDS - QUICK_ROUNDS)?;
        Some((last.improved(&last.corrected(&whole), LAST / 2 / count), last.ensemble))
    });
    let searched: Vec<(Fitted, Ensemble)> = searched.collect();
    let found = searched.iter().map(|(fitted, _)| fitted).min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let is_alike = |fitted: &Fitted| fitted.minimum.cost < found.minimum.cost + ALIKE;
    let alike: Vec<_> = searched.iter().filter(|(one, _)| is_alike(one)).map(|(_, ensemble)| ensemble).collect();
    // It matches better than where this step began: the scale is smaller.
    let whole = Training::new(measured.clone(), with).scaled_at(&found.part);
    // One of them goes on, so it has as many simulations as all had together.
    let further = |from: &Fitted| {
        let corrected = whole.corrected_at(&from.part, file_bytes);
        corrected.improve(&from.part, file_bytes, (LAST / 4, Some(&from.minimum.jacobian)))
    };
    let found = further(&further(found));
    let at: Vec<f64> = found.part.values.iter().map(|value| value.ln()).collect();
    let scatter = Ensemble::scatter(&alike, &at);
    Some(Fitted { scatter: Some(scatter), ..found })
}
