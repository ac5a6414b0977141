use serde_json::json;

use super::*;
use crate::{Align, BarItem, Bars, Chart, Finding, KeyValue, Table, Tone};

fn rendered(document: &Document) -> String {
    html(document, &HtmlOptions { generated_by: "emmclab 0.1.0".to_owned() })
}

/// A document with this text in every place that holds text.
fn filled(text: &str) -> Document {
    let mut document = Document::new(text);
    document.subtitle = Some(text.to_owned());
    let section = document.section(text, text);
    let mut table = Table::new([(text, Align::Left), (text, Align::Right)]).caption(text);
    table.row([text]).row([text, text, text]);
    let finding = Finding::new(Severity::Critical, "id", text).evidence(text).advice(text).source(text.to_owned());
    section.paragraph(text).note(Tone::Bad, text).code("sh", text).push(table).push(vec![finding]);
    section.push(vec![KeyValue::new(text, text).note(text), KeyValue::new(text, text)]);
    let item = BarItem::range(text, 0.1, 0.6).value(text).note(text);
    section.push(Bars::rows(text, text).item(item.clone())).push(Bars::stacked(text, text).item(item));
    document.section("b", text);
    document.section("c", text);
    document
}

fn chart(text: &str) -> Chart {
    let spec = json!({ "title": text, "data": { "values": [{ "name": text }] }, "mark": "bar" });
    Chart { title: text.into(), description: text.into(), spec, text: vec![text.into()] }
}

/// The names of the elements that are open where the page ends, and the first that was closed out of order.
fn unbalanced(page: &str) -> (Vec<String>, Option<String>) {
    const VOID: [&str; 2] = ["meta", "br"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype comes first");
    while let Some(start) = rest.find('<') {
        let tag = &rest[start + 1..];
        let end = tag.find('>').expect("a tag ends");
        let name: String = tag.chars().skip_while(|c| *c == '/').take_while(char::is_ascii_alphanumeric).collect();
        rest = &tag[end + 1..];
        if tag.starts_with('/') {
            if open.pop().as_ref() != Some(&name) {
                return (open, Some(name));
            }
        } else if !VOID.contains(&name.as_str()) {
            // The content of these is not markup.
            if name == "script" || name == "style" {
                rest = &rest[rest.find(&format!("</{name}")).expect("a script ends")..];
            }
            open.push(name);
        }
    }
    (open, None)
}

#[test]
fn elements_are_closed_and_nested() {
    let mut document = filled("8GTF4R");
    assert_eq!(unbalanced(&rendered(&document)), (vec![], None));
    document.sections[0].push(chart("Erases"));
    assert_eq!(unbalanced(&rendered(&document)), (vec![], None));
    assert_eq!(unbalanced(&rendered(&Document::new("empty"))), (vec![], None));
}

#[test]
fn markup_and_controls_in_data_are_escaped() {
    let hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&\x1b[2J\u{202e}";
    let mut document = filled(hostile);
    let page = rendered(&document);
    assert_eq!(page.matches("<script").count(), 0);
    assert!(!page.contains("<img") && !page.contains('\x1b') && !page.contains('\u{202e}'));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("\\x1b[2J"));
    assert_eq!(unbalanced(&page), (vec![], None));

    document.sections[0].push(chart(hostile));
    let page = rendered(&document);
    // The licences, the configuration, one specification and four scripts.
    assert_eq!(page.matches("<script").count(), 7);
    assert!(!page.contains("<script>alert") && !page.contains("<img src=x"));
    assert_eq!(unbalanced(&page), (vec![], None));
}

#[test]
fn scripts_are_present_only_with_a_chart_and_run_by_hash() {
    let mut document = filled("x");
    let page = rendered(&document);
    assert!(!page.contains("<script") && !page.contains("script-src") && page.len() < 40_000, "{} bytes", page.len());
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:;"));
    document.sections[0].push(chart("x"));
    let page = rendered(&document);
    assert_eq!(page.matches("'sha256-").count(), 4);
    assert!(!page.contains("'unsafe-eval'") && page.contains("University of Washington"));
}

#[test]
fn the_page_loads_no_external_file() {
    let mut document = filled("x");
    document.sections[0].push(chart("x"));
    let page = rendered(&document);
    let ours = &page[..page.find("University of Washington").unwrap()];
    for reference in ["http:", "https:", " src=", "url(", "@import", "<link"] {
        assert!(!ours.contains(reference), "{reference}");
    }
    assert!(!page.contains("sourceMappingURL"));
}

#[test]
fn contents_link_to_sections_and_counts_to_severities() {
    let mut document = Document::new("t");
    for (id, title) in [("one", "One"), ("two words", "Two"), ("three", "Three")] {
        let finding = Finding::new(Severity::Warning, "id", title);
        document.section(id, title).push(vec![finding, Finding::new(Severity::Good, "id", "g")]);
    }
    let page = rendered(&document);
    for id in ["one", "two-words", "three"] {
        assert_eq!(page.matches(&format!("<a href=\"#{id}\">")).count(), 1);
        assert_eq!(page.matches(&format!("<section id=\"{id}\">")).count(), 1);
    }
    assert!(page.contains(r#"<li class="severity warning">3 warnings</li><li class="severity good">3 good</li>"#));
    document.sections.truncate(2);
    assert!(!rendered(&document).contains("<nav"), "two sections need no contents");
}

#[test]
fn the_sheet_covers_dark_narrow_and_print() {
    for rule in ["prefers-color-scheme: dark", "max-width: 40rem", "@media print", "color-scheme: light dark"] {
        assert!(STYLE.contains(rule), "{rule}");
    }
    let page = rendered(&filled("x"));
    for tone in ["good", "notice", "warn", "bad", "muted"] {
        assert!(STYLE.contains(&format!(".tone-{tone} ")) && STYLE.contains(&format!(".fill-{tone} ")), "{tone}");
    }
    for severity in Severity::ALL {
        assert!(STYLE.contains(&format!(".{} {{", severity.word())));
    }
    assert!(page.contains(r#"<footer class="foot">emmclab 0.1.0</footer>"#));
}

#[test]
fn findings_are_counted_once() {
    let mut document = Document::new("A part");
    let critical = || vec![Finding::new(Severity::Critical, "id", "worn")];
    document.section("findings", "Findings").push(critical());
    document.section("health", "Health").push(critical());
    let page = html(&document, &HtmlOptions::default());
    assert!(page.contains(r#"<li class="severity critical">1 critical</li></ul>"#), "{page}");
}

/// The part of the sheet for paper.
fn print_rules() -> &'static str {
    STYLE.split("@media print").nth(1).unwrap()
}

#[test]
fn paper_leaves_out_folded_sections_and_shows_findings_whole() {
    let hidden = "section.detail:has(> details:not([open])):not(#identity, #health, #capacity) { display: none; }";
    assert!(print_rules().contains(hidden));
    assert!(print_rules().contains(".finding details::details-content") && print_rules().contains(".contents"));
    let mut document = Document::new("A part");
    document.section("findings", "Findings").push(vec![Finding::new(Severity::Notice, "id", "worn")]);
    let section = document.section("configuration", "Configuration").paragraph("x");
    section.is_detail = true;
    // The rule names what the page has: a section with this class whose child is closed.
    let page = rendered(&document);
    assert!(page.contains(r#"<section class="detail" id="configuration""#), "{page}");
    assert!(page.contains("<details class=\"fold\">") && !page.contains("<details open"), "{page}");
}
