//! Results of `trust` that `study` refuses, its page, and its document.

use crate::support::{emmclab, save, scratch};

const CARD: &str = "sim:generic-8g";

/// What `trust` says of a card that is stuck, as a file in this folder.
fn stuck(folder: &std::path::Path, card: &str) -> String {
    let log = save(folder, "log", "mmc0: Card stuck being busy! __mmc_poll_for_busy\n");
    save(folder, "stuck.json", emmclab(["trust", "--registers", card, "--log", &log, "--json"]).exits(1).stdout)
}

#[test]
fn a_bad_or_foreign_result_is_one_clear_error() {
    let folder = scratch("refused");
    let own = stuck(&folder, CARD);
    let text = std::fs::read_to_string(&own).unwrap();
    let bad = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        save(&folder, name, text.replace(from, to))
    };
    let cases = [
        (
            save(&folder, "none", "no result\n"),
            "expected the output of `trust --json`: expected ident at line 1 column 2",
        ),
        (save(&folder, "cut", &text[..text.len() / 2]), "expected the output of `trust --json`: EOF while parsing"),
        (
            bad("schema", "emmclab.trust/1", "emmclab.check/1"),
            "its schema is \"emmclab.check/1\"; expected emmclab.trust/1",
        ),
        (bad("id", "trust-stuck", "stuck"), "findings[0].id is \"stuck\"; expected an id that `trust` gives"),
        (
            bad("good", "\"severity\": \"critical\",\n  \"w", "\"severity\": \"good\",\n  \"w"),
            "severity is good; expected critical",
        ),
        (bad("cid", "\"cid\": \"", "\"cid\": \"x"), "cid"),
        (folder.join("missing").display().to_string(), "cannot read"),
        ("/dev/zero".into(), "expected a file or a pipe"),
    ];
    for (file, says) in cases {
        let refused = emmclab(["study", CARD, "--trust", &file]).exits(2);
        assert!(refused.stderr.contains(&file) && refused.stderr.contains(says), "{says}: {}", refused.stderr);
        assert_eq!((refused.stdout.as_str(), refused.stderr.lines().count()), ("", 1), "{file}");
    }
    // The same result of another card.
    let refused = emmclab(["study", "sim:odroid-64g", "--trust", &own]).exits(2);
    let says = [&own, "it is of a card with CID fe014e454c303038", "the studied card has "];
    assert!(says.iter().all(|says| refused.stderr.contains(*says)), "{}", refused.stderr);
    assert_eq!((refused.stdout.as_str(), refused.stderr.lines().count()), ("", 1));
}

#[test]
fn a_result_without_a_cid_is_marked_in_its_evidence() {
    let folder = scratch("refused_no_cid");
    let dump = super::registers();
    let of_dump = stuck(&folder, &dump);
    let marked = |source: &str, says: &str| {
        let study = emmclab(["study", source, "--trust", &of_dump, "--json"]).exits(1).json();
        let finding = study["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == "trust-stuck");
        let last = finding.unwrap()["evidence"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        assert_eq!(last, format!("{says} has no CID: it may be of a different card"));
    };
    marked(CARD, &of_dump);
    let of_card = stuck(&folder, CARD);
    let study = emmclab(["study", CARD, "--trust", &of_card]).exits(1);
    assert!(!study.stdout.contains("different card"), "{}", study.stdout);
}

#[test]
#[cfg(feature = "html")]
fn the_page_leads_with_the_verdict_and_never_replaces_the_result() {
    let folder = scratch("refused_page");
    let own = stuck(&folder, CARD);
    let page = folder.join("page.html").display().to_string();
    emmclab(["study", CARD, "--trust", &own, "-o", &page]).exits(1);
    let html = std::fs::read_to_string(&page).unwrap();
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text:?}"));
    assert!(at("this card must go: The card stays busy") < at("of rated life used"));
    assert!(html.contains("Card stuck being busy! __mmc_poll_for_busy"), "the evidence");
    let text = std::fs::read_to_string(&own).unwrap();
    emmclab(["study", CARD, "--trust", &own, "-o", &own, "--force"]).exits(4);
    assert_eq!(std::fs::read_to_string(&own).unwrap(), text);
    emmclab(["study", CARD, "-o", &page, "--force"]).exits(0);
    assert!(!std::fs::read_to_string(&page).unwrap().contains("must go"));
}
