//! The results of a run on a virtual card.

use emmc_card::condition::Condition;
use emmc_units::Bytes;
use emmc_workload::Latency;
use emmc_workload::job::{Ended, PhaseResult, RunResult};

use super::{charts, count, duration, micros};
use crate::{Align, Cell, Document, KeyValue, Table, Tone};

/// The report of a run and of the card after it; `wall_s` is how long the simulation took.
pub fn sim_run(result: &RunResult, card: &Condition, wall_s: f64) -> Document {
    let mut document = Document::new(format!("Run on virtual card {}", card.profile));
    summary(result, wall_s, &mut document);
    phases(&result.phases, &mut document);
    latency(result, &mut document);
    let section = document.section("speed", "Over time");
    section.push(charts::speed(&result.series));
    if let Some(chart) = charts::amplification(&result.series) {
        section.push(chart);
    }
    layer(card, &mut document);
    let section = document.section("wear", "Wear");
    let registers = &card.registers;
    section.push(super::health(&card.health, [registers.life_time_a, registers.life_time_b, registers.pre_eol_info]));
    section.push(charts::wear(&card.wear.histogram));
    document.section("blocks", "Block map").push(charts::blocks(&card.block_map));
    document
}

fn summary(result: &RunResult, wall_s: f64, document: &mut Document) {
    let work = &result.work;
    let section = document.section("summary", "Summary");
    let amplification = work.write_amplification.map_or("nothing was written".into(), |wa| format!("{wa:.3}"));
    let unit = Bytes(u64::from(result.unit_bytes));
    let speed = if wall_s > 0.0 { work.host_requests as f64 / wall_s } else { 0.0 };
    section.push(vec![
        KeyValue::new("host wrote", Bytes(work.host_written_bytes).rounded())
            .note(format!("{} units of {unit}", count(work.host_writes))),
        KeyValue::new("host read", Bytes(work.host_read_bytes).rounded()),
        KeyValue::new("host trimmed", Bytes(work.host_trimmed_bytes).rounded()),
        KeyValue::new("flash programmed", format!("{} units", count(work.nand_programs))),
        KeyValue::new("flash erased", format!("{} blocks", count(work.erases))),
        KeyValue::new("write amplification", amplification),
        KeyValue::new("simulated time", duration(work.simulated_s)),
        KeyValue::new("real time", duration(wall_s)).note(format!("{} requests/s", count(speed as u64))),
    ]);
    match result.ended {
        Ended::Done => {}
        Ended::WornOut => {
            section
                .note(Tone::Bad, "The card wore out during the run: no spare block is left and it is now read-only.");
        }
        Ended::Stopped => {
            section.note(Tone::Warn, "The run was interrupted.");
        }
    }
    if result.read_errors > 0 {
        section.note(Tone::Bad, format!("{} reads could not be corrected.", count(result.read_errors)));
    }
}

fn phases(phases: &[PhaseResult], document: &mut Document) {
    let right = Align::Right;
    let mut table = Table::new([
        ("phase", Align::Left),
        ("requests", right),
        ("written", right),
        ("read", right),
        ("time", right),
        ("MB/s", right),
        ("requests/s", right),
        ("WA", right),
        ("stalls", right),
    ]);
    for (number, phase) in (1..).zip(phases) {
        let work = &phase.work;
        table.row([
            Cell::from(format!("{number} {}", phase.kind)),
            Cell::from(count(work.host_requests)),
            Cell::from(Bytes(work.host_written_bytes).rounded()),
            Cell::from(Bytes(work.host_read_bytes).rounded()),
            Cell::from(duration(work.simulated_s)),
            Cell::from(format!("{:.2}", work.mb_per_s)),
            Cell::from(format!("{:.0}", work.requests_per_s)),
            Cell::from(work.write_amplification.map_or(String::new(), |wa| format!("{wa:.3}"))),
            Cell::from(count(work.stalls)),
        ]);
    }
    let caption = "Speeds are of simulated time. A stall is a request that waited for the card to make room";
    document.section("phases", "Phases").push(table.caption(caption));
}

fn latency(result: &RunResult, document: &mut Document) {
    let right = Align::Right;
    let mut table = Table::new([
        ("requests", Align::Left),
        ("count", right),
        ("p50 us", right),
        ("99 % within", right),
        ("99.9 % within", right),
        ("longest", right),
    ]);
    let latency = &result.work.latency_us;
    let mut row = |name: &str, percentiles: &Latency| {
        let cells = [percentiles.p50, percentiles.p99, percentiles.p999, percentiles.max].map(micros);
        let cells = [name.to_owned(), count(percentiles.count)].into_iter().chain(cells);
        table.row(cells.map(Cell::from));
    };
    row("all", &latency.all);
    let kinds =
        [("writes", &latency.write), ("reads", &latency.read), ("trims", &latency.trim), ("flushes", &latency.flush)];
    for (name, percentiles) in kinds {
        if let Some(percentiles) = percentiles {
            row(name, percentiles);
        }
    }
    let section = document.section("latency", "Latency");
    section.push(table);
    if let Some(chart) = charts::latency(&result.phases) {
        section.push(chart);
    }
}

fn layer(card: &Condition, document: &mut Document) {
    document.section("layer", "Translation layer").push(super::internals::layer(&card.ftl, &card.nand));
}
