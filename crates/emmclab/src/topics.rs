//! The help topics: pages of the documentation, embedded in the binary.
//!
//! `topics/` holds links to the pages in `docs/`, so that each page exists once.

use emmc_report::Document;

use crate::markdown;

/// A page that `emmclab help` prints.
#[derive(Debug)]
pub(crate) struct Topic {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its subject, in a few words.
    pub(crate) about: &'static str,
    /// The page, as Markdown.
    page: &'static str,
}

/// Every topic.
pub(crate) const TOPICS: &[Topic] = &[
    Topic {
        name: "sources",
        about: "what a SOURCE can be: devices, saved files, virtual cards",
        page: include_str!("../topics/sources.md"),
    },
    #[cfg(feature = "sim")]
    Topic { name: "jobs", about: "the workloads of `sim run --job`", page: include_str!("../topics/jobs.md") },
    Topic { name: "sizes", about: "the notation of sizes and places", page: include_str!("../topics/sizes.md") },
    Topic { name: "exit-codes", about: "the meaning of exit codes", page: include_str!("../topics/exit-codes.md") },
];

impl Topic {
    /// The topic with a name; `exit codes` is `exit-codes`.
    pub(crate) fn named(words: &[String]) -> Option<&'static Self> {
        let name = words.join("-");
        TOPICS.iter().find(|topic| topic.name == name)
    }

    /// The page as a document.
    pub(crate) fn document(&self) -> Document {
        markdown::document(self.page)
    }
}

/// Every exit code with its meaning, and the paragraph on `check`, which has its own codes.
#[cfg(any(test, feature = "pages"))]
pub(crate) fn exit_codes() -> (Vec<[String; 2]>, String) {
    use emmc_report::Block;
    let (mut codes, mut check) = (Vec::new(), String::new());
    let Some(topic) = TOPICS.iter().find(|topic| topic.name == "exit-codes") else { return (codes, check) };
    for block in topic.document().sections.into_iter().flat_map(|section| section.blocks) {
        match block {
            Block::Table(table) => codes.extend(table.rows.iter().filter_map(|row| match &row[..] {
                [code, meaning] => Some([code.text.clone(), meaning.text.clone()]),
                _ => None,
            })),
            Block::Paragraph(text) if text.contains("emmclab check") => check = text,
            _ => {}
        }
    }
    (codes, check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_by_their_words() {
        let named = |words: &str| Topic::named(&words.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(named("exit codes").unwrap().name, "exit-codes");
        assert!(named("sizes").is_some() && named("nothing").is_none());
        for topic in TOPICS {
            assert!(!topic.document().sections.is_empty() && topic.page.len() > 500, "{}", topic.name);
        }
    }

    #[test]
    fn every_exit_code_is_in_the_page() {
        let (codes, check) = exit_codes();
        let numbers: Vec<&str> = codes.iter().map(|[code, _]| code.as_str()).collect();
        assert_eq!(numbers, ["0", "1", "2", "3", "4"]);
        assert!(check.contains("3 UNKNOWN"), "{check}");
    }
}
