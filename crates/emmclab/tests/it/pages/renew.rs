//! Rewrites the shown output of commands that print something else now, for `EMMCLAB_WRITE_PAGES=1`.
//!
//! Lines that still match stay as they are, with their `...`. Lines alone with `...` stay too; what lies between two of
//! them is taken from where it fits the new output best. The result needs a review.

use std::collections::BTreeMap;
use std::path::Path;

use super::is_line;

fn is_gap(line: &str) -> bool {
    line.trim() == "..."
}

/// How many lines of a part fit the output at a place: the same text, or at least the same first word.
fn fit(part: &[String], lines: &[&str]) -> usize {
    let word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let score = |(shown, line): (&String, &&str)| match () {
        () if is_line(shown, line) => 2,
        () if word(shown) == word(line) => 1,
        () => 0,
    };
    part.iter().zip(lines).map(score).sum()
}

/// The new output as the page shows it.
pub(super) fn renewed(shown: &[String], lines: &[&str]) -> Vec<String> {
    let parts: Vec<&[String]> = shown.split(|line| is_gap(line)).collect();
    let mut gaps = shown.iter().filter(|line| is_gap(line));
    let (mut found, mut at) = (Vec::new(), 0);
    for (index, part) in parts.iter().enumerate() {
        let (is_first, is_last) = (index == 0, index + 1 == parts.len());
        let latest = lines.len().saturating_sub(part.len());
        let start = match (is_first, is_last) {
            (true, _) => 0,
            (false, true) => latest.max(at.min(lines.len())),
            (false, false) => {
                (at.min(latest)..=latest).rev().max_by_key(|start| fit(part, &lines[*start..])).unwrap_or(at)
            }
        };
        let end = if is_first && is_last { lines.len() } else { (start + part.len()).min(lines.len()) };
        for (offset, line) in lines[start..end].iter().enumerate() {
            let same = part.get(offset).filter(|shown| is_line(shown, line));
            found.push(same.cloned().unwrap_or_else(|| (*line).to_owned()));
        }
        at = end;
        found.extend(gaps.next().cloned());
    }
    found
}

/// Writes new outputs into a page: by the line of their command, how many lines were shown and the new ones.
pub(super) fn write(page: &Path, outputs: &BTreeMap<usize, (usize, Vec<String>)>) {
    let text = std::fs::read_to_string(page).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (line, (count, output)) in outputs.iter().rev() {
        lines.splice(*line..line + count, output.iter().cloned());
    }
    std::fs::write(page, lines.join("\n") + "\n").unwrap();
}

#[test]
fn matching_lines_and_gaps_stay() {
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    for (shown, lines, expected) in [
        (&["a 1", "b ... x"][..], &["a 2", "b 7 x"][..], &["a 2", "b ... x"][..]),
        (&["a 1", "...", "z 1"], &["a 2", "m", "n", "z 3"], &["a 2", "...", "z 3"]),
        (&["...", "k 1", "..."], &["a", "k 2", "z"], &["...", "k 2", "..."]),
        (&["a", "b"], &["a", "c", "d"], &["a", "c", "d"]),
    ] {
        assert_eq!(renewed(&owned(shown), lines), owned(expected), "{shown:?} {lines:?}");
    }
}
