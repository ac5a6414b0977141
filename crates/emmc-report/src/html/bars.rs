//! Bars as SVG: shapes are printed where backgrounds are not.

use maud::{Markup, html};

use super::blocks::{prose, tone_class};
use crate::bars::decimal;
use crate::visible::visible;
use crate::{BarItem, BarLayout, Bars, Tone};

/// Colours of plain parts, used in turn.
const SERIES: usize = 6;
/// The share of a stack's width below which a part would be invisible.
const SHARE_MIN: f64 = 0.004;

pub(super) fn bars(bars: &Bars) -> Markup {
    html! {
        div.scroll {
            @match bars.layout {
                BarLayout::Rows => (rows(bars)),
                BarLayout::Stacked => (stack(bars)),
            }
        }
    }
}

fn rows(bars: &Bars) -> Markup {
    let ticks = ticks(bars.scale());
    let notes = bars.items.iter().any(|item| item.note.is_some());
    html! {
        table.bars {
            caption { (visible(&bars.title)) }
            @for item in &bars.items {
                tr {
                    th scope="row" { (visible(&item.label)) }
                    td.drawn { (bar(bars, item, &ticks)) }
                    td.figure { (figure(bars, item)) }
                    @if notes { td.note-text { @if let Some(note) = &item.note { (prose(note)) } } }
                }
            }
            tr {
                th {}
                td.drawn { (axis(bars, &ticks)) }
                td {}
                @if notes { td {} }
            }
        }
    }
}

fn bar(bars: &Bars, item: &BarItem, ticks: &[f64]) -> Markup {
    let (from, to) = bars.span(item);
    html! {
        svg.bar aria-hidden="true" {
            rect.track width="100%" height="100%" rx="2" {}
            @for tick in ticks { line.grid x1=(percent(tick / bars.scale())) x2=(percent(tick / bars.scale())) y2="100%" {} }
            @if to > from {
                rect.(fill(item.tone)) x=(percent(from)) width=(percent((to - from).max(SHARE_MIN))) height="100%" rx="2" {}
            }
        }
    }
}

fn axis(bars: &Bars, ticks: &[f64]) -> Markup {
    let last = ticks.len().saturating_sub(1);
    html! {
        svg.axis aria-hidden="true" {
            @for (i, tick) in ticks.iter().enumerate() {
                @let at = tick / bars.scale();
                @let anchor = if i == 0 { "start" } else if at > 0.95 { "end" } else { "middle" };
                text x=(percent(at)) y="13" text-anchor=(anchor) {
                    (decimal(*tick)) @if i == last && !bars.unit.is_empty() { " " (visible(&bars.unit)) }
                }
            }
        }
    }
}

fn stack(bars: &Bars) -> Markup {
    let mut drawn = 0.0_f64;
    let parts: Vec<(&BarItem, String, f64, f64)> = (bars.items.iter().enumerate())
        .map(|(i, item)| {
            let (from, to) = bars.span(item);
            // An invisibly small part is drawn wider and shifts the following ones.
            let start = from.max(drawn).min(1.0 - SHARE_MIN);
            let end = if to > from { to.max(start + SHARE_MIN).min(1.0) } else { start };
            drawn = drawn.max(end);
            (item, part_class(item.tone, i), start, end)
        })
        .collect();
    let notes = bars.items.iter().any(|item| item.note.is_some());
    html! {
        h3 { (visible(&bars.title)) }
        svg.stack aria-hidden="true" {
            rect.track width="100%" height="100%" {}
            @for (_, class, start, end) in &parts {
                @if end > start { rect.part.(class) x=(percent(*start)) width=(percent(end - start)) height="100%" {} }
            }
        }
        table.parts {
            @for (item, class, ..) in &parts {
                tr {
                    th scope="row" {
                        svg.swatch aria-hidden="true" { rect.(class) width="100%" height="100%" rx="2" {} }
                        (visible(&item.label))
                    }
                    td.figure { (figure(bars, item)) }
                    td.share { (bars.share(item)) }
                    @if notes { td.note-text { @if let Some(note) = &item.note { (prose(note)) } } }
                }
            }
        }
    }
}

fn figure(bars: &Bars, item: &BarItem) -> Markup {
    let figure = bars.figure(item);
    html! { span.(tone_class(item.tone).unwrap_or("tone-plain")) { (visible(&figure)) } }
}

fn part_class(tone: Tone, index: usize) -> String {
    if tone == Tone::Plain { format!("series-{}", index % SERIES + 1) } else { fill(tone).to_owned() }
}

pub(super) fn fill(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "fill-plain",
        Tone::Good => "fill-good",
        Tone::Notice => "fill-notice",
        Tone::Warn => "fill-warn",
        Tone::Bad => "fill-bad",
        Tone::Muted => "fill-muted",
    }
}

pub(super) fn percent(fraction: f64) -> String {
    format!("{}%", decimal(fraction * 100.0))
}

/// Round numbers from zero to at most `max`, three to six of them.
pub(super) fn ticks(max: f64) -> Vec<f64> {
    let rough = max / 4.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(max);
    (0..6).map(|i| f64::from(i) * step).take_while(|tick| tick.is_finite() && *tick <= max + step / 1e6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside_the_bar() {
        assert_eq!(ticks(110.0), [0.0, 50.0, 100.0]);
        assert_eq!(ticks(100.0), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(ticks(7.5), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(ticks(1.0), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert!(ticks(f64::MAX).iter().all(|tick| tick.is_finite()));
        assert!(ticks(f64::MIN_POSITIVE).len() <= 6);
    }

    #[test]
    fn a_tiny_part_is_drawn_with_its_figure() {
        let bars = Bars::stacked("All", "MiB")
            .max(10_000.0)
            .item(BarItem::range("a", 0.0, 9999.0))
            .item(BarItem::range("b", 9999.0, 10_000.0));
        let html = stack(&bars).into_string();
        assert!(html.contains(r#"<rect class="part series-1" x="0%" width="99.99%" height="100%">"#), "{html}");
        assert!(html.contains(r#"<rect class="part series-2" x="99.6%" width="0.4%" height="100%">"#), "{html}");
        assert!(html.contains(r#"<span class="tone-plain">1 MiB</span>"#), "{html}");
        assert!(html.contains(r#"<td class="share">&lt; 0.1 %</td>"#), "{html}");
    }
}
