//! The document as lines for a terminal, a log or a file.

mod bars;
mod continuation;
mod ink;
mod layout;
mod lead;
mod table;

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use crate::visible::{ascii, visible, visible_lines};
use crate::{Block, Chart, Document, Finding, KeyValue, Severity, Tone};
use continuation::{CommandLine, continued};
use ink::{Ink, push_line};
use layout::{GridColumn, fits, grid, hang, wrap};

/// Columns before every line that is not a heading.
const INDENT: usize = 2;
/// The minimum width; on a narrower terminal lines are longer.
const WIDTH_MIN: usize = 24;

/// Options of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// The maximum columns of a line. Words longer than a column are broken, lines to copy are not.
    pub width: usize,
    /// Whether to write ANSI colour sequences.
    pub colour: bool,
    /// Whether non-ASCII characters may be written; otherwise they are transliterated.
    pub unicode: bool,
}

impl Default for TextOptions {
    /// The default for a file: 100 columns, no colour, UTF-8.
    fn default() -> Self {
        Self { width: 100, colour: false, unicode: true }
    }
}

/// The document as text, every line ended by a line break and free of spaces at its end.
pub fn text(document: &Document, options: &TextOptions) -> String {
    let mut page = Page { options: *options, lines: Vec::new() };
    page.heading(&document.title, '═', '=');
    if let Some(subtitle) = &document.subtitle {
        let lines = wrap(&page.paint(Ink::Muted, subtitle), page.options.width.max(WIDTH_MIN));
        page.lines.extend(lines);
    }
    if let Some(lead) = &document.lead {
        let lines = page.lead(lead);
        page.lines.extend(lines);
    }
    for section in &document.sections {
        page.lines.push(String::new());
        page.heading(&section.title, '─', '-');
        let mut before: Option<&Block> = None;
        for block in &section.blocks {
            let lines = page.block(block);
            if lines.is_empty() {
                continue;
            }
            // Remarks that follow one another read as a list.
            let joined = matches!((before, block), (Some(Block::Note(..)), Block::Note(..)));
            page.lines.extend((before.is_some() && !joined).then(String::new));
            page.lines.extend(lines.into_iter().map(|line| format!("{:INDENT$}{line}", "")));
            before = Some(block);
        }
    }
    let mut out = String::new();
    page.lines.iter().for_each(|line| push_line(&mut out, line));
    out
}

struct Page {
    options: TextOptions,
    lines: Vec<String>,
}

impl Page {
    fn width(&self) -> usize {
        self.options.width.max(WIDTH_MIN) - INDENT
    }

    /// The text in the permitted characters.
    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = visible(text);
        if self.options.unicode { text } else { Cow::Owned(ascii(&text).into_owned()) }
    }

    /// The text in the permitted characters, in colour if enabled.
    fn paint(&self, ink: Ink, text: &str) -> String {
        let text = self.clean(text);
        if self.options.colour { ink.mark(&text) } else { text.into_owned() }
    }

    /// Text to copy, which must stay as it is, in colour if enabled.
    fn paint_raw(&self, ink: Ink, text: &str) -> String {
        let text = visible(text);
        if self.options.colour { ink.mark(&text) } else { text.into_owned() }
    }

    fn sign(&self, unicode: char, ascii: char) -> char {
        if self.options.unicode { unicode } else { ascii }
    }

    fn heading(&mut self, title: &str, unicode: char, ascii: char) {
        let lines = wrap(&self.paint(Ink::Strong, title), self.options.width.max(WIDTH_MIN));
        let width = lines.iter().map(|line| line.width()).max().unwrap_or(0);
        self.lines.extend(lines);
        self.lines.push(self.paint(Ink::Muted, &self.sign(unicode, ascii).to_string().repeat(width)));
    }

    fn block(&self, block: &Block) -> Vec<String> {
        match block {
            Block::Paragraph(text) => wrap(&self.clean(text), self.width()),
            Block::KeyValues(pairs) => self.key_values(pairs),
            Block::Table(table) => self.table(table),
            Block::Findings(findings) => self.findings(findings),
            Block::Brief(findings) => self.brief(findings),
            Block::Picture(picture) => self.table(&picture.table),
            Block::Bars(bars) => self.bars(bars),
            Block::Chart(chart) => self.chart(chart),
            Block::Code { text, .. } => self.code(text),
            Block::Note(tone, text) => self.note(*tone, text),
        }
    }

    fn key_values(&self, pairs: &[KeyValue]) -> Vec<String> {
        let mut columns = vec![GridColumn::default(); 2];
        if pairs.iter().any(|pair| pair.note.is_some()) {
            columns.push(GridColumn::default());
        }
        let rows: Vec<Vec<String>> = pairs
            .iter()
            .map(|pair| {
                let mut row =
                    vec![self.clean(&pair.key).into_owned(), self.paint(pair.value.tone.into(), &pair.value.text)];
                row.extend(pair.note.iter().map(|note| self.paint(Ink::Muted, note)));
                row
            })
            .collect();
        if fits(&columns, &rows, self.width()) {
            return grid(&columns, rows, self.width(), ' ');
        }
        let indented = |cell: &String| hang("  ", cell, self.width());
        rows.iter()
            .flat_map(|row| wrap(&row[0], self.width()).into_iter().chain(row[1..].iter().flat_map(indented)))
            .collect()
    }

    fn findings(&self, findings: &[Finding]) -> Vec<String> {
        let longest = Severity::ALL.iter().map(|severity| severity.word().len()).max().unwrap_or(0);
        let indent = " ".repeat(longest + 2);
        let mut lines = Vec::new();
        for finding in findings {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            let word = self.paint(finding.severity.into(), finding.severity.word());
            let fill = " ".repeat(longest + 2 - finding.severity.word().len());
            lines.extend(hang(&format!("{word}{fill}"), &self.paint(Ink::Strong, &finding.what), self.width()));
            if let Some(summary) = &finding.summary {
                lines.extend(hang(&format!("{indent}In short: "), &self.clean(summary), self.width()));
            }
            let bullet = format!("{indent}{} ", self.sign('•', '-'));
            for evidence in finding.evidence.texts() {
                lines.extend(hang(&bullet, &self.clean(&evidence), self.width()));
            }
            let arrow = format!("{indent}{} ", if self.options.unicode { "→" } else { "->" });
            for advice in &finding.advice {
                lines.extend(hang(&arrow, &self.clean(advice), self.width()));
            }
            for command in &finding.commands {
                lines.extend(self.command(&indent, &command.command));
            }
            if let Some(source) = &finding.source {
                lines.extend(hang(&indent, &self.paint(Ink::Muted, &format!("Source: {source}")), self.width()));
            }
        }
        lines
    }

    /// `$ command`, on lines that a shell joins again; one long line if only a broken word would fit.
    fn command(&self, indent: &str, command: &str) -> Vec<String> {
        let lines = continued(&visible(command), indent.len() + 2, self.width());
        if lines.iter().any(|line| line.at_margin) {
            return vec![format!("{indent}$ {}", self.paint_raw(Ink::Notice, command))];
        }
        let line = |(index, line): (usize, &CommandLine)| {
            let before = if index == 0 { "$ " } else { "    " };
            format!("{indent}{before}{}", self.paint_raw(Ink::Notice, &line.text))
        };
        lines.iter().enumerate().map(line).collect()
    }

    fn chart(&self, chart: &Chart) -> Vec<String> {
        let mut lines = wrap(&self.paint(Ink::Strong, &chart.title), self.width());
        lines.extend(wrap(&self.clean(&chart.description), self.width()));
        // Callers align these lines, so they are not wrapped.
        lines.extend(chart.text.iter().map(|line| self.clean(line).into_owned()));
        lines
    }

    fn code(&self, text: &str) -> Vec<String> {
        let text = visible_lines(text);
        let text = if self.options.unicode { Cow::Borrowed(text.as_str()) } else { ascii(&text) };
        text.lines().map(|line| format!("  {line}")).collect()
    }

    fn note(&self, tone: Tone, text: &str) -> Vec<String> {
        let word = note_word(tone);
        hang(&format!("{}: ", self.paint(tone.into(), word)), &self.clean(text), self.width())
    }
}

/// The word for the colour of a note.
pub(crate) fn note_word(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Notice | Tone::Muted => "note",
        Tone::Good => "good",
        Tone::Warn => "warning",
        Tone::Bad => "danger",
    }
}

#[cfg(test)]
mod tests;
