//! The report of `ffu` as a document.

use emmc_report::{Document, KeyValue, Tone};
use emmc_units::Bytes;

use super::{FfuDocument, Registers};

pub(super) fn present(document: &FfuDocument) -> Document {
    let mut report = Document::new(match document.action {
        "status" => "Firmware update: status",
        "verify" => "Firmware update: verification",
        _ => "Firmware update",
    });
    report.subtitle = Some(subtitle(document));
    let section = report.section("verdict", "Result");
    for (tone, text) in verdict(document) {
        section.note(tone, text);
    }
    if let Some(reason) = &document.reason {
        section.note(Tone::Bad, format!("Reason: {reason}."));
    }
    if let Some(now) = &document.now {
        let section = report.section("registers", "What the registers say");
        section.push(registers(now));
    }
    if let Some(image) = &document.image {
        let section = report.section("image", "Image");
        let mut rows = vec![
            KeyValue::new("file", image.file.as_str()),
            KeyValue::new("size", format!("{} bytes ({})", image.size_bytes, Bytes(image.size_bytes).rounded())),
            KeyValue::new("SHA-256", image.sha256.as_str()),
        ];
        if let (Some(mode), Some(chunk)) = (document.mode, document.chunk_bytes) {
            rows.push(KeyValue::new("sent", format!("mode {mode}, at most {} a time", Bytes(chunk.into()).rounded())));
        }
        section.push(rows);
    }
    if !document.next.is_empty() {
        let section = report.section("next", "Next");
        let steps = document.next.iter().enumerate();
        section
            .push(steps.map(|(index, step)| KeyValue::new((index + 1).to_string(), step.as_str())).collect::<Vec<_>>());
    }
    report
}

fn subtitle(document: &FfuDocument) -> String {
    let mut words = vec![document.target.clone()];
    if let Some(card) = &document.card {
        words.extend(card.product.clone());
        words.extend(card.serial.as_ref().map(|serial| format!("serial number {serial}")));
    }
    let firmware = document.now.as_ref().or(document.before.as_ref()).and_then(|now| now.firmware.as_ref());
    words.extend(firmware.map(|firmware| format!("firmware {firmware}")));
    words.join("  ")
}

fn verdict(document: &FfuDocument) -> Vec<(Tone, String)> {
    let mut lines = match document.action {
        "status" => status(document.now.as_ref()),
        "verify" => vec![verified(document)],
        _ => update(document),
    };
    if let Some(mode) = document.now.as_ref().and_then(|now| now.mode).filter(|mode| *mode != 0) {
        let what = match mode {
            1 => "The card is in the firmware update mode: the next update, or a power cycle, ends it.".to_owned(),
            mode => format!("The card is in the mode {mode:#04x} of its maker: a power cycle ends it."),
        };
        lines.push((Tone::Bad, what));
    }
    lines
}

fn status(now: Option<&Registers>) -> Vec<(Tone, String)> {
    let Some(now) = now else { return Vec::new() };
    let first = match (now.supported, now.disabled) {
        (Some(true), Some(false)) => (Tone::Good, "The card takes firmware updates.".to_owned()),
        (Some(true), Some(true)) => {
            (Tone::Muted, "The card has firmware updates, which are switched off for ever.".to_owned())
        }
        (Some(false), _) => (Tone::Muted, "The card has no firmware update in the field.".to_owned()),
        _ => (Tone::Muted, "Whether the card takes firmware updates is not known.".to_owned()),
    };
    let mut lines = vec![first];
    if let (Some(true), Some(status), Some(text)) =
        (now.supported, now.status.filter(|status| *status != 0), now.status_text)
    {
        lines.push((Tone::Bad, format!("The last update failed: {text} ({status:#04x}).")));
    }
    lines
}

fn verified(document: &FfuDocument) -> (Tone, String) {
    let now = document.now.as_ref();
    let firmware = now.and_then(|now| now.firmware.as_deref()).unwrap_or("unknown");
    let status = now.and_then(|now| now.status_text).unwrap_or("unknown");
    match (document.updated, now.and_then(|now| now.status)) {
        (Some(true), _) => (Tone::Good, format!("The firmware is another one now: {firmware}.")),
        (Some(false), Some(0)) => (Tone::Bad, format!("The firmware is still {firmware}: it was not updated.")),
        (Some(false), _) => (Tone::Bad, format!("The update failed: {status}. The firmware is {firmware}.")),
        (None, _) => (Tone::Bad, "Whether the firmware was updated is not known.".to_owned()),
    }
}

fn update(document: &FfuDocument) -> Vec<(Tone, String)> {
    let before = document.before.as_ref().and_then(|before| before.firmware.as_deref()).unwrap_or("unknown");
    let now = document.now.as_ref().and_then(|now| now.firmware.as_deref()).unwrap_or("unknown");
    let sent = document.sent_bytes.unwrap_or(0);
    let size = document.image.as_ref().map_or(0, |image| image.size_bytes);
    let parts = format!("{sent} of {size} bytes were sent");
    let first = match (document.ended, document.install_sent) {
        (Some("installed"), _) => (Tone::Good, "The card reports that it has installed the image.".to_owned()),
        (Some("power cycle due"), _) => {
            (Tone::Good, "The card has all of the image, and installs it at the next power cycle.".to_owned())
        }
        (Some("lost"), Some(true)) => {
            (Tone::Bad, "The card was told to install the image, and does not answer.".to_owned())
        }
        (ended, Some(true)) => {
            (Tone::Bad, format!("{}: the card did not install the image.", capital(ended.unwrap_or("ended"))))
        }
        (ended, _) => {
            let ended = capital(ended.unwrap_or("ended"));
            let may_install = document.before.as_ref().is_some_and(|before| before.operation_codes != Some(true));
            let rest = match may_install && sent > 0 {
                true => "A card of this kind may install what it has at the next power cycle.",
                false => "The card runs its old firmware.",
            };
            (Tone::Bad, format!("{ended}: {parts}, and nothing was installed. {rest}"))
        }
    };
    let mut lines = vec![first];
    match document.updated {
        Some(true) => lines.push((Tone::Good, format!("After a power cycle it runs {now} instead of {before}."))),
        Some(false) => lines.push((Tone::Bad, format!("After a power cycle it runs {now}, as before."))),
        None if matches!(document.ended, Some("installed" | "power cycle due")) => {
            let what = "A power cycle is needed; only another version after it proves the update.";
            lines.push((Tone::Muted, format!("The firmware version is {now}. {what}")));
        }
        None => {}
    }
    lines
}

fn capital(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

fn registers(now: &Registers) -> Vec<KeyValue> {
    let said = |value: Option<bool>, yes: &'static str, no: &'static str| {
        value.map_or("unknown", |value| if value { yes } else { no })
    };
    let mut rows = vec![
        KeyValue::new("firmware update", said(now.supported, "yes", "no")),
        KeyValue::new("switched off for ever", said(now.disabled, "yes", "no")),
        KeyValue::new("firmware version", now.firmware.clone().unwrap_or_else(|| "unknown".into())),
    ];
    if now.supported != Some(true) {
        return rows;
    }
    let installs = said(now.operation_codes, "at once, by MODE_OPERATION_CODES", "at the next power cycle");
    rows.push(KeyValue::new("installs", installs));
    let time = now.install_us_max.map_or("not defined".to_owned(), |time| match time {
        0..1_000_000 => format!("{:.1} ms", time as f64 / 1e3),
        time => format!("{:.1} s", time as f64 / 1e6),
    });
    rows.push(KeyValue::new("installs within", time));
    let number = |value: Option<u32>| value.map_or("unknown".to_owned(), |value| format!("{value:#010x}"));
    rows.push(KeyValue::new("FFU_ARG", number(now.argument)));
    let status = match (now.status, now.status_text) {
        (Some(0), _) => "success, or no update was ever made".to_owned(),
        (Some(status), Some(text)) => format!("{text} ({status:#04x})"),
        _ => "unknown".to_owned(),
    };
    rows.push(KeyValue::new("last update", status));
    let count = now.programmed_sectors.map_or("unknown".to_owned(), |count| count.to_string());
    rows.push(KeyValue::new("sectors programmed", count));
    let sector = now.sector_bytes.map_or("unknown".to_owned(), |bytes| Bytes(bytes.into()).rounded());
    rows.push(KeyValue::new("a sector has", sector));
    rows
}
