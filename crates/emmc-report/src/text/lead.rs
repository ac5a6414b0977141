//! The verdict, and findings on one line each.

use unicode_width::UnicodeWidthStr;

use super::ink::Ink;
use super::layout::hang;
use super::{Page, WIDTH_MIN};
use crate::{Finding, Lead, Severity};

/// With the title above them the lines are eight.
const LINES_MAX: usize = 7;

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
                groups.push(Group { short: hung(&text), full });
                continue;
            }
            // A shell ignores text after `#`, so both lines can be copied.
            let remark = line.note.as_ref().map(|note| format!("# {}", self.clean(note)));
            let parts = continued(&text, width.saturating_sub(longest));
            let room = width.saturating_sub(longest + parts[0].width() + 2);
            let beside = remark.as_ref().filter(|remark| parts.len() == 1 && remark.width() <= room);
            let beside = beside.map(|remark| format!("  {}", self.paint(Ink::Muted, remark))).unwrap_or_default();
            let command = |prefix: &str| {
                let line = |(index, part): (usize, &String)| match index {
                    0 => format!("{prefix}{}{beside}", self.paint(Ink::Notice, part)),
                    _ => format!("{:longest$}  {}", "", self.paint(Ink::Notice, part)),
                };
                parts.iter().enumerate().map(line).collect::<Vec<String>>()
            };
            let above = remark.filter(|remark| beside.is_empty() && longest + remark.width() <= width);
            let full = above.map(|remark| {
                let first = format!("{prefix}{}", self.paint(Ink::Muted, &remark));
                [vec![first], command(&" ".repeat(longest))].concat()
            });
            groups.push(Group { short: command(&prefix), full });
        }
        self.shortened(groups, width)
    }

    /// Leaves out remarks, then cuts answers to one line, the last first, until all are few enough; the first is never
    /// cut.
    fn shortened(&self, mut groups: Vec<Group>, width: usize) -> Vec<String> {
        let count = |groups: &[Group]| groups.iter().map(|group| group.lines().len()).sum::<usize>();
        for index in (0..groups.len()).rev() {
            if count(&groups) > LINES_MAX {
                groups[index].full = None;
            }
        }
        for index in (1..groups.len()).rev() {
            let lines = groups[index].lines();
            let is_command = lines.last().is_some_and(|_| lines[0].ends_with('\\'));
            if count(&groups) <= LINES_MAX || lines.len() == 1 || is_command {
                continue;
            }
            let sign = if self.options.unicode { "…" } else { "..." };
            let first = lines[0].as_str();
            let is_long = first.width() > width.saturating_sub(sign.width());
            let first = if is_long { first.rsplit_once(' ').map_or(first, |(kept, _)| kept) } else { first };
            groups[index] =
                Group { short: vec![format!("{}{sign}", first.trim_end_matches([' ', ',', ';', '(']))], full: None };
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
}

impl Group {
    fn lines(&self) -> &[String] {
        self.full.as_ref().unwrap_or(&self.short)
    }
}

/// A command in lines that a shell joins again; one line where a quote could be broken.
fn continued(command: &str, width: usize) -> Vec<String> {
    if command.width() <= width || command.contains(['\'', '"', '\\']) {
        return vec![command.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in command.split(' ') {
        let last = lines.len() - 1;
        // Room for the indent of later lines, a blank and the sign.
        if !lines[last].is_empty() && lines[last].width() + word.width() + 5 > width {
            lines[last] += " \\";
            lines.push(String::new());
        }
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
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
    fn a_long_command_is_continued_with_backslashes() {
        let command = "emmclab plan hwpart /a/long/name.hex --wrrel on";
        assert_eq!(continued(command, 60), [command]);
        assert_eq!(continued(command, 30), ["emmclab plan hwpart \\", "/a/long/name.hex --wrrel \\", "on"]);
        assert_eq!(continued("x 'a b' cccccccccc", 8), ["x 'a b' cccccccccc"]);
    }

    #[test]
    fn a_clause_ends_at_the_sentence_or_before_its_explanation() {
        assert_eq!(clause("It is on", 20), "It is on");
        assert_eq!(clause("It is on: that costs something", 20), "It is on");
        assert_eq!(clause("It is on: twice; that costs something", 20), "It is on: twice");
        assert_eq!(clause("It is on and that costs something", 20), "It is on and that costs something");
        assert_eq!(clause("at 10:30 it was switched on by someone", 20), "at 10:30 it was switched on by someone");
    }
}
