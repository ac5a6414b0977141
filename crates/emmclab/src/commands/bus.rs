//! `bus`: whether the bus of a card is free of errors at its clock, and which lower clock is.
//!
//! Reads only. Sets the controller's clock with `--lower` and `--clock`, and sets it back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use emmc_analysis::bus::{BusReport, Shown, bus_report, shows_errors};
use emmc_linux::LiveLink;
use emmc_linux::block_io::{self, Opening};
use emmc_port::{BusLink, Host};
use emmc_probe::bus::{Stress, StressError, stress};
use emmc_units::Nanos;

use super::trim::Place;
use crate::CommandResult;
use crate::cli::BusArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.bus/1";

/// The parts of the clock in use that `--lower` tries. Unit: 1/4.
const QUARTERS: [u64; 3] = [3, 2, 1];

pub(crate) fn run(args: &BusArgs, output: &mut Output) -> CommandResult {
    let place = Place::of(args.place.as_deref(), None)?;
    let (disk, node) = (&place.disk, format!("/dev/{}", place.disk));
    let mut link = LiveLink::open(disk)?;
    let host = link.host().map_err(|error| anyhow::anyhow!("{disk}: {error}"))?;
    let lower_hz = match (&args.clock[..], args.lower) {
        ([], false) => Vec::new(),
        ([], true) => lower(&host, disk)?,
        (clocks, _) => clocks.to_vec(),
    };
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let mut target = block_io::open(Path::new(&node), &node, &Opening::plain(false, &stop))?;
    let names: Vec<String> = std::iter::once(disk.clone()).chain(emmc_linux::host_of(disk, None)).collect();
    let plan = Stress { time: Nanos(args.time.as_nanos() as u64), lower_hz, seed: args.seed };
    let found = stress(&mut target, &mut link, &plan, |round| shows_errors(round, &names), &stop);
    let found = match found {
        Ok(found) => found,
        Err(StressError::Stopped) => bail!("{disk}: stopped by a signal"),
        Err(StressError::Link(error)) => bail!("{disk}: {error}"),
        Err(StressError::Target(error)) => return Err(error.into()),
    };
    let report = bus_report(disk, &found.rounds, &names, &host, found.unset);
    output.print(SCHEMA, &report, |report: &BusReport| emmc_report::present::bus(report))?;
    Ok(match report.shown {
        Shown::Clean => Exit::Good,
        Shown::Errors => Exit::Findings,
        Shown::CannotTell => Exit::Unknown,
    })
}

fn lower(host: &Host, disk: &str) -> anyhow::Result<Vec<u64>> {
    let Some(bus) = host.bus() else {
        bail!("{disk}: --lower: debugfs does not say the clock in use; --clock names some")
    };
    Ok(QUARTERS.map(|quarters| bus.clock_hz / 4 * quarters).to_vec())
}
