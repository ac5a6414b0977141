//! Converts Markdown as used in `docs/` to a document: headings, paragraphs, lists, tables, fenced code.
//!
//! Absent on purpose: all other Markdown syntax.

use emmc_report::{Align, Block, Cell, Document, Section, Table};

/// A page as a document; its first heading is the title.
pub(crate) fn document(page: &str) -> Document {
    let mut document = Document::new("");
    let mut section = Section::new("about", "About");
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("# ") {
            document.title = plain(title);
        } else if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            close(&mut document, section);
            section = Section::new(title.to_lowercase().replace(' ', "-"), plain(title));
        } else if line.starts_with("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            section.push(Block::Code { language: "", text: code.join("\n") });
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            section.push(table(rows));
        } else if !line.trim().is_empty() {
            let mut text = line.trim().to_owned();
            // A paragraph continues until another element begins.
            let goes_on = |line: &&str| {
                let line = line.trim();
                !line.is_empty() && !["|", "#", "```", "- "].iter().any(|start| line.starts_with(start))
            };
            while let Some(more) = lines.next_if(goes_on) {
                text = text + " " + more.trim();
            }
            section.push(Block::Paragraph(plain(&text)));
        }
    }
    close(&mut document, section);
    document
}

fn close(document: &mut Document, section: Section) {
    if !section.blocks.is_empty() {
        document.sections.push(section);
    }
}

/// The cells of a row; `\|` is no border.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').strip_suffix('|').unwrap_or(line).replace("\\|", "\u{1}");
    inner.split('|').map(|cell| plain(cell.trim()).replace('\u{1}', "|")).collect()
}

fn table(mut rows: Vec<Vec<String>>) -> Block {
    let titles = rows.remove(0);
    let mut table = Table::new(titles.iter().map(|title| (title.as_str(), Align::Left)));
    for row in rows.into_iter().filter(|row| !row.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')))) {
        table.row(row.into_iter().map(Cell::from));
    }
    Block::Table(table)
}

/// Text without the marks of links, emphasis and code.
fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once('[') {
        plain += before;
        let parts = link.split_once("](").and_then(|(name, more)| Some((name, more.split_once(')')?.1)));
        match parts {
            Some((name, after)) if !name.contains('[') => {
                plain += name;
                rest = after;
            }
            _ => {
                plain.push('[');
                rest = link;
            }
        }
    }
    (plain + rest).replace("**", "").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_a_document() {
        let page = "# Title\nOne `code`,\ntwo [link](there.md).\n\n## Part\n| a | b\\|c |\n|---|---|\n| `1` | **2** |\n- x\n- y\n\
```sh\nrun [it]\n```\n";
        let document = document(page);
        assert_eq!(document.title, "Title");
        let [first, part] = &document.sections[..] else { panic!("{document:?}") };
        assert_eq!(first.blocks, [Block::Paragraph("One code, two link.".into())]);
        let [Block::Table(table), Block::Paragraph(x), Block::Paragraph(y), Block::Code { text, .. }] =
            &part.blocks[..]
        else {
            panic!("{part:?}")
        };
        assert_eq!((part.title.as_str(), x.as_str(), y.as_str(), text.as_str()), ("Part", "- x", "- y", "run [it]"));
        let words: Vec<&str> = table.rows.iter().flatten().map(|cell| cell.text.as_str()).collect();
        assert_eq!((table.columns[1].title.as_str(), words), ("b|c", vec!["1", "2"]));
    }
}
