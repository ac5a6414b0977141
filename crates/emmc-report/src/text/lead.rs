//! The verdict, and findings on one line each.

use unicode_width::UnicodeWidthStr;

use super::continuation::continued;
use super::ink::Ink;
use super::layout::hang;
use super::{Page, WIDTH_MIN};
use crate::visible::visible;
use crate::{Finding, Lead, Severity};

/// With the title above them the lines are eight.
const LINES_MAX: usize = 7;
/// On narrower pages the answers are wrapped, however many lines that takes.
const WIDTH_OF_ANSWERS: usize = 80;

impl Page {
    /// `LABEL  answer`, the labels aligned.
    pub(super) fn lead(&self, lead: &Lead) -> Vec<String> {
        let width = self.options.width.max(WIDTH_MIN);
        let longest = lead.lines.iter().map(|line| line.label.width()).max().unwrap_or(0) + 2;
        let mut groups: Vec<Group> = Vec::new();
        let mut before = "";
        for line in &lead.lines {
            let label = if line.label == before { "" } else { line.label };
            before = line.label;
            let prefix = self.paint(Ink::Strong, label) + &" ".repeat(longest - label.width());
            let text = self.clean(&line.text);
            if !line.is_command {
                let hung = |words: &str| hang(&prefix, &self.paint(line.tone.into(), words), width);
                let full = line.note.as_ref().map(|note| hung(&format!("{text} ({})", self.clean(note))));
                groups.push(Group { short: hung(&text), full, is_command: false });
                continue;
            }
            let lines: Vec<String> = continued(&visible(&line.text), longest, width)
                .into_iter()
                .enumerate()
                .map(|(index, line)| {
                    let indent = if line.at_margin { 0 } else { longest + if index == 0 { 0 } else { 2 } };
                    let prefix = if index == 0 { prefix.clone() } else { " ".repeat(indent) };
                    format!("{prefix}{}", self.paint_raw(Ink::Notice, &line.text))
                })
                .collect();
            // A shell ignores text after `#`, so the remark can be copied too.
            let remark = line.note.as_ref().map(|note| self.paint(Ink::Muted, &format!("# {}", self.clean(note))));
            let last = lines.last().map_or(0, |line| line.width());
            let full = remark.map(|remark| match lines.as_slice() {
                [only] if last + 2 + remark.width() <= width => vec![format!("{only}  {remark}")],
                _ => [lines.clone(), remark_lines(&remark, longest, width)].concat(),
            });
            groups.push(Group { short: lines, full, is_command: true });
        }
        self.shortened(groups, width)
    }

    /// Leaves out remarks, then cuts answers to one line, the last first, until all are few enough; the first is never
    /// cut.
    fn shortened(&self, mut groups: Vec<Group>, width: usize) -> Vec<String> {
        let count = |groups: &[Group]| groups.iter().map(|group| group.lines().len()).sum::<usize>();
        if width < WIDTH_OF_ANSWERS {
            // More lines are needed anyway: nothing is left out.
            return groups.iter().flat_map(|group| group.lines().to_vec()).collect();
        }
        for index in (0..groups.len()).rev() {
            if count(&groups) > LINES_MAX {
                groups[index].full = None;
            }
        }
        for index in (1..groups.len()).rev() {
            let lines = groups[index].lines();
            if count(&groups) <= LINES_MAX || lines.len() == 1 || groups[index].is_command {
                continue;
            }
            let sign = if self.options.unicode { "…" } else { "..." };
            let first = lines[0].as_str();
            let is_long = first.width() > width.saturating_sub(sign.width());
            let first = if is_long { first.rsplit_once(' ').map_or(first, |(kept, _)| kept) } else { first };
            groups[index] = Group {
                short: vec![format!("{}{sign}", first.trim_end_matches([' ', ',', ';', '(']))],
                full: None,
                is_command: false,
            };
        }
        groups.iter().flat_map(|group| group.lines().to_vec()).collect()
    }

    /// Each finding on one line, cut at a clause that fits.
    pub(super) fn brief(&self, findings: &[Finding]) -> Vec<String> {
        let longest = Severity::ALL.iter().map(|severity| severity.word().len()).max().unwrap_or(0);
        let room = self.width().saturating_sub(longest + 2);
        let line = |finding: &Finding| {
            let word = finding.severity.word();
            let fill = " ".repeat(longest + 2 - word.len());
            let text = self.clean(&finding.what).into_owned();
            format!("{}{fill}{}", self.paint(finding.severity.into(), word), self.cut(clause(&text, room), room))
        };
        findings.iter().map(line).collect()
    }
}

/// One answer, with and without its remark.
struct Group {
    short: Vec<String>,
    full: Option<Vec<String>>,
    /// A command is never cut.
    is_command: bool,
}

impl Group {
    fn lines(&self) -> &[String] {
        self.full.as_ref().unwrap_or(&self.short)
    }
}

/// A remark on lines of its own, each of which a shell ignores.
fn remark_lines(remark: &str, indent: usize, width: usize) -> Vec<String> {
    let lines = hang(&" ".repeat(indent), remark, width);
    let comment = |(index, line): (usize, String)| match index {
        0 => line,
        _ => format!("{:indent$}# {}", "", line.trim_start()),
    };
    lines.into_iter().enumerate().map(comment).collect()
}

/// The longest prefix of a sentence that fits and ends with a clause; the whole sentence if there is none.
fn clause(text: &str, width: usize) -> &str {
    if text.width() <= width {
        return text;
    }
    let ends =
        text.char_indices().filter(|(at, letter)| matches!(letter, ':' | ';') && text[at + 1..].starts_with(' '));
    let mut clauses = ends.map(|(at, _)| &text[..at]).filter(|clause| clause.width() <= width);
    clauses.next_back().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_ends_at_the_sentence_or_before_its_explanation() {
        assert_eq!(clause("It is on", 20), "It is on");
        assert_eq!(clause("It is on: that costs something", 20), "It is on");
        assert_eq!(clause("It is on: twice; that costs something", 20), "It is on: twice");
        assert_eq!(clause("It is on and that costs something", 20), "It is on and that costs something");
        assert_eq!(clause("at 10:30 it was switched on by someone", 20), "at 10:30 it was switched on by someone");
    }
}
