//! Lines of a given width: wrapped text, hanging indents, and grids of wrapped cells.

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, TableComponent, Width, presets::NOTHING,
};
use unicode_width::UnicodeWidthStr;

use crate::Align;

/// Columns between two columns of a grid.
pub(crate) const GAP: usize = 2;
/// A word longer than this may be broken to make its column narrower; one register name is that long.
const LONGEST_WORD: usize = 32;

/// One column of a grid.
#[derive(Clone, Debug, Default)]
pub(crate) struct GridColumn {
    pub(crate) title: Option<String>,
    pub(crate) align: Align,
    /// Never narrower than its widest cell.
    pub(crate) rigid: bool,
}

/// The text in lines of at most `width` columns; an empty text is one empty line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width {
        return vec![text.to_owned()];
    }
    grid(&[GridColumn::default()], vec![vec![text.to_owned()]], width, ' ')
}

/// The text wrapped after a prefix, with the lines that follow indented by the prefix's width.
pub(crate) fn hang(prefix: &str, text: &str, width: usize) -> Vec<String> {
    let indent = prefix.width();
    let lines = wrap(text, width.saturating_sub(indent).max(1));
    let blank = " ".repeat(indent);
    lines.iter().enumerate().map(|(i, line)| format!("{}{line}", if i == 0 { prefix } else { &blank })).collect()
}

/// Whether the cells fit side by side without breaking a word of ordinary length.
pub(crate) fn fits(columns: &[GridColumn], rows: &[Vec<String>], width: usize) -> bool {
    let words = longest_words(columns, rows);
    words.iter().sum::<usize>() + GAP * words.len().saturating_sub(1) <= width
}

/// The least width of each column: that of its longest word, as far as it is kept whole. A figure stays with its unit.
fn longest_words(columns: &[GridColumn], rows: &[Vec<String>]) -> Vec<usize> {
    let longest = |text: &str| text.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0).min(LONGEST_WORD);
    let mut widths: Vec<usize> = columns.iter().map(|c| c.title.as_deref().map_or(0, longest)).collect();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (at, (width, cell)) in widths.iter_mut().zip(row).enumerate() {
            let is_figure = columns.get(at).is_some_and(|column| column.align == Align::Right);
            let least = if is_figure { cell.width().min(LONGEST_WORD) } else { longest(cell) };
            *width = least.max(*width);
        }
    }
    widths
}

/// Cells in aligned columns, wrapped so that the whole takes at most `width` columns; `rule` underlines the titles.
pub(crate) fn grid(columns: &[GridColumn], rows: Vec<Vec<String>>, width: usize, rule: char) -> Vec<String> {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(columns_u16(width));
    if columns.iter().any(|column| column.title.is_some()) {
        table.set_style(TableComponent::HeaderLines, rule);
        table.set_header(Row::from(columns.iter().map(|column| column.title.clone().unwrap_or_default())));
    }
    let words = fits(columns, &rows, width).then(|| longest_words(columns, &rows));
    for row in rows {
        table.add_row(Row::from(row.into_iter().map(Cell::new)));
    }
    let natural = table.column_max_content_widths();
    let last = natural.len().saturating_sub(1);
    for (i, column) in table.column_iter_mut().enumerate() {
        let gap = if i == last { 0 } else { GAP };
        column.set_padding((0, columns_u16(gap)));
        let spec = columns.get(i).cloned().unwrap_or_default();
        if spec.align == Align::Right {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let least = words.as_ref().and_then(|words| words.get(i)).map(|word| Width::Fixed(columns_u16(word + gap)));
        if spec.rigid {
            let whole = natural.get(i).copied().unwrap_or(0).saturating_add(columns_u16(gap));
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(whole)));
        } else if let Some(least) = least {
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
    }
    let mut lines: Vec<String> = table.lines().map(|line| line.trim_end_matches(' ').to_owned()).collect();
    // The line under the titles has gaps and is too long; a continuous line separates titles and rows better.
    let is_rule = |line: &str| line.contains(rule) && line.chars().all(|c| c == rule || c == ' ');
    if let Some(at) = lines.iter().position(|line| is_rule(line)) {
        lines[at].clear();
        lines[at] = rule.to_string().repeat(lines.iter().map(|line| line.width()).max().unwrap_or(0));
    }
    lines
}

fn columns_u16(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words_with_a_hanging_indent() {
        assert_eq!(wrap("one two three", 20), ["one two three"]);
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(hang("- ", "one two three", 11), ["- one two", "  three"]);
    }

    #[test]
    fn a_word_wider_than_the_line_is_broken_and_nothing_is_lost() {
        let word = "0123456789abcdef".repeat(4);
        let lines = wrap(&word, 10);
        assert!(lines.iter().all(|line| line.width() <= 10), "{lines:?}");
        assert_eq!(lines.concat(), word);
    }

    #[test]
    fn a_grid_fits_if_its_longest_words_fit() {
        let columns = [GridColumn::default(), GridColumn { title: Some("title".into()), ..GridColumn::default() }];
        let rows = vec![vec!["aa bbb".to_owned(), "c".to_owned()]];
        assert!(fits(&columns, &rows, 10));
        assert!(!fits(&columns, &rows, 9));
    }

    #[test]
    fn a_figure_stays_with_its_unit() {
        let right = GridColumn { align: Align::Right, ..GridColumn::default() };
        let rows = vec![vec!["some words".to_owned(), "285.74 ms".to_owned()]];
        assert_eq!(grid(&[GridColumn::default(), right.clone()], rows.clone(), 16, ' '), ["some   285.74 ms", "words"]);
        assert!(!fits(&[GridColumn::default(), right], &rows, 15));
    }
}
