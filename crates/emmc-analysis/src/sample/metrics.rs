//! Samples as metrics in Prometheus' text format, for a textfile collector.
//!
//! Source: the format 0.0.4, which node_exporter's textfile collector reads; it does not read OpenMetrics.

use std::fmt::Write;

use emmc_regs::ext_csd::LifeTime;
use jiff::Timestamp;

use super::Sample;

/// Name, type, help.
const FAMILIES: [(&str, &str, &str); 11] = [
    ("emmc_info", "gauge", "The card, by its identity; always 1."),
    ("emmc_life_used_ratio", "gauge", "Used share of the rated life, as a range: the register has steps of 10 %."),
    ("emmc_pre_eol_state", "gauge", "PRE_EOL_INFO: how many reserved blocks are used; 1 for the present state."),
    ("emmc_health_known", "gauge", "1 if the card reports its wear."),
    ("emmc_host_read_bytes_total", "counter", "Bytes that the host read since the boot."),
    ("emmc_host_written_bytes_total", "counter", "Bytes that the host wrote since the boot."),
    ("emmc_host_errors_total", "counter", "Errors between host and card since the boot."),
    ("emmc_filesystem_errors_total", "counter", "Errors that filesystems on the card have counted."),
    ("emmc_read_only", "gauge", "1 if the card, or a filesystem on it after an error, is read-only."),
    ("emmc_observed_timestamp_seconds", "gauge", "When the sample was taken."),
    ("emmc_collector_success", "gauge", "1 if the card could be read."),
];

/// The metrics of several cards; a card that could not be read has only its name.
pub fn metrics(samples: &[(String, Option<Sample>)]) -> String {
    let mut text = String::new();
    for (family, kind, help) in FAMILIES {
        let mut values = String::new();
        for (device, sample) in samples {
            let device = escaped(device);
            match sample {
                Some(sample) => value(&mut values, family, &device, sample),
                None if family == "emmc_collector_success" => line(&mut values, family, &device, "", "0"),
                None => {}
            }
        }
        if !values.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {family} {help}\n# TYPE {family} {kind}\n{values}");
        }
    }
    text
}

fn line(text: &mut String, family: &str, device: &str, labels: &str, value: &str) {
    let comma = if labels.is_empty() { "" } else { "," };
    let _ = writeln!(text, "{family}{{device=\"{device}\"{comma}{labels}}} {value}");
}

fn value(text: &mut String, family: &str, device: &str, sample: &Sample) {
    let number = |text: &mut String, found: Option<u64>| {
        found.into_iter().for_each(|found| line(text, family, device, "", &found.to_string()));
    };
    match family {
        "emmc_info" => line(text, family, device, &info(sample), "1"),
        "emmc_life_used_ratio" => life(text, family, device, sample),
        "emmc_pre_eol_state" => {
            for (name, raw) in [("normal", Some(1)), ("warning", Some(2)), ("urgent", Some(3))] {
                let is_it = u8::from(sample.pre_eol_raw == raw).to_string();
                line(text, family, device, &format!("state=\"{name}\""), &is_it);
            }
            let is_unknown = !matches!(sample.pre_eol_raw, Some(1..=3));
            line(text, family, device, "state=\"unknown\"", &u8::from(is_unknown).to_string());
        }
        "emmc_health_known" => number(text, Some(u64::from(bands(sample).iter().any(|(_, band)| band.is_some())))),
        "emmc_host_read_bytes_total" => number(text, sample.host.map(|host| host.read_bytes)),
        "emmc_host_written_bytes_total" => number(text, sample.host.map(|host| host.written_bytes)),
        "emmc_host_errors_total" => {
            let Some(errors) = sample.errors else { return };
            for (kind, count) in [
                ("command_crc", errors.command_crc),
                ("data_crc", errors.data_crc),
                ("timeout", errors.timeouts),
                ("cqe_recovery", errors.cqe_recoveries),
            ] {
                line(text, family, device, &format!("kind=\"{kind}\""), &count.to_string());
            }
        }
        "emmc_filesystem_errors_total" => number(text, sample.io_errors),
        "emmc_read_only" => number(text, sample.read_only.map(u64::from)),
        "emmc_observed_timestamp_seconds" => {
            let time = sample.time.parse::<Timestamp>().ok();
            number(text, time.and_then(|time| u64::try_from(time.as_second()).ok()));
        }
        _ => number(text, Some(1)),
    }
}

fn info(sample: &Sample) -> String {
    let card = &sample.card;
    let kind = card.kind.map(|kind| kind.to_string().to_lowercase());
    let labels = [
        ("kind", kind.as_ref()),
        ("manfid", card.manfid.as_ref()),
        ("product", card.product.as_ref()),
        ("fwrev", card.fwrev.as_ref()),
        ("date", card.mdt.as_ref()),
        ("cid_hash", card.cid_hash.as_ref()),
    ];
    let texts = labels.map(|(name, text)| format!("{name}=\"{}\"", escaped(text.map_or("", String::as_str))));
    texts.join(",")
}

/// Used life as a range. Unit: percent; no upper end above 100 %.
type Band = (u8, Option<u8>);

/// Used life of both kinds of cells.
fn bands(sample: &Sample) -> [(&'static str, Option<Band>); 2] {
    let band = |raw: Option<u8>| raw.and_then(|raw| LifeTime(raw).used_percent());
    [("a", band(sample.life_a_raw)), ("b", band(sample.life_b_raw))]
}

fn life(text: &mut String, family: &str, device: &str, sample: &Sample) {
    for (area, band) in bands(sample) {
        let Some((lower, upper)) = band else { continue };
        let ends = [("lower", Some(lower)), ("upper", upper)];
        for (bound, percent) in ends {
            let ratio = percent.map_or_else(|| "+Inf".into(), |percent| format!("{}", f64::from(percent) / 100.0));
            line(text, family, device, &format!("area=\"{area}\",bound=\"{bound}\""), &ratio);
        }
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
