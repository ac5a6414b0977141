//! What `clone` and `restore` report.

use emmc_clone::format::{AreaShape, Header};
use emmc_report::{Document, KeyValue, Tone};
use emmc_units::Bytes;
use serde::Serialize;

use super::put::{Counts, Putting};
use super::scheme::Scheme;
use crate::cli::CloneArgs;

/// What `clone -o FILE` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CloneDocument {
    /// The source, as named.
    source: String,
    /// The file.
    file: String,
    /// The areas, their parts and what of them is allocated.
    areas: Vec<AreaShape>,
    /// SHA-256 of the tables, superblocks and bitmaps that said what is allocated.
    fingerprint: String,
    /// The size of all areas.
    size_bytes: u64,
    /// What of them is allocated.
    allocated_bytes: u64,
    /// What was read of the source by this run, without the tables.
    read_bytes: u64,
    /// The size of the file.
    stored_bytes: u64,
    /// What of the file an earlier run had written.
    resumed_bytes: u64,
    /// The source was read a second time and is equal.
    is_verified: bool,
    /// What the file does not hold.
    not_carried: Vec<String>,
    /// The commands that plan the settings of this card for another one.
    plans: Vec<String>,
}

impl CloneDocument {
    pub(super) fn new(args: &CloneArgs, header: Header, scheme: &Scheme, bytes: [u64; 3]) -> Self {
        let [read_bytes, stored_bytes, resumed_bytes] = bytes;
        Self {
            source: args.source.clone(),
            file: args.output.display().to_string(),
            fingerprint: header.fingerprint,
            size_bytes: scheme.areas.iter().map(|area| area.size_bytes).sum(),
            allocated_bytes: scheme.pieces.iter().map(|piece| piece.bytes).sum(),
            read_bytes,
            stored_bytes,
            resumed_bytes,
            is_verified: args.verify,
            areas: header.areas,
            not_carried: header.not_carried,
            plans: header.plans,
        }
    }

    pub(super) fn present(&self) -> Document {
        let mut report = Document::new("A card as a file");
        report.subtitle = Some(format!("{}  to {}", self.source, self.file));
        let section = report.section("clone", "What was copied");
        let rounded = |bytes: u64| Bytes(bytes).rounded();
        let mut rows = vec![
            KeyValue::new("Size", rounded(self.size_bytes)),
            KeyValue::new("Allocated", rounded(self.allocated_bytes)),
            KeyValue::new("Read", rounded(self.read_bytes)),
            KeyValue::new("File", rounded(self.stored_bytes)),
        ];
        if self.resumed_bytes > 0 {
            rows.push(KeyValue::new("Of an earlier run", rounded(self.resumed_bytes)));
        }
        section.push(rows);
        section.note(
            Tone::Muted,
            match self.is_verified {
                true => "The source was read a second time and is equal to the file.",
                false => "The file was read back and compared with its hashes; --verify reads the source again.",
            },
        );
        parts(&self.areas, &mut report);
        let header = Lost { not_carried: &self.not_carried, plans: &self.plans };
        header.present(&mut report);
        report
    }
}

/// What `clone -o CARD` and `restore` print.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PutDocument {
    /// `clone`, `restore`, `verify` or `check`.
    action: &'static str,
    /// The source or the file.
    from: String,
    /// The target; none for a check.
    #[serde(skip_serializing_if = "String::is_empty")]
    target: String,
    /// The areas that were written or compared.
    areas: Vec<String>,
    /// What happened to unallocated space: `discard` or `keep`.
    unallocated: &'static str,
    /// Everything was read back and is equal.
    is_read_back: bool,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    /// What the clone does not hold.
    not_carried: Vec<String>,
    /// The commands that plan the settings of the source's card for another one.
    plans: Vec<String>,
}

impl PutDocument {
    pub(super) fn new(
        action: &'static str,
        from: &str,
        target: &str,
        how: &Putting,
        counts: Option<Counts>,
        header: &Header,
    ) -> Self {
        Self {
            action,
            from: from.into(),
            target: target.into(),
            areas: how.areas.clone(),
            unallocated: if how.discard { "discard" } else { "keep" },
            is_read_back: counts.is_some_and(|counts| counts.compared_bytes > 0),
            counts,
            not_carried: header.not_carried.clone(),
            plans: header.plans.clone(),
        }
    }

    pub(super) fn present(&self) -> Document {
        let (title, word) = match self.action {
            "check" => ("The file of a clone", "whole: every checksum fits"),
            "verify" => ("A target beside a clone", "equal: all allocated content"),
            _ => ("A card from a clone", "written"),
        };
        let mut report = Document::new(title);
        report.subtitle = Some(format!("{}  {}", self.from, self.target));
        let section = report.section("content", "Content");
        section.note(Tone::Good, format!("The content is {word}."));
        if let Some(counts) = &self.counts {
            let rows = [
                ("Allocated", counts.content_bytes),
                ("Written", counts.written_bytes),
                ("Present already", counts.present_bytes),
                ("Deallocated", counts.discarded_bytes),
                ("Read back, equal", counts.compared_bytes),
            ];
            let rows = rows.into_iter().filter(|(_, bytes)| *bytes > 0);
            section.push(rows.map(|(key, bytes)| KeyValue::new(key, Bytes(bytes).rounded())).collect::<Vec<_>>());
        }
        if self.action != "check" {
            section.note(
                Tone::Muted,
                match self.unallocated {
                    "discard" => {
                        "What the source had not allocated is deallocated where the target supports that; \
                    what it reads as is not part of the clone."
                    }
                    _ => "What the source had not allocated was left as it was.",
                },
            );
        }
        Lost { not_carried: &self.not_carried, plans: &self.plans }.present(&mut report);
        report
    }
}

/// The parts of all areas.
fn parts(areas: &[AreaShape], report: &mut Document) {
    use emmc_report::{Align, Table};
    let section = report.section("parts", "Parts");
    let columns = [
        ("area", Align::Left),
        ("part", Align::Right),
        ("holds", Align::Left),
        ("size", Align::Right),
        ("allocated", Align::Right),
    ];
    let mut table = Table::new(columns);
    for (area, part) in areas.iter().flat_map(|area| area.parts.iter().map(move |part| (area, part))) {
        let size = part.to_bytes - part.from_bytes;
        let holds = part.content.clone().or_else(|| part.whole_because.clone()).unwrap_or_default();
        table.row([
            area.name.clone(),
            part.partition.map(|number| number.to_string()).unwrap_or_default(),
            holds,
            Bytes(size).rounded(),
            Bytes(part.used_bytes).rounded(),
        ]);
    }
    section.push(table);
}

struct Lost<'a> {
    not_carried: &'a [String],
    plans: &'a [String],
}

impl Lost<'_> {
    fn present(&self, report: &mut Document) {
        if self.not_carried.is_empty() && self.plans.is_empty() {
            return;
        }
        let section = report.section("not-carried", "What a clone does not carry");
        for what in self.not_carried {
            section.note(Tone::Warn, what.as_str());
        }
        if !self.plans.is_empty() {
            section.paragraph("Commands that plan the same settings for another card:");
            section.code("sh", self.plans.join("\n"));
        }
    }
}
