//! Drawings as SVG that needs no script: a matrix of cells, a line over rounds.

use maud::{Markup, html};

use super::{bars, blocks};
use crate::bars::decimal;
use crate::visible::visible;
use crate::{Curve, Drawing, Matrix, Picture};

/// A cell of a matrix, in user units.
const CELL: (f64, f64) = (64.0, 24.0);
/// Left of a matrix, for the names of its rows.
const LEFT: f64 = 84.0;
/// Above a matrix, for the names of its columns, which stand on two lines.
const TOP: f64 = 38.0;
/// A curve, in user units, and its margins: left, bottom.
const CURVE: (f64, f64) = (760.0, 240.0);
const MARGIN: (f64, f64) = (64.0, 44.0);
/// Shades from which dark text is readable on a dark page as well, and from which light text is on a light one.
const MIDDLE: f64 = 0.76;
const STRONG: f64 = 0.88;

pub(super) fn picture(picture: &Picture) -> Markup {
    html! {
        figure.drawing {
            h3 { (visible(&picture.title)) }
            p.caption { (visible(&picture.caption)) }
            @match &picture.drawing {
                Drawing::Matrix(matrix) => (self::matrix(matrix)),
                Drawing::Curve(curve) => (self::curve(curve)),
            }
            details { summary { "the figures" } (blocks::table(&picture.table)) }
        }
    }
}

fn matrix(matrix: &Matrix) -> Markup {
    let columns = matrix.columns.len();
    let width = LEFT + CELL.0 * columns as f64;
    let height = TOP + CELL.1 * matrix.rows.len() as f64;
    html! {
        svg.matrix viewBox={ "0 0 " (width) " " (height) } style={ "max-width:" (width * 1.15) "px" } role="img" {
            @for (at, column) in matrix.columns.iter().enumerate() {
                @let (first, second) = split(column);
                @let x = LEFT + CELL.0 * (at as f64 + 0.5);
                text.axis x=(x) y="14" text-anchor="middle" { (visible(first)) }
                text.axis x=(x) y="28" text-anchor="middle" { (visible(second)) }
            }
            text.axis x=(LEFT - 8.0) y="28" text-anchor="end" { (visible(&matrix.rows_title)) }
            @for (line, row) in matrix.rows.iter().enumerate() {
                @let y = TOP + CELL.1 * line as f64;
                text.axis x=(LEFT - 8.0) y=(y + 16.0) text-anchor="end" { (visible(row)) }
                @for (at, value) in matrix.values.get(line).into_iter().flatten().enumerate() {
                    @if let Some(value) = value {
                        (cell(matrix, *value, LEFT + CELL.0 * at as f64, y))
                    }
                }
            }
        }
        p.legend { "Each cell in " (visible(&matrix.unit)) "; a stronger colour is faster, on a logarithmic scale." }
    }
}

fn cell(matrix: &Matrix, value: f64, x: f64, y: f64) -> Markup {
    let shade = matrix.shade(value);
    let class = match shade {
        STRONG.. => "on-strong",
        MIDDLE.. => "on-middle",
        _ => "on-weak",
    };
    html! {
        rect.cell x=(x + 1.0) y=(y + 1.0) width=(CELL.0 - 2.0) height=(CELL.1 - 2.0) rx="2"
            fill-opacity=(format!("{:.2}", 0.08 + 0.92 * shade)) {}
        text.(class) x=(x + CELL.0 / 2.0) y=(y + 16.0) text-anchor="middle" { (short(value)) }
    }
}

/// A name on two lines: `random` and `read`.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once(' ').unwrap_or(("", name))
}

/// Three digits that count, thousands as `k`.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 99_950.0 => format!("{:.0}k", value / 1e3),
        v if v >= 9_995.0 => format!("{:.1}k", value / 1e3),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn curve(curve: &Curve) -> Markup {
    let ends = |part: fn(&(f64, f64)) -> f64| {
        curve.points.iter().map(part).fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ((left, right), (_, top)) = (ends(|point| point.0), ends(|point| point.1));
    let top = if top > 0.0 { top * 1.05 } else { 1.0 };
    let x = |value: f64| MARGIN.0 + (value - left) / (right - left).max(1e-9) * (CURVE.0 - MARGIN.0 - 12.0);
    let y = |value: f64| (CURVE.1 - MARGIN.1) * (1.0 - value / top) + 8.0;
    let path: Vec<String> = curve.points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
    let ticks = bars::ticks(top);
    html! {
        svg.curve viewBox={ "0 0 " (CURVE.0) " " (CURVE.1) } role="img" {
            @for tick in &ticks {
                @let height = format!("{:.1}", y(*tick));
                line.rule x1=(MARGIN.0) x2=(CURVE.0 - 12.0) y1=(height) y2=(height) {}
                text.axis x=(MARGIN.0 - 8.0) y=(format!("{:.1}", y(*tick) + 4.0)) text-anchor="end" { (decimal(*tick)) }
            }
            polyline.line points=(path.join(" ")) {}
            @for point in &path {
                @let (px, py) = point.split_once(',').unwrap_or_default();
                circle.dot cx=(px) cy=(py) r="2.5" {}
            }
            @for (at, anchor) in [(left, "start"), (right, "end")] {
                text.axis x=(format!("{:.1}", x(at))) y=(CURVE.1 - 20.0) text-anchor=(anchor) { (decimal(at)) }
            }
            text.axis x=((CURVE.0 + MARGIN.0) / 2.0) y=(CURVE.1 - 4.0) text-anchor="middle" {
                (visible(&curve.x_title))
            }
        }
        p.legend { "Vertical: " (visible(&curve.y_title)) "." }
    }
}
