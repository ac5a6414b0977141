//! The report of `lock` as a document, and what to do next.

use emmc_report::{Document, KeyValue, Tone};

use super::LockDocument;

pub(super) fn present(document: &LockDocument) -> Document {
    let mut report = Document::new(match document.action {
        "status" => "Password lock: status",
        "set" => "Password lock: set a password",
        "clear" => "Password lock: remove the password",
        "on" => "Password lock: lock",
        "off" => "Password lock: unlock",
        _ => "Password lock: forced erase",
    });
    let mut words = vec![document.target.clone()];
    if let Some(card) = &document.card {
        words.extend(card.product.clone());
        words.extend(card.serial.as_ref().map(|serial| format!("serial number {serial}")));
    }
    report.subtitle = Some(words.join("  "));
    let section = report.section("verdict", "Result");
    let (tone, text) = verdict(document);
    section.note(tone, text);
    if let Some(reason) = &document.reason {
        section.note(Tone::Bad, format!("Reason: {reason}."));
    }
    for warning in &document.warnings {
        section.note(Tone::Bad, format!("Warning: {warning}."));
    }
    let said = |value: Option<bool>| value.map_or("unknown", |value| if value { "yes" } else { "no" });
    let password = match (document.has_password, document.locked) {
        (None, Some(false)) => "unknown: a card that is not locked does not say it",
        (value, _) => said(value),
    };
    report.section("card", "The card").push(vec![
        KeyValue::new("takes passwords", said(document.supported)),
        KeyValue::new("switched off for ever", said(document.disabled)),
        KeyValue::new("locked", said(document.locked)),
        KeyValue::new("has a password", password),
    ]);
    if !document.next.is_empty() {
        let steps = document.next.iter().enumerate();
        let rows: Vec<_> = steps.map(|(index, step)| KeyValue::new((index + 1).to_string(), step.as_str())).collect();
        report.section("next", "Next").push(rows);
    }
    report
}

fn verdict(document: &LockDocument) -> (Tone, String) {
    let Some(ended) = document.ended else { return status(document) };
    let good = |text: &str| (Tone::Good, text.to_owned());
    match (document.action, ended) {
        ("set", "done") if document.locked == Some(true) => good("The card has the password, and is locked."),
        ("set", "done") => good("The card has the password. It is not locked until the next power-up."),
        ("clear", "done") => good("The card has no password, and is not locked."),
        ("on", "done") => good("The card is locked."),
        ("on", "already") => good("The card is locked already. Nothing was sent; the password was not tried."),
        ("off", "done") => good("The card is not locked until the next power-up."),
        ("off", "already") => good("The card is not locked. Nothing was sent; the password was not tried."),
        ("force-erase", "done") => good("The card is erased, has no password, and is not locked."),
        ("set", _) => (
            Tone::Bad,
            match document.has_password {
                Some(true) if document.was_locked != Some(true) => {
                    "The card has the password; it ended early after that.".into()
                }
                _ if ended == "refused" || ended == "stopped" => "The password is not set.".into(),
                _ => "Whether the password is set is not known.".into(),
            },
        ),
        (_, "lost") => (Tone::Bad, "Whether the card did it is not known.".into()),
        _ => (Tone::Bad, "The card did not do it.".into()),
    }
}

fn status(document: &LockDocument) -> (Tone, String) {
    match (document.locked, document.supported, document.disabled) {
        (Some(true), ..) => {
            (Tone::Bad, "The card is locked: it reads and writes nothing until it gets its password.".into())
        }
        (Some(false), Some(false), _) => (Tone::Good, "The card is not locked, and takes no passwords.".into()),
        (Some(false), _, Some(true)) => {
            (Tone::Good, "The card is not locked, and passwords are switched off for ever.".into())
        }
        (Some(false), ..) => (Tone::Good, "The card is not locked.".into()),
        (None, ..) => (Tone::Bad, "Whether the card is locked is not known.".into()),
    }
}

/// What to do next.
pub(super) fn next(document: &LockDocument) -> Vec<String> {
    let target = crate::shell::word(document.target.as_ref()).unwrap_or_else(|| "TARGET".into());
    let is_device = document.target.starts_with("/dev/") || emmc_linux::is_card_name(&document.target);
    let status = format!("find out how the card stands: emmclab lock status {target}");
    let unlock = format!("unlock it: emmclab lock off {target} --password FILE");
    match (document.action, document.ended) {
        ("status", _) if document.locked == Some(true) => vec![
            unlock,
            format!("or, if the password is lost and the content may be: emmclab lock force-erase {target} --destroy"),
        ],
        (_, Some("lost" | "surprise")) => {
            let mut steps = vec!["power the card off and on".to_owned(), status];
            if document.action == "set" {
                steps.push("locked: it has a password, the old or the new one; not locked: it has none".into());
            }
            steps
        }
        (_, Some("stopped")) => vec![status],
        ("set" | "on", Some("done" | "refused")) if document.locked == Some(true) => vec![unlock],
        ("clear" | "off" | "force-erase", Some("done")) if is_device && document.was_locked == Some(true) => {
            vec![format!("have Linux read the partitions again: blockdev --rereadpt {target}")]
        }
        _ => Vec::new(),
    }
}
