//! The document as one self-contained HTML file: no network, no fonts, no other file.
//!
//! The page's own policy forbids every connection and, where there is no chart, every script. With a chart it allows
//! the bundled scripts by their hash, so that markup which slipped through the escaping still could not run.

mod bars;
mod blocks;
mod chart;
mod lead;
mod picture;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::visible::visible;
use crate::{Block, Document, Section, Severity};

const STYLE: &str = include_str!("../../assets/report.css");

/// Additional text of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtmlOptions {
    /// The footer: which program wrote the file and when.
    pub generated_by: String,
}

/// The document as the text of one HTML file.
pub fn html(document: &Document, options: &HtmlOptions) -> String {
    let charts =
        document.sections.iter().flat_map(|section| &section.blocks).any(|block| matches!(block, Block::Chart(_)));
    let contents = document.sections.len() > 2;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(charts));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (visible(&document.title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                div.page {
                    (head(document))
                    @if let Some(lead) = &document.lead { (lead::lead(lead)) }
                    div.with-contents[contents] {
                        @if contents { (table_of_contents(&document.sections)) }
                        main { @for section in &document.sections { (self::section(section)) } }
                    }
                    (foot(options, charts))
                }
                @if charts { (chart::scripts()) }
            }
        }
    }
    .into_string()
}

fn policy(charts: bool) -> String {
    // Charts set style attributes and bars are positioned by them; a style can load nothing under this policy.
    let scripts = if charts { format!(" script-src {};", chart::script_sources()) } else { String::new() };
    format!(
        "default-src 'none'; style-src 'unsafe-inline';{scripts} img-src data:; base-uri 'none'; form-action 'none'"
    )
}

fn head(document: &Document) -> Markup {
    let counts: Vec<(Severity, usize)> =
        Severity::ALL.iter().map(|&s| (s, count(document, s))).filter(|(_, n)| *n > 0).collect();
    html! {
        header.head {
            h1 { (visible(&document.title)) }
            @if let Some(subtitle) = &document.subtitle { p.subtitle { (visible(subtitle)) } }
            @if !counts.is_empty() {
                ul.counts aria-label="Findings" {
                    @for (severity, count) in counts { li.severity.(severity.word()) { (counted(count, severity)) } }
                }
            }
        }
    }
}

/// `1 warning`, `3 warnings`, `2 critical`.
fn counted(count: usize, severity: Severity) -> String {
    let is_noun = matches!(severity, Severity::Warning | Severity::Notice);
    format!("{count} {}{}", severity.word(), if is_noun && count != 1 { "s" } else { "" })
}

/// Other sections repeat findings, so only the section of findings counts if there is one.
fn count(document: &Document, severity: Severity) -> usize {
    let findings = document.sections.iter().find(|section| section.id == "findings");
    let counted = findings.map_or(document.sections.as_slice(), std::slice::from_ref);
    let blocks = counted.iter().flat_map(|section| &section.blocks);
    let findings = blocks.filter_map(|block| match block {
        Block::Findings(findings) | Block::Brief(findings) => Some(findings),
        _ => None,
    });
    findings.flatten().filter(|finding| finding.severity == severity).count()
}

fn table_of_contents(sections: &[Section]) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ul { @for section in sections { li { a href={ "#" (anchor(&section.id)) } { (visible(&section.title)) } } } }
        }
    }
}

fn section(section: &Section) -> Markup {
    if section.is_detail {
        return html! {
            section.detail id=(anchor(&section.id)) {
                details.fold {
                    summary { h2 { (visible(&section.title)) } }
                    @for block in &section.blocks { div.block { (blocks::block(block)) } }
                }
            }
        };
    }
    html! {
        section id=(anchor(&section.id)) {
            h2 { (visible(&section.title)) }
            @for block in &section.blocks { div.block { (blocks::block(block)) } }
        }
    }
}

fn foot(options: &HtmlOptions, charts: bool) -> Markup {
    html! {
        footer.foot {
            (visible(&options.generated_by))
            @if charts { ". Charts are drawn by " (chart::LIBRARIES) "; their licences are in the source of this page." }
        }
    }
}

/// An id that needs no quoting in a link.
fn anchor(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests;
