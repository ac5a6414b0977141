//! The report of a probe.

use emmc_probe::{Bound, Confidence, Findings, Parameter, Value};
use emmc_units::Bytes;

use crate::{Align, Block, Cell, Document, KeyValue, Table, Tone};

/// What was probed, and how much is printed.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSubject<'a> {
    /// The target as the user named it.
    pub target: &'a str,
    /// If known. Unit: bytes.
    pub size_bytes: Option<u64>,
    /// The saved results, if nothing was measured now.
    pub from: &'a [String],
    /// With the evidence.
    pub full: bool,
}

/// Names in reading order.
const ORDER: [(&str, &str); 16] = [
    ("capacity", "capacity"),
    ("page", "page"),
    ("write_unit", "least useful write"),
    ("allocation_unit", "allocation unit"),
    ("open_units", "open units"),
    ("open_units_random", "open, random order"),
    ("mapping_class", "order of writes"),
    ("regions", "parts"),
    ("fat_region", "region for FATs"),
    ("command_overhead", "command overhead"),
    ("read_rate", "read rate"),
    ("write_cache", "write cache"),
    ("idle_collection", "work while idle"),
    ("slc_cache", "fast after a rest"),
    ("slc_refill", "fast again"),
    ("discard", "discard"),
];

/// The report of a probe.
pub fn probe(subject: &ProbeSubject<'_>, findings: &Findings) -> Document {
    let mut document = Document::new(format!("Probe of {}", subject.target));
    let spent = findings.spent;
    let size = subject.size_bytes.map(|bytes| format!("{}; ", Bytes(bytes).rounded())).unwrap_or_default();
    document.subtitle = Some(match subject.from {
        [] => format!(
            "{size}read {}, written {}, {:.1} s",
            Bytes(spent.read_bytes).rounded(),
            Bytes(spent.written_bytes).rounded(),
            spent.time_s
        ),
        from => format!("concluded from {}; nothing was measured now", from.join(", ")),
    });
    let section = document.section("parameters", "Parameters");
    section.push(Block::KeyValues(named(findings).map(|(title, parameter)| row(title, parameter)).collect()));
    for remark in &findings.remarks {
        section.note(Tone::Notice, remark.clone());
    }
    if !findings.advice.is_empty() {
        let lines: Vec<String> =
            findings.advice.iter().map(|advice| format!("{:<12} {}", advice.tool, advice.line)).collect();
        document.section("advice", "Advice").push(Block::Code { language: "sh", text: lines.join("\n") });
    }
    if subject.full {
        details(findings, &mut document);
    }
    document
}

fn named(findings: &Findings) -> impl Iterator<Item = (&str, &Parameter)> {
    let known = ORDER.iter().filter_map(|(name, title)| Some((*title, findings.parameters.get(*name)?)));
    let is_new = |name: &String| ORDER.iter().all(|(known, _)| known != name);
    let others = findings.parameters.iter().filter(move |(name, _)| is_new(name));
    known.chain(others.map(|(name, parameter)| (name.as_str(), parameter)))
}

fn row(title: &str, parameter: &Parameter) -> KeyValue {
    let value = match &parameter.value {
        None => Cell::new("cannot tell", Tone::Muted),
        Some(value) => {
            let bound = match parameter.bound {
                Some(Bound::AtLeast) => "at least ",
                Some(Bound::AtMost) => "at most ",
                None => "",
            };
            Cell::from(format!("{bound}{}", stated(value, &parameter.unit)))
        }
    };
    let mut notes: Vec<String> = Vec::new();
    notes.extend(parameter.cannot_tell.clone());
    match parameter.confidence {
        Some(Confidence::High) => notes.push(format!("{} witnesses agree", support(parameter))),
        Some(Confidence::Low) => notes.push("not confirmed".into()),
        None => {}
    }
    for declared in &parameter.declared {
        let value = stated(&declared.value, &parameter.unit);
        let source = declared.source.split(':').next().unwrap_or_default();
        notes.push(match declared.agrees {
            Some(true) => format!("agrees with {source}, {value}"),
            Some(false) => format!("conflicts with {source}, {value}"),
            None => format!("{source} says {value}"),
        });
    }
    KeyValue::new(title, value).note(notes.join("; "))
}

fn support(parameter: &Parameter) -> usize {
    parameter.evidence.iter().filter(|witness| witness.value == parameter.value).count()
}

fn stated(value: &Value, unit: &str) -> String {
    match (value, unit) {
        (Value::Whole(bytes), "bytes") => size(*bytes),
        (Value::Whole(count), unit) => format!("{count} {unit}").trim_end().into(),
        (Value::Measured(value), unit) => format!("{value:.0} {unit}").trim_end().into(),
        (Value::Kind(kind), _) => kind.clone(),
    }
}

/// Exact in the largest fitting unit.
fn size(bytes: u64) -> String {
    match bytes {
        b if b > 0 && b % (512 << 10) == 0 && b >= 1 << 20 => format!("{} MiB", b as f64 / 1_048_576.0),
        b if b > 0 && b % 1024 == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} bytes"),
    }
}

fn details(findings: &Findings, document: &mut Document) {
    let section = document.section("evidence", "Evidence");
    let columns = [("parameter", Align::Left), ("witness", Align::Left), ("says", Align::Left), ("seen", Align::Left)];
    let mut table = Table::new(columns);
    for (title, parameter) in named(findings) {
        for witness in &parameter.evidence {
            let says = witness.value.as_ref().map_or("nothing".into(), |value| stated(value, &parameter.unit));
            table.row([title, &witness.witness, &says, &witness.seen].map(Cell::from));
        }
    }
    section.push(table);
    let advice: Vec<KeyValue> =
        findings.advice.iter().map(|advice| KeyValue::new(advice.tool.clone(), advice.why.clone())).collect();
    if !advice.is_empty() {
        document.section("reasons", "Reasons for the advice").push(advice);
    }
}
