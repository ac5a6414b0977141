//! A snapshot of a source, and the report that `study --json` prints, are sources that lead to the same study.
//!
//! Every dump and text in testdata, and pairs of them from one folder that are of one card, are studied; then their
//! snapshot is written, read and studied, twice in a row. Findings, verdict, health and every table must stay the same.
//! The names of the sources are left out: a snapshot has its own.

use std::path::{Path, PathBuf};

use emmc_analysis::study::{Study, StudyOptions, study};
use emmc_port::CardData;
use emmc_port::saved::read;
use serde_json::Value;

/// The files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// The cards in testdata, each with its files' names: every readable file, and every pair of one folder that merges.
fn cards() -> Vec<(String, CardData)> {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata"), &mut paths);
    paths.sort();
    let readable = paths.into_iter().filter_map(|path| {
        let bytes = std::fs::read(&path).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((path.parent()?.to_owned(), read(&name, &bytes).ok()?))
    });
    let single: Vec<(PathBuf, CardData)> = readable.collect();
    let mut cards: Vec<(String, CardData)> = single.iter().map(|(_, card)| (card.name(), card.clone())).collect();
    for (index, (folder, first)) in single.iter().enumerate() {
        for (_, second) in single.iter().skip(index + 1).filter(|(other, _)| other == folder) {
            let mut both = first.clone();
            if both.merge(second.clone()).is_ok() {
                cards.push((both.name(), both));
            }
        }
    }
    cards
}

fn studied(card: &CardData) -> Study {
    study(card, &StudyOptions { source: Some("SOURCE".into()), ..StudyOptions::default() })
}

/// A report as `study --json` prints it.
fn report(study: &Study) -> String {
    format!("{{\"schema\":\"emmclab.study/1\",{}", serde_json::to_string(study).unwrap().strip_prefix('{').unwrap())
}

/// What a study says of the card, without the names of its sources.
fn said(study: &Study) -> Value {
    let mut said = serde_json::to_value(study).unwrap();
    let parts = said.as_object_mut().unwrap();
    let (sources, card) = (parts.remove("sources"), parts.remove("card"));
    assert!(sources.is_some() && card.is_some());
    said
}

#[test]
fn a_snapshot_and_a_report_keep_every_finding() {
    let cards = cards();
    let (mut findings, mut wrong) = (0, Vec::new());
    for (name, card) in &cards {
        let whole = studied(card);
        let expected = said(&whole);
        findings += whole.findings.len();
        let mut saved = serde_json::to_string(&whole.card).unwrap();
        for turn in ["snapshot", "snapshot of the snapshot"] {
            let again = read("saved.json", saved.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let again = studied(&again);
            if said(&again) != expected {
                let ids = |study: &Study| study.findings.iter().map(|finding| finding.id).collect::<Vec<_>>();
                wrong.push(format!("{name}, {turn}: {:?} became {:?}", ids(&whole), ids(&again)));
            }
            saved = serde_json::to_string(&again.card).unwrap();
        }
        let again = read("study.json", report(&whole).as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        if said(&studied(&again)) != expected {
            wrong.push(format!("{name}, study --json"));
        }
    }
    println!("{} sources, {findings} findings, {} changed", cards.len(), wrong.len());
    assert!(cards.len() > 200 && findings > 100, "{} {findings}", cards.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
