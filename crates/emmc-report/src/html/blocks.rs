//! The blocks of words: text, names and values, tables, findings.

use maud::{Markup, html};

use super::{bars, chart, picture};
use crate::text::note_word;
use crate::visible::{visible, visible_lines};
use crate::{Align, Block, Cell, Finding, KeyValue, Severity, Table, Tone};

pub(super) fn block(block: &Block) -> Markup {
    match block {
        Block::Paragraph(text) => html! { p { (prose(text)) } },
        Block::KeyValues(pairs) => key_values(pairs),
        Block::Table(table) => self::table(table),
        Block::Findings(findings) => html! { ul.findings { @for finding in findings { (self::finding(finding)) } } },
        Block::Brief(findings) => html! { ul.findings.brief { @for finding in findings { (self::folded(finding)) } } },
        Block::Picture(picture) => picture::picture(picture),
        Block::Bars(bars) => bars::bars(bars),
        Block::Chart(chart) => chart::chart(chart),
        Block::Code { language, text } => html! {
            div.code {
                div.language { (language) }
                pre { code { (visible_lines(text)) } }
            }
        },
        Block::Note(tone, text) => html! {
            div.note role="note" {
                span.severity.(severity_of(*tone).word()) { (note_word(*tone)) }
                p { (prose(text)) }
            }
        },
    }
}

fn key_values(pairs: &[KeyValue]) -> Markup {
    let notes = pairs.iter().any(|pair| pair.note.is_some());
    html! {
        div.scroll {
            table.pairs {
                @for pair in pairs {
                    tr {
                        th scope="row" { (visible(&pair.key)) }
                        td.value { (cell(&pair.value)) }
                        @if notes { td.note-text { @if let Some(note) = &pair.note { (prose(note)) } } }
                    }
                }
            }
        }
    }
}

pub(super) fn table(table: &Table) -> Markup {
    let align = |i: usize| table.columns.get(i).map(|column| column.align).unwrap_or_default();
    let width = table.rows.iter().map(Vec::len).max().unwrap_or(0).max(table.columns.len());
    html! {
        div.scroll tabindex="0" role="region" aria-label=[table.caption.as_deref().map(visible)] {
            table.rows {
                @if let Some(caption) = &table.caption { caption { span { (prose(caption)) } } }
                thead {
                    tr { @for i in 0..width {
                        th.right[align(i) == Align::Right] scope="col" {
                            @if let Some(column) = table.columns.get(i) { (visible(&column.title)) }
                        }
                    } }
                }
                tbody {
                    @for row in &table.rows {
                        tr { @for i in 0..width {
                            td.right[align(i) == Align::Right] { @if let Some(cell) = row.get(i) { (self::cell(cell)) } }
                        } }
                    }
                }
            }
        }
    }
}

fn finding(finding: &Finding) -> Markup {
    html! {
        li.finding {
            div { span.severity.(finding.severity.word()) { (finding.severity.word()) } }
            div {
                p.what { (prose(&finding.what)) }
                (detail(finding))
            }
        }
    }
}

/// One line; a click shows the rest.
fn folded(finding: &Finding) -> Markup {
    html! {
        li.finding {
            div { span.severity.(finding.severity.word()) { (finding.severity.word()) } }
            details { summary { (prose(&finding.what)) } (detail(finding)) }
        }
    }
}

/// Evidence and advice of a finding.
fn detail(finding: &Finding) -> Markup {
    html! {
        @if let Some(summary) = &finding.summary { p.summary { (prose(summary)) } }
        @for (class, lines) in [("evidence", &finding.evidence.texts()), ("advice", &finding.advice)] {
            @if !lines.is_empty() { ul.(class) { @for line in lines { li { (prose(line)) } } } }
        }
        @for command in &finding.commands {
            p.command { code { (visible(&command.command)) } span.why { (prose(&command.why)) } }
        }
        @if let Some(source) = &finding.source { p.source { "Source: " (prose(source)) } }
    }
}

/// A value in its tone; machine words are in monospace.
pub(super) fn cell(cell: &Cell) -> Markup {
    let text = visible(&cell.text);
    let machine = is_machine_word(&text);
    match tone_class(cell.tone) {
        None if !machine => html! { (text) },
        class => html! { span.(class.unwrap_or("tone-plain")).machine[machine] { (text) } },
    }
}

/// A hexadecimal number, a path or a register name.
fn is_machine_word(text: &str) -> bool {
    let path = text.len() > 1 && text.starts_with('/') && !text.contains(' ');
    let name = text.contains('_') || text.starts_with("0x");
    path || name && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Running text, with text between backticks as code.
pub(super) fn prose(text: &str) -> Markup {
    let text = visible(text);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len() % 2 == 0 {
        return html! { (text) };
    }
    html! { @for (i, part) in parts.iter().enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
}

pub(super) fn tone_class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some("tone-good"),
        Tone::Notice => Some("tone-notice"),
        Tone::Warn => Some("tone-warn"),
        Tone::Bad => Some("tone-bad"),
        Tone::Muted => Some("tone-muted"),
    }
}

/// The severity whose look a note of this tone shares.
fn severity_of(tone: Tone) -> Severity {
    match tone {
        Tone::Plain | Tone::Muted => Severity::Unknown,
        Tone::Good => Severity::Good,
        Tone::Notice => Severity::Notice,
        Tone::Warn => Severity::Warning,
        Tone::Bad => Severity::Critical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pairs_of_backticks_make_code() {
        assert_eq!(prose("run `mmc <x>` now").into_string(), "run <code>mmc &lt;x&gt;</code> now");
        assert_eq!(prose("one ` alone").into_string(), "one ` alone");
    }

    #[test]
    fn identifiers_are_distinguished_from_words() {
        for (text, machine) in [
            ("0x03", true),
            ("/dev/mmcblk0", true),
            ("WR_REL_SET", true),
            ("R/W/E_P", false),
            ("/", false),
            ("8 bits_", false),
        ] {
            assert_eq!(is_machine_word(text), machine, "{text}");
        }
        assert_eq!(cell(&Cell::new("off", Tone::Warn)).into_string(), r#"<span class="tone-warn">off</span>"#);
        assert_eq!(cell(&"off".into()).into_string(), "off");
    }
}
