//! The form of cards that map whole allocation units: their parameters, their start from flashbench -O, the profile.

use emmc_card::profile::{Profile, ProfileError};
use emmc_regs::CardKind;
use serde::Serialize;

use crate::cell::{Cell, Column, time};
use crate::known::Known;
use crate::least_squares::Reach;
use crate::part::{Firmware, Parameter, Part, parameter, set_clock};

/// How a card maps allocation units: tried, not searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// Units that are written in turn without a merge.
    pub open_units: u32,
    /// A unit of the card. Unit: KiB.
    pub unit_kib: u32,
    /// Logs for writes out of order, shared by the units.
    pub random_logs: u32,
    /// The buffer for data of the host. Unit: KiB.
    pub buffer_kib: u32,
    /// A page is sent while another one is programmed.
    pub cached_program: bool,
}

/// Indices of [`PARAMETERS`].
mod index {
    pub(super) const BUS: usize = 0;
    pub(super) const WRITE: usize = 1;
    pub(super) const PROGRAM: usize = 2;
    pub(super) const SENSE: usize = 3;
    pub(super) const CHANNEL: usize = 4;
    pub(super) const READ: usize = 5;
}

/// The same for every card of this form.
pub(crate) const PARAMETERS: [Parameter; 6] = [
    parameter("bus", "us/KiB", "data on the bus", (4.0, 200.0, 0.02), Reach::All),
    parameter(
        "write_overhead",
        "us",
        "time of a write beside its data, the host's included",
        (1.0, 50_000.0, 0.03),
        Reach::Unmarked,
    ),
    parameter("program", "us/KiB", "program of a page", (1.0, 1000.0, 0.02), Reach::Unmarked),
    parameter("sense", "us", "tR", (2.0, 900.0, 0.1), Reach::All),
    parameter("channel", "us/KiB", "a page over the channel", (0.5, 150.0, 0.05), Reach::All),
    parameter(
        "read_overhead",
        "us",
        "time of a read beside its data, the host's included",
        (1.0, 20_000.0, 0.03),
        Reach::Marked,
    ),
];

/// Pages of the flash, all planes together. Unit: KiB.
const PAGES_KIB: [u32; 4] = [32, 16, 8, 4];
/// Of the next smaller unit's rate: below it each write merges.
const COLLAPSE: f64 = 3.0;
/// Blocks whose rates show whether units are open: smaller than a unit by this. Unit: KiB.
const LARGEST_KIB: u64 = 512;

/// Cells of one number of units, by block.
fn of_units(cells: &[Cell], wanted: u16) -> impl Iterator<Item = &Cell> {
    cells
        .iter()
        .filter(move |cell| matches!(cell.column, Column::OpenUnits { units, is_random: false } if units == wanted))
}

/// Numbers of units, ascending.
fn counts(cells: &[Cell]) -> Vec<u16> {
    let count = |cell: &Cell| match cell.column {
        Column::OpenUnits { units, is_random: false } => Some(units),
        _ => None,
    };
    let mut counts: Vec<u16> = cells.iter().filter_map(count).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The numbers of open units that the rates leave possible: above the last number that keeps its rates, below the first
/// that does not. Empty if no number falls.
fn open_units(cells: &[Cell]) -> Vec<u32> {
    let smallest =
        |units: u16| of_units(cells, units).filter(|cell| cell.kib <= LARGEST_KIB).map(|cell| cell.kib).min();
    let slowest = |units: u16| {
        let smallest = smallest(units)?;
        of_units(cells, units).find(|cell| cell.kib == smallest).copied()
    };
    let counts = counts(cells);
    let falls = |units: u16| {
        let Some(cell) = slowest(units) else { return false };
        let best = counts.iter().filter(|other| **other < units);
        let best =
            best.filter_map(|other| time(cells, Column::OpenUnits { units: *other, is_random: false }, cell.kib));
        best.fold(f64::INFINITY, f64::min) * COLLAPSE < cell.us
    };
    let Some(first) = counts.iter().copied().find(|units| falls(*units)) else { return Vec::new() };
    let last = counts.iter().copied().filter(|units| *units < first && slowest(*units).is_some()).max().unwrap_or(1);
    (u32::from(last)..u32::from(first)).collect()
}

/// The parts from which a search starts; none if no number of units makes the rates fall.
pub(crate) fn starts(kind: CardKind, cells: &[Cell], unit_bytes: u64) -> Vec<Part> {
    let slowest_pages = open_units(cells);
    let unit_kib = (unit_bytes >> 10) as u32;
    let mut starts = Vec::new();
    for open_units in slowest_pages {
        for page_kib in PAGES_KIB {
            for unit_kib in [unit_kib, unit_kib / 2, unit_kib / 4] {
                for random_logs in [0, 1] {
                    for (buffer_kib, cached_program) in [(page_kib, false), (1024, true)] {
                        let segment = Segment { open_units, unit_kib, random_logs, buffer_kib, cached_program };
                        starts.push(start(kind, cells, page_kib, segment));
                    }
                }
            }
        }
    }
    starts
}

fn start(kind: CardKind, cells: &[Cell], page_kib: u32, segment: Segment) -> Part {
    let fastest = counts(cells).into_iter().flat_map(|units| of_units(cells, units));
    let fastest = fastest.map(|cell| cell.us / cell.kib as f64).fold(f64::INFINITY, f64::min);
    let single = counts(cells).first().copied().unwrap_or(1);
    let shortest = of_units(cells, single).map(|cell| cell.us).fold(f64::INFINITY, f64::min);
    let mut values = vec![0.0; PARAMETERS.len()];
    values[index::BUS] = 0.4 * fastest;
    values[index::WRITE] = (0.3 * shortest).min(2000.0);
    values[index::PROGRAM] = 0.4 * fastest;
    values[index::SENSE] = 60.0;
    values[index::CHANNEL] = 0.1 * fastest;
    values[index::READ] = 150.0;
    for (value, parameter) in values.iter_mut().zip(&PARAMETERS) {
        *value = value.clamp(parameter.low, parameter.high);
    }
    let firmware = Firmware { threshold_kib: 0, page_kib, segment: Some(segment), ..Firmware::FIRST };
    Part { kind, firmware, values, known: Known::default() }
}

/// The profile.
///
/// Errors: values that break a rule of profiles.
pub(crate) fn profile(part: &Part, segment: &Segment) -> Result<Profile, ProfileError> {
    let mut profile = Profile::from_toml(include_str!("../template/segment.toml"))?;
    let value = |index: usize| part.values[index];
    let (nand, controller) = (&mut profile.nand, &mut profile.controller);
    let page_kib = part.firmware.page_kib;
    nand.page_bytes = page_kib << 10;
    nand.pages_per_block = (segment.unit_kib / page_kib).max(1);
    nand.native.read_us = value(index::SENSE);
    // The second page of a word line takes three times as long as the first.
    let program_us = value(index::PROGRAM) * f64::from(page_kib);
    nand.native.program_us = vec![0.5 * program_us, 1.5 * program_us];
    nand.channel_mb_s = 1024.0 / value(index::CHANNEL);
    nand.cached_program = segment.cached_program;
    profile.ftl.unit_bytes = page_kib << 10;
    if let Some(mapping) = &mut profile.ftl.segment {
        mapping.open_aus = segment.open_units;
        mapping.random_logs = segment.random_logs;
    }
    controller.read_overhead_us = value(index::READ);
    controller.write_overhead_us = value(index::WRITE);
    controller.buffer_bytes = segment.buffer_kib << 10;
    profile.host = Some(part.known.host.unwrap_or_default());
    part.known.set_times(&mut profile);
    set_clock(&mut profile.controller, value(index::BUS));
    profile.check()?;
    Ok(profile)
}
