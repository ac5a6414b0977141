//! The last sections of a recording's report: counts, devices, processors, the stages of btt, threads, damage.

use emmc_trace::result::Analysis;

use super::trace::{counted, size, us};
use crate::{Document, KeyValue, Tone};

/// How busy each processor was, and which requests it had.
fn processors(analysis: &Analysis) -> Vec<KeyValue> {
    let count = analysis.processors.iter().map(|row| row.cpu).chain(analysis.cpus.iter().map(|row| row.cpu)).max();
    let row = |cpu: usize| {
        let busy = analysis.processors.iter().find(|row| row.cpu == cpu);
        let of = analysis.cpus.iter().find(|row| row.cpu == cpu);
        if busy.is_none() && of.is_none() {
            return None;
        }
        let value = KeyValue::new(
            format!("processor {cpu}"),
            busy.map_or("-".into(), |busy| format!("{:.1} % busy", busy.busy_percent)),
        );
        let interrupts = |count: u64| if count > 0 { format!(", {count} interrupts") } else { String::new() };
        Some(match of {
            Some(of) => {
                value.note(format!("{} issued, {} completed{}", of.issued, of.completed, interrupts(of.interrupts)))
            }
            None => value,
        })
    };
    (0..=count.unwrap_or(0)).filter_map(row).collect()
}

/// Counts, devices, threads: detail.
pub(super) fn counts(analysis: &Analysis, document: &mut Document) {
    let mut rows = vec![
        KeyValue::new("bios", analysis.bios.to_string())
            .note(format!("{} merged, {} split, {} requeues", analysis.merges, analysis.splits, analysis.requeues)),
    ];
    if let Some(commands) = &analysis.commands {
        rows.push(KeyValue::new("MMC commands", commands.count.to_string()).note(format!(
            "{} CMD13, {} queued tasks, {} errors; busy for {:.3} ms",
            commands.polls, commands.queued_tasks, commands.errors, commands.busy_ms
        )));
    }
    for device in &analysis.devices {
        rows.push(KeyValue::new(format!("device {}", device.device), format!("{} requests", device.requests)).note(
            format!("busy {:.1} %, depth {:.1}, at most {}", device.busy_percent, device.depth_mean, device.depth_max),
        ));
        let gaps = format!("{:.3} ms in all, the longest {:.3} ms", device.idle_ms, device.idle_longest_ms);
        rows.push(KeyValue::new("idle gaps", device.idle_gaps.to_string()).note(gaps));
    }
    rows.extend(processors(analysis));
    for row in &analysis.command_rows {
        let op = if row.write { "write" } else { "read" };
        let name = format!("{op} of {}", size(u64::from(row.blocks) * 512));
        rows.push(KeyValue::new(name, format!("{} us", us(row.mean_us))).note(counted(row.count, "command")));
    }
    for stage in &analysis.stages {
        let note = format!("{:.9} to {:.9} s, {} of them", stage.min_s, stage.max_s, stage.count);
        rows.push(KeyValue::new(stage.name, format!("{:.9} s", stage.mean_s)).note(note));
    }
    document.section("counts", "Counts, and the stages of btt").push(rows);
    let waiters: Vec<KeyValue> = analysis
        .waiters
        .iter()
        .map(|waiter| {
            let name = waiter.name.clone().unwrap_or_else(|| "?".into());
            let moved = format!("{} written, {} read", size(waiter.written_bytes), size(waiter.read_bytes));
            let note = format!("{} requests, {moved}", waiter.requests);
            KeyValue::new(format!("{name} {}", waiter.pid), format!("{:.3} ms", waiter.waited_ms)).note(note)
        })
        .collect();
    if !waiters.is_empty() {
        document.section("waiters", "Time of requests by thread").push(waiters);
    }
    if !analysis.damage.is_empty() {
        let section = document.section("damage", "Damage");
        for damage in &analysis.damage {
            section.note(Tone::Warn, damage.clone());
        }
    }
}
