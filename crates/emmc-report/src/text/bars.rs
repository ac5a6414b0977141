//! Bars drawn with characters.

use super::Page;
use super::ink::Ink;
use super::layout::{GridColumn, fits, grid, hang, wrap};
use crate::bars::decimal;
use crate::{Align, BarItem, BarLayout, Bars, Tone};

/// The fill of the parts of a stack, in order; repeated when there are more parts.
const FILLS: [(char, char); 6] = [('█', '#'), ('▒', '='), ('▓', '+'), ('░', ':'), ('▚', '%'), ('▬', '~')];

impl Page {
    pub(super) fn bars(&self, bars: &Bars) -> Vec<String> {
        let mut title = self.paint(Ink::Strong, &bars.title);
        if let Some(max) = bars.max {
            title += &self.paint(Ink::Muted, format!(" (0 to {} {}", decimal(max), bars.unit).trim_end());
            title += &self.paint(Ink::Muted, ")");
        }
        let mut lines = wrap(&title, self.width());
        match bars.layout {
            BarLayout::Rows => self.bar_rows(bars, &mut lines),
            BarLayout::Stacked => self.bar_stack(bars, &mut lines),
        }
        lines
    }

    /// `label  ░███░░  figure  note`
    fn bar_rows(&self, bars: &Bars, lines: &mut Vec<String>) {
        let length = (self.width() / 3).min(40);
        let rows: Vec<Vec<String>> = bars.items.iter().map(|item| self.bar_row(bars, item, length)).collect();
        let (soft, rigid) = (GridColumn::default(), GridColumn { rigid: true, ..GridColumn::default() });
        let columns = [soft.clone(), rigid, soft.clone(), soft];
        if fits(&columns, &rows, self.width()) {
            return lines.extend(grid(&columns, rows, self.width(), ' '));
        }
        for item in &bars.items {
            let mut row = self.bar_row(bars, item, self.width());
            let bar = row.remove(1);
            lines.extend(wrap(&row.join(" "), self.width()));
            lines.push(bar);
        }
    }

    fn bar_row(&self, bars: &Bars, item: &BarItem, length: usize) -> Vec<String> {
        let (from, to) = cells(bars.span(item), length);
        let ink = if item.tone == Tone::Plain { Ink::Notice } else { item.tone.into() };
        let track = self.sign('░', '.').to_string();
        let bar = self.paint(Ink::Muted, &track.repeat(from))
            + &self.paint(ink, &self.sign('█', '#').to_string().repeat(to - from))
            + &self.paint(Ink::Muted, &track.repeat(length - to));
        let mut row = vec![self.clean(&item.label).into_owned(), bar, self.paint(item.tone.into(), &bars.figure(item))];
        row.extend(item.note.iter().map(|note| self.paint(Ink::Muted, note)));
        row
    }

    /// All parts on one line, then a legend line for each part with its figure and share.
    fn bar_stack(&self, bars: &Bars, lines: &mut Vec<String>) {
        let length = self.width();
        let rest = |count: usize| self.paint(Ink::Muted, &self.sign('·', '.').to_string().repeat(count));
        let (mut line, mut drawn, mut rows) = (String::new(), 0, Vec::new());
        for (i, item) in bars.items.iter().enumerate() {
            let (unicode, ascii) = FILLS[i % FILLS.len()];
            let fill = self.sign(unicode, ascii).to_string();
            let (from, to) = cells(bars.span(item), length);
            // A part too small for a column still takes one and shifts the following ones.
            let (from, to) = (from.max(drawn), to.max((drawn + usize::from(to > from)).min(length)));
            line += &rest(from.saturating_sub(drawn));
            line += &self.paint(item.tone.into(), &fill.repeat(to.saturating_sub(from)));
            drawn = drawn.max(to);
            let figure = self.paint(item.tone.into(), &bars.figure(item));
            let mut row = vec![
                self.paint(item.tone.into(), &fill),
                self.clean(&item.label).into_owned(),
                figure,
                bars.share(item),
            ];
            row.extend(item.note.iter().map(|note| self.paint(Ink::Muted, note)));
            rows.push(row);
        }
        lines.push(line + &rest(length.saturating_sub(drawn)));
        let (left, right) = (GridColumn::default(), GridColumn { align: Align::Right, ..GridColumn::default() });
        let columns = [left.clone(), left.clone(), right.clone(), right, left];
        if fits(&columns, &rows, self.width()) {
            lines.extend(grid(&columns, rows, self.width(), ' '));
        } else {
            lines.extend(rows.iter().flat_map(|row| hang(&format!("{} ", row[0]), &row[1..].join(" "), self.width())));
        }
    }
}

/// Where a span starts and ends on a bar of `length` characters; a span that is not empty takes at least one.
fn cells((from, to): (f64, f64), length: usize) -> (usize, usize) {
    let column = |fraction: f64| ((fraction * length as f64).round() as usize).min(length);
    let (mut start, mut end) = (column(from), column(to));
    if to > from && start == end {
        if end < length { end += 1 } else { start -= 1 }
    }
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_is_not_empty_is_visible_at_both_ends() {
        assert_eq!(cells((0.0, 0.001), 10), (0, 1));
        assert_eq!(cells((0.999, 1.0), 10), (9, 10));
        assert_eq!(cells((0.1, 0.2), 10), (1, 2));
        assert_eq!(cells((0.5, 0.5), 10), (5, 5));
        assert_eq!(cells((0.0, 1.0), 10), (0, 10));
    }
}
