//! A run of the lab as a document.

use emmc_lab::account::Phase;
use emmc_report::{Align, Document, KeyValue, Table};

use super::run::LabRun;
use super::sweep::sides;

/// What the script printed, the requests by phase, and what became of the flash.
pub(super) fn run(run: &LabRun) -> Document {
    let mut document = Document::new(format!("{} on {}", run.script, run.card));
    let section = document.section("script", "Script");
    if !run.output.trim().is_empty() {
        section.code("", run.output.trim_end());
    }
    let mut lines = vec![
        KeyValue::new("exit status", run.status.to_string()),
        KeyValue::new("simulated", format!("{:.6} s", run.simulated_s)),
    ];
    if let Some(kernel) = &run.kernel {
        lines.push(KeyValue::new("kernel", kernel.as_str()));
    }
    if let Some(lost) = run.trace_lost.filter(|lost| *lost > 0) {
        lines.push(KeyValue::new("trace", format!("{lost} events did not fit")));
    }
    lines.push(KeyValue::new("accesses", run.accesses.digest.as_str()));
    section.push(lines);
    if !run.figures.is_empty() {
        let lines: Vec<KeyValue> =
            run.figures.iter().map(|figure| KeyValue::new(figure.name.as_str(), figure.value.to_string())).collect();
        document.section("figures", "Figures of the script").push(lines);
    }
    for result in &run.fio {
        document.section("fio", format!("fio: {}", result.file)).push(fio(&result.result));
    }
    document.section("requests", "Requests as the card saw them").push(requests(&run.phases));
    let section = document.section("card", "Card");
    let wear = &run.wear;
    let mut lines = vec![
        KeyValue::new(
            "erases of a block, mean",
            format!("{:.2} -> {:.2}", wear.before.erases_mean, wear.after.erases_mean),
        ),
        KeyValue::new("erases of a block, most", format!("{} -> {}", wear.before.erases_max, wear.after.erases_max)),
    ];
    if let Some(factor) = wear.write_amplification {
        lines.push(KeyValue::new("write amplification", format!("{factor:.2}")));
    }
    for change in &run.registers {
        let value = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
        let changed = format!("{} -> {}", value(&change.value_a), value(&change.value_b));
        lines.push(KeyValue::new(change.name.to_string(), changed));
    }
    section.push(lines);
    document
}

/// The jobs of a result of fio that did anything.
fn fio(result: &serde_json::Value) -> Table {
    let right = ["IOPS", "MB/s", "mean us", "p99 us"].map(|title| (title, Align::Right));
    let mut table = Table::new([("job", Align::Left), ("", Align::Left)].into_iter().chain(right));
    for side in sides(result) {
        table.row([
            side.job,
            side.kind.to_owned(),
            format!("{:.0}", side.iops),
            format!("{:.2}", side.mb_s),
            format!("{:.1}", side.mean_us),
            format!("{:.1}", side.p99_us),
        ]);
    }
    table
}

fn requests(phases: &[Phase]) -> Table {
    let right = ["requests", "MB", "mean us", "p50 us", "p99 us", "max us", "wait us", "bus us", "busy us"]
        .map(|title| (title, Align::Right));
    let mut table = Table::new([("phase", Align::Left), ("kind", Align::Left)].into_iter().chain(right));
    let us = |us: f64| format!("{us:.1}");
    for phase in phases {
        for kind in &phase.requests {
            table.row([
                phase.name.clone(),
                kind.kind.to_owned(),
                kind.requests.to_string(),
                format!("{:.1}", kind.bytes as f64 / 1e6),
                us(kind.latency_us.mean),
                us(kind.latency_us.p50),
                us(kind.latency_us.p99),
                us(kind.latency_us.max),
                us(kind.answered_us.mean),
                us(kind.bus_us.mean),
                us(kind.busy_us.mean),
            ]);
        }
    }
    table.caption("wait: until the command that moves the data was answered; bus, busy: what came after; means")
}
