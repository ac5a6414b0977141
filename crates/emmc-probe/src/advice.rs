//! Lines for other tools that follow from what was found.

use crate::result::{Advice, Bound, Findings, Parameter, Value};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// The usual block of ext4. Unit: bytes.
const BLOCK: u64 = 4 * KIB;
/// f2fs' segment. Unit: bytes.
const SEGMENT: u64 = 2 * MIB;

/// Lines that follow from sizes alone, by the names of their parameters. Unit: bytes; `open_units` is a count.
pub fn layout_advice(units: &[(&str, u64)]) -> Vec<Advice> {
    let parameter =
        |&(name, value): &(&str, u64)| (name.to_owned(), Parameter::of(Value::Whole(value), "B", Vec::new()));
    advice(&Findings { parameters: units.iter().map(parameter).collect(), ..Findings::default() })
}

/// What to do with the values that are there.
pub(crate) fn advice(findings: &Findings) -> Vec<Advice> {
    let whole = |name: &str| findings.parameters.get(name)?.value.as_ref()?.whole();
    let mut all = Vec::new();
    let mut add = |tool: &str, line: String, why: String| all.push(Advice { tool: tool.into(), line, why });
    if let Some(unit) = whole("allocation_unit").filter(|unit| *unit >= 64 * KIB) {
        let size = label(unit);
        let first = unit.max(unit * MIB.div_ceil(unit));
        let why = format!("a partition that begins inside of a unit of {size} shares it with another one");
        add("sfdisk", format!("start={}, type=83", first / 512), why.clone());
        add("genimage", format!("offset = {}", first), why.clone());
        add("wic", format!("part / --align {}", unit / KIB), why);
        let segments = unit.div_ceil(SEGMENT);
        if segments > 1 && unit % SEGMENT == 0 {
            let why = format!("a section of {segments} segments of 2 MiB is one unit of {size}");
            add("mkfs.f2fs", format!("mkfs.f2fs -s {segments} DEVICE"), why);
        }
    }
    let stripe = whole("write_unit").or(whole("page")).filter(|bytes| *bytes > BLOCK && bytes % BLOCK == 0);
    if let Some(bytes) = stripe {
        let page = whole("page").filter(|page| bytes % page == 0 && page % BLOCK == 0).unwrap_or(bytes);
        let line = format!("mkfs.ext4 -E stride={},stripe_width={} DEVICE", page / BLOCK, bytes / BLOCK);
        let known = whole("page").map(|_| format!("a page is {}", label(page)));
        let slow = whole("write_unit").map(|unit| format!("durable writes below {} are slow", label(unit)));
        let why: Vec<String> = known.into_iter().chain(slow).collect();
        add("mkfs.ext4", line, why.join(", and "));
    }
    if let Some(open) = findings.parameters.get("open_units") {
        let count = open.value.as_ref().and_then(|value| value.whole());
        if let Some(count) = count.filter(|_| open.bound != Some(Bound::AtLeast)) {
            let line = format!("write at most {count} files at a time");
            add("application", line, "one more makes every write close a unit, which the card has to merge".into());
        }
    }
    all
}

pub(crate) fn label(bytes: u64) -> String {
    match bytes {
        b if b >= MIB && b % MIB == 0 => format!("{} MiB", b / MIB),
        b if b >= KIB && b % KIB == 0 => format!("{} KiB", b / KIB),
        b => format!("{b} bytes"),
    }
}
