//! Tables computed by a suite; long ones become charts.

use emmc_workload::{Grid, GridLine, Outcome};
use serde_json::json;

use super::number;
use crate::{Align, Block, Cell, Chart, Curve, Document, Drawing, Picture, Table, Tone};

/// A table with at least this many rows becomes a chart.
const ROWS_MAX: usize = 64;
/// A table of numbers with at least this many rows is drawn.
const CURVE_MIN: usize = 5;
/// Rows of a chart that text shows.
const TEXT_ROWS: usize = 16;

/// A section for each.
pub(super) fn grids(outcome: &Outcome, document: &mut Document) {
    for grid in &outcome.grids {
        document.section(anchor(&grid.name), grid.name.clone()).push(block(grid, &grid.caption));
    }
}

/// A grid as a table under this caption, as a drawing where its rows are rising numbers, or as a chart.
pub(super) fn block(grid: &Grid, caption: &str) -> Block {
    if grid.lines.len() > ROWS_MAX {
        return chart(grid).into();
    }
    let points = points(grid);
    let is_curve = grid.lines.len() >= CURVE_MIN && points.len() == grid.lines.len();
    if !is_curve || !points.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return table(grid).caption(caption).into();
    }
    let curve = Curve { x_title: grid.rows.clone(), y_title: title(grid, 0), points };
    Picture {
        title: format!("{} ({})", grid.name, title(grid, 0)),
        caption: caption.into(),
        drawing: Drawing::Curve(curve),
        table: table(grid).caption(caption),
    }
    .into()
}

/// The first column over the rows, where both are numbers.
fn points(grid: &Grid) -> Vec<(f64, f64)> {
    let point = |line: &GridLine| Some((line.row.parse::<f64>().ok()?, line.values.first().copied().flatten()?));
    grid.lines.iter().filter_map(point).collect()
}

/// A name as an anchor: lower-case words joined by `-`.
pub(super) fn anchor(name: &str) -> String {
    let lower = name.to_lowercase();
    let words: Vec<&str> =
        lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn title(grid: &Grid, index: usize) -> String {
    match grid.columns.get(index) {
        Some(column) if column.unit.is_empty() => column.name.clone(),
        Some(column) => format!("{}, {}", column.name, column.unit),
        None => String::new(),
    }
}

fn table(grid: &Grid) -> Table {
    let titles: Vec<String> = (0..grid.columns.len()).map(|index| title(grid, index)).collect();
    let first = std::iter::once((grid.rows.as_str(), Align::Right));
    let mut table = Table::new(first.chain(titles.iter().map(|title| (title.as_str(), Align::Right))));
    for line in &grid.lines {
        table.row(std::iter::once(Cell::from(line.row.clone())).chain(line.values.iter().map(|value| cell(*value))));
    }
    table
}

fn cell(value: Option<f64>) -> Cell {
    match value {
        Some(value) => Cell::from(number(value)),
        None => Cell::new("-", Tone::Muted),
    }
}

/// The first column over the rows, which are numbers here.
fn chart(grid: &Grid) -> Chart {
    let value = |line: &GridLine| line.values.first().copied().flatten();
    let points: Vec<_> = grid
        .lines
        .iter()
        .filter_map(|line| Some(json!({"x": line.row.parse::<f64>().ok()?, "y": value(line)?})))
        .collect();
    let step = grid.lines.len().div_ceil(TEXT_ROWS).max(1);
    let rows = grid.lines.chunks(step).map(|lines| {
        let known = || lines.iter().filter_map(value);
        let (least, most) = known().fold((f64::MAX, f64::MIN), |(least, most), y| (least.min(y), most.max(y)));
        format!("{:>12}  {} to {}", lines[0].row, number(least), number(most))
    });
    Chart {
        title: format!("{} ({})", grid.name, title(grid, 0)),
        description: grid.caption.clone(),
        text: rows.collect(),
        spec: json!({
            "data": {"values": points},
            "height": 220,
            "mark": {"type": "point", "tooltip": true, "size": 8},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "title": grid.rows},
                "y": {"field": "y", "type": "quantitative", "title": title(grid, 0)}
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: usize) -> Grid {
        let mut grid = Grid::new("g", "place", &[("time", "ms"), ("share", "")], "caption");
        for row in 0..rows {
            grid.lines.push(GridLine { row: row.to_string(), values: vec![Some(row as f64), None] });
        }
        grid
    }

    #[test]
    fn a_short_grid_is_a_table_with_units_in_its_titles() {
        let table = table(&grid(2));
        let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles, ["place", "time, ms", "share"]);
        assert_eq!(table.rows[1][2].text, "-");
    }

    #[test]
    fn rounds_are_drawn_and_named_rows_are_not() {
        let Block::Picture(picture) = block(&grid(12), "caption") else { panic!("no picture") };
        let Drawing::Curve(curve) = picture.drawing else { panic!("no curve") };
        assert_eq!((curve.points.len(), curve.points[11]), (12, (11.0, 11.0)));
        assert_eq!(picture.table.rows.len(), 12);
        let mut named = grid(12);
        named.lines[3].row = "4 MiB".into();
        assert!(matches!(block(&named, "caption"), Block::Table(_)));
    }

    #[test]
    fn anchors_are_words() {
        assert_eq!(anchor("align, read, 16KiB"), "align-read-16kib");
    }

    #[test]
    fn a_long_grid_is_a_chart_of_every_point_and_a_few_lines() {
        let chart = chart(&grid(512));
        assert_eq!(chart.spec["data"]["values"].as_array().map(Vec::len), Some(512));
        assert_eq!(chart.text.len(), TEXT_ROWS);
        assert!(chart.text[0].ends_with("0 to 31.0"), "{}", chart.text[0]);
    }
}
