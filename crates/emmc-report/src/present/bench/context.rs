//! The system on which a bench ran, and doubts about its result.

use emmc_units::Bytes;
use emmc_workload::Doubt;
use emmc_workload::context::{CardFacts, Context, Life};

use crate::{Document, KeyValue, Tone};

/// Doubts about the result.
pub(super) fn doubts(doubts: &[Doubt], document: &mut Document) {
    if doubts.is_empty() {
        return;
    }
    let section = document.section("doubts", "Doubts about the result");
    for doubt in doubts {
        let tone = match doubt.code.as_str() {
            "faster_than_bus" | "page_cache" | "failed_requests" => Tone::Bad,
            "stopped" | "wraps" | "holes" | "processor_bound" => Tone::Warn,
            _ => Tone::Notice,
        };
        section.note(tone, format!("{} ({})", doubt.what, doubt.evidence));
    }
}

/// The card, its bus, the block layer and filesystem, the machine.
pub(super) fn context(context: &Context, document: &mut Document) {
    let mut lines = Vec::new();
    if let Some(card) = &context.card {
        lines.extend(card_lines(card));
    }
    if let Some(bus) = &context.bus {
        let value = format!("{}, {} lines, {:.0} MHz", bus.mode, bus.lines, bus.clock_hz as f64 / 1e6);
        lines.push(KeyValue::new("bus", value).note(format!("at most {:.0} MB/s", bus.mb_per_s_max)));
    }
    if let Some(before) = &context.life_before {
        let value = life(before);
        let after = context.life_after.as_ref().map(life).filter(|after| *after != value);
        lines.push(
            KeyValue::new("life time", value)
                .note(after.map_or("the same after".into(), |after| format!("after: {after}"))),
        );
    }
    if let Some(wear) = &context.wear {
        let assumed = if wear.cycles_assumed { "an assumed " } else { "" };
        lines.push(
            KeyValue::new("wear", format!("{:.4} times the capacity", wear.capacities))
                .note(format!("{:.4} % of {assumed}{} erase cycles", wear.life_percent, wear.cycles)),
        );
    }
    lines.extend(machine_lines(context));
    if lines.is_empty() && context.notes.is_empty() {
        return;
    }
    let section = document.section("context", "Measured on");
    section.push(lines);
    for note in &context.notes {
        section.note(Tone::Muted, note.clone());
    }
}

fn card_lines(card: &CardFacts) -> Vec<KeyValue> {
    let words: Vec<String> =
        [&card.kind, &card.name, &card.manufacturer].into_iter().flatten().map(|text| text.to_owned()).collect();
    let mut lines = vec![KeyValue::new("card", words.join(", "))];
    if let Some(serial) = card.serial {
        lines[0] = lines[0].clone().note(format!("serial {serial:#010x}"));
    }
    let switch = |offered: Option<bool>, on: Option<bool>| match (offered, on) {
        (Some(false), _) => Some("not offered"),
        (_, Some(true)) => Some("on"),
        (_, Some(false)) => Some("off"),
        _ => None,
    };
    if let Some(state) = switch(card.queueing_offered, card.queueing_on) {
        lines.push(KeyValue::new("command queue", state));
    }
    if let Some(state) = switch(card.cache_bytes.map(|bytes| bytes > 0), card.cache_on) {
        let size = card.cache_bytes.filter(|bytes| *bytes > 0).map(|bytes| Bytes(bytes).rounded());
        lines.push(KeyValue::new("cache", state).note(size.unwrap_or_default()));
    }
    lines
}

fn machine_lines(context: &Context) -> Vec<KeyValue> {
    let mut lines = Vec::new();
    if let Some(disk) = &context.disk {
        let size = disk.size_bytes.map(|bytes| Bytes(bytes).rounded()).unwrap_or_default();
        let scheduler = disk.scheduler.as_deref().unwrap_or("?");
        let value = format!("{}, {size}, scheduler {scheduler}", disk.name);
        lines.push(KeyValue::new("disk", value).note(disk.write_cache.clone().unwrap_or_default()));
    }
    if let Some(filesystem) = &context.filesystem {
        let value = format!("{} at {}", filesystem.fstype, filesystem.mount);
        lines.push(KeyValue::new("filesystem", value).note(filesystem.options.clone()));
    }
    for made in &context.made_filesystems {
        let size = Bytes(made.size_bytes).rounded();
        lines.push(KeyValue::new("made", format!("{}, {size}", made.fstype)).note(made.options.replace(',', ", ")));
    }
    if let Some(host) = &context.host {
        let governor =
            if host.governors.is_empty() { String::new() } else { format!(", {}", host.governors.join(", ")) };
        let value = format!("Linux {}, {} x {}{governor}", host.kernel, host.processors, host.machine);
        lines.push(KeyValue::new("machine", value).note(host.model.clone().unwrap_or_default()));
    }
    if let Some(effort) = &context.effort {
        let busy = (effort.user_s + effort.system_s) / effort.time_s.max(1e-9) * 100.0;
        let value = format!("{:.2} s user, {:.2} s system", effort.user_s, effort.system_s);
        lines.push(KeyValue::new("processor", value).note(format!("{busy:.0} % of one in {:.2} s", effort.time_s)));
    }
    lines
}

fn life(life: &Life) -> String {
    let byte = |value: Option<u8>| value.map_or("?".into(), |value| format!("{value:#04x}"));
    format!("A {}, B {}, PRE_EOL_INFO {}", byte(life.type_a), byte(life.type_b), byte(life.pre_eol_info))
}
