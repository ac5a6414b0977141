//! Damaged text of sdmon and emmcparm never makes a worn card look better.
//!
//! A digit that is lost or changed in a number without a fixed width cannot be seen: `100` becomes `10`. Everything
//! that leaves a trace is tried here: blanks for digits, stray quotes, keys given twice, keys with a letter missing.

use emmc_analysis::health::{CheckStatus, HealthOptions, check};
use emmc_port::saved::read;

use crate::damage::{Tally, judged, worn_vendor_texts};

fn is_sdmon(name: &str) -> bool {
    name.starts_with("sdmon/")
}

#[test]
fn blanks_for_letters_and_stray_quotes_never_make_a_card_look_better() {
    let mut tally = Tally::default();
    for source in worn_vendor_texts().iter().filter(|source| is_sdmon(&source.name)) {
        for at in 0..source.bytes.len() {
            for length in 1..=3usize.min(source.bytes.len() - at) {
                let mut blanked = source.bytes.clone();
                blanked[at..at + length].fill(b' ');
                tally.take(|| format!("{}: {length} blanks at {at}", source.name), &blanked, &[source], true);
            }
            let (before, after) = source.bytes.split_at(at);
            for stray in [&b"\""[..], b"{", b"}", b",", b":", b"[", b"]", b"\\"] {
                let with = [before, stray, after].concat();
                let what = || format!("{}: {} before {at}", source.name, String::from_utf8_lossy(stray));
                tally.take(what, &with, &[source], true);
            }
        }
    }
    tally.end("blanks and strays in sdmon's text");
}

#[test]
fn a_line_given_twice_with_another_value_never_makes_a_card_look_better() {
    let mut tally = Tally::default();
    for source in worn_vendor_texts().iter().filter(|source| is_sdmon(&source.name)) {
        let text = String::from_utf8(source.bytes.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("\":")) {
            let (key, value) = line.split_once("\":").unwrap();
            for other in ["0", "1", "99", "100"] {
                let digits: String = value.chars().filter(char::is_ascii_digit).collect();
                if digits.is_empty() {
                    continue;
                }
                let second = format!("{key}\":{}", value.replace(&digits, other));
                for at in [0, index, index + 1, lines.len() - 1] {
                    let mut twice = lines.clone();
                    twice.insert(at, &second);
                    let damaged = twice.join("\n") + "\n";
                    tally.take(
                        || format!("{}: {second} at line {at}", source.name),
                        damaged.as_bytes(),
                        &[source],
                        true,
                    );
                }
            }
        }
    }
    tally.end("lines of sdmon given twice");
}

#[test]
fn what_is_wrong_with_the_text_is_said() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/sdmon/sandisk-industrial-readme/sdmon.json.txt");
    let whole = std::fs::read_to_string(path).unwrap();
    assert_eq!(judged(whole.as_bytes()).unwrap().0, CheckStatus::Ok);
    let used = "\"healthStatusPercentUsed\": 1,\n";
    for (from, to, said) in [
        (used, "\"healthStatusPercentUsed\": 1,\n\"healthStatusPercentUsed\": 100,\n", "has two values"),
        (used, "\"healthStatusPercentUsed\": \"1,\n", "line 8 has \"1,\""),
        (used, "\"healthStatusPercentUsed\": 1 ,\n", "with a blank for a digit"),
        (used, "\"healthStatusPercentUsed\":  ,\n", "with a blank for a digit"),
        (used, "\"healthStatusPercentUsed\": ,\n", "\"healthStatusPercentUsed\" is \"\""),
        (used, "\"healthStatusPercentUsd\": 1,\n", "is no key of sdmon"),
        ("\"success\":true", "\"success\":false", "success is false"),
        ("\"success\":true", "\"success\":tru", "\"success\" is \"tru\""),
        ("\n}", "\n", "the end where a key should be"),
    ] {
        assert!(whole.contains(from), "{from}");
        let card = read("f", whole.replace(from, to).as_bytes()).unwrap();
        let result = check(&card, &HealthOptions::default());
        assert_eq!(result.status, CheckStatus::Unknown, "{to}: {}", result.line);
        let study = emmc_analysis::study::study(&card, &emmc_analysis::study::StudyOptions::default());
        let text = study.vendor_refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        assert!(text.contains(said), "{to}: {text}");
        assert!(study.findings.iter().any(|finding| finding.id.starts_with("vendor-report-")), "{to}");
    }
}
