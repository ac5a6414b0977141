//! Tables: columns that do not fit are omitted, never stacked.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Page;
use super::ink::Ink;
use super::layout::{GAP, GridColumn, fits, grid, wrap};
use crate::{Align, Table};

/// The minimum number of columns shown on any terminal.
const KEPT: usize = 2;
/// The last column of a one-line table is never cut shorter.
const CUT_MIN: usize = 8;

impl Page {
    pub(super) fn table(&self, table: &Table) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(caption) = &table.caption {
            lines.extend(wrap(&self.clean(caption), self.width()));
        }
        if table.one_line {
            let kept = self.one_line_columns(table);
            lines.extend(self.one_line_rows(&table.only(&kept)));
            lines.extend(self.left_out(table, &kept));
            return lines;
        }
        let all = table.rows.iter().map(Vec::len).max().unwrap_or(0).max(table.columns.len());
        let mut kept: Vec<usize> = (0..all).collect();
        let is_optional = |column: &usize| table.columns.get(*column).is_some_and(|column| column.optional);
        while self.natural_width(table, &kept) > self.width() {
            let Some(at) = kept.iter().rposition(is_optional) else { break };
            kept.remove(at);
        }
        let (mut columns, mut rows) = self.cells(table, &kept);
        while kept.len() > KEPT && !fits(&columns, &rows, self.width()) {
            kept.pop();
            (columns, rows) = self.cells(table, &kept);
        }
        lines.extend(grid(&columns, rows, self.width(), self.sign('─', '-')));
        lines.extend(self.left_out(table, &kept));
        lines
    }

    /// The titles and the painted cells of some columns.
    fn cells(&self, table: &Table, kept: &[usize]) -> (Vec<GridColumn>, Vec<Vec<String>>) {
        let column = |index: &usize| {
            let column = table.columns.get(*index)?;
            let title = Some(self.paint(Ink::Strong, &column.title));
            Some(GridColumn { title, align: column.align, rigid: false })
        };
        let columns: Vec<GridColumn> = kept.iter().filter_map(column).collect();
        let cells = |row: &Vec<crate::Cell>| {
            let painted = |index: &usize| row.get(*index).map(|cell| self.paint(cell.tone.into(), &cell.text));
            kept.iter().filter_map(painted).collect()
        };
        (columns, table.rows.iter().map(cells).collect())
    }

    /// The width of some columns with every cell on one line.
    fn natural_width(&self, table: &Table, kept: &[usize]) -> usize {
        kept.iter().map(|index| self.column_width(table, *index)).sum::<usize>() + GAP * kept.len().saturating_sub(1)
    }

    fn column_width(&self, table: &Table, index: usize) -> usize {
        let title = table.columns.get(index).map_or(0, |column| self.clean(&column.title).width());
        let cells = table.rows.iter().filter_map(|row| row.get(index));
        cells.map(|cell| self.clean(&cell.text).width()).max().unwrap_or(0).max(title)
    }

    /// Which columns are not shown.
    fn left_out(&self, table: &Table, kept: &[usize]) -> Vec<String> {
        let is_left_out = |(index, title): &(usize, &str)| !kept.contains(index) && !title.is_empty();
        let titles = table.columns.iter().map(|column| column.title.as_str()).enumerate();
        let names: Vec<&str> = titles.filter(is_left_out).map(|(_, title)| title).collect();
        if names.is_empty() {
            return Vec::new();
        }
        wrap(&self.paint(Ink::Muted, &format!("(too narrow for: {})", names.join(", "))), self.width())
    }

    /// The columns of a one-line table that leave its second one readable: the last always stays.
    fn one_line_columns(&self, table: &Table) -> Vec<usize> {
        let mut kept: Vec<usize> = (0..table.columns.len()).collect();
        while kept.len() > KEPT + 1 {
            let fixed = kept.iter().take(kept.len() - 1).map(|index| self.column_width(table, *index) + GAP);
            if fixed.sum::<usize>() + CUT_MIN <= self.width() {
                break;
            }
            kept.remove(kept.len() - 2);
        }
        kept
    }

    /// Each row on one line, its last cell cut to the width.
    fn one_line_rows(&self, table: &Table) -> Vec<String> {
        let Some(last) = table.columns.len().checked_sub(1) else { return Vec::new() };
        let mut widths: Vec<usize> = (0..last).map(|index| self.column_width(table, index)).collect();
        let before = |widths: &[usize]| widths.iter().map(|width| width + GAP).sum::<usize>();
        // On a narrow page the widest column is cut too.
        let excess = (before(&widths) + CUT_MIN).saturating_sub(self.width());
        if let Some(widest) = widths.iter_mut().max() {
            *widest = widest.saturating_sub(excess).max(CUT_MIN);
        }
        let room = self.width().saturating_sub(before(&widths)).max(CUT_MIN);
        let line = |cells: Vec<(String, Ink)>| {
            let mut line = String::new();
            for (index, (text, ink)) in cells.into_iter().enumerate() {
                let text = self.cut(&text, widths.get(index).copied().unwrap_or(room));
                let fill = " ".repeat(widths.get(index).map_or(0, |width| width.saturating_sub(text.width())));
                let right = table.columns.get(index).is_some_and(|column| column.align == Align::Right);
                let painted = self.paint(ink, &text);
                line += &if right { fill + &painted } else { painted + &fill };
                line += if index == last { "" } else { "  " };
            }
            line.trim_end().to_owned()
        };
        let titles = table.columns.iter().map(|column| (column.title.clone(), Ink::Strong)).collect();
        let rows = table.rows.iter().map(|row| {
            let cells = row.iter().take(last + 1).map(|cell| (cell.text.clone(), Ink::from(cell.tone)));
            line(cells.collect())
        });
        let rows: Vec<String> = rows.collect();
        let width = rows.iter().map(|row| row.width()).max().unwrap_or(0);
        let rule = self.sign('─', '-').to_string().repeat(width);
        [line(titles), rule].into_iter().chain(rows).collect()
    }

    /// The text on one line of at most `width` columns, with an ellipsis if it was cut.
    pub(super) fn cut(&self, text: &str, width: usize) -> String {
        let text = self.clean(text);
        if text.width() <= width {
            return text.into_owned();
        }
        let sign = if self.options.unicode { "…" } else { "..." };
        let room = width.saturating_sub(sign.width());
        let mut used = 0;
        let kept: String = text
            .chars()
            .take_while(|letter| {
                used += letter.width().unwrap_or(0);
                used <= room
            })
            .collect();
        format!("{}{sign}", kept.trim_end_matches([' ', ',', ';', ':', '(']))
    }
}
