//! The verdict: its lines, and its bars side by side.

use maud::{Markup, html};

use super::bars::fill;
use super::blocks::{prose, tone_class};
use crate::visible::visible;
use crate::{BarLayout, Bars, Lead, LeadLine};

/// The share of a bar's width below which a part would be invisible.
const SHARE_MIN: f64 = 0.006;

pub(super) fn lead(lead: &Lead) -> Markup {
    html! {
        div.lead {
            dl.answer { @for (index, line) in lead.lines.iter().enumerate() {
                @let again = index > 0 && lead.lines[index - 1].label == line.label;
                dt { @if !again { (line.label) } }
                dd { (answer(line)) }
            } }
            @if !lead.pictures.is_empty() {
                div.panels { @for bars in &lead.pictures { (panel(bars)) } }
            }
        }
    }
}

fn answer(line: &LeadLine) -> Markup {
    let text = visible(&line.text);
    html! {
        @if line.is_command { code { (text) } } @else {
            span.(tone_class(line.tone).unwrap_or("tone-plain")) { (prose(&line.text)) }
        }
        @if let Some(note) = &line.note { span.why { (prose(note)) } }
    }
}

/// Stacked bars, each below its name: narrow enough for three side by side.
fn panel(bars: &Bars) -> Markup {
    html! {
        figure.panel {
            figcaption { (visible(&bars.title)) }
            @for item in &bars.items {
                @let (from, to) = bars.span(item);
                div.item {
                    span { (visible(&item.label)) }
                    span.figure.(tone_class(item.tone).unwrap_or("tone-plain")) { (visible(&bars.figure(item))) }
                }
                svg.bar aria-hidden="true" {
                    rect.track width="100%" height="100%" rx="2" {}
                    @if from > 0.0 && bars.layout == BarLayout::Rows {
                        rect.before.(fill(item.tone)) width=(super::bars::percent(from)) height="100%" {}
                    }
                    @if to > from {
                        rect.(fill(item.tone)) x=(super::bars::percent(from))
                            width=(super::bars::percent((to - from).max(SHARE_MIN))) height="100%" rx="2" {}
                    }
                }
            }
        }
    }
}
