//! Observations of one card over time: a line a day in a file, or two snapshots.
//!
//! Shape: one JSON object a line, `{"time": "2026-11-21T07:00:00Z", "life_a": 2, "life_b": 1}`, or a line of `monitor`.
//! Keys that this does not know are ignored, so a site may add its own.

use emmc_port::CardData;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use super::HealthError;
use super::reading::{self, Area};

/// What was seen of a card at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryPoint {
    /// When it was seen, RFC 3339.
    #[serde(serialize_with = "rfc3339")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub time: Timestamp,
    /// DEVICE_LIFE_TIME_EST_TYP_A as the register holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life_a: Option<u8>,
    /// DEVICE_LIFE_TIME_EST_TYP_B as the register holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life_b: Option<u8>,
    /// PRE_EOL_INFO as the register holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_eol: Option<u8>,
    /// Whether the disk was read-only, or a filesystem on it after an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Total bytes that the host wrote to the card, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// CID in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cid: Option<String>,
}

fn rfc3339<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

#[derive(Deserialize)]
struct Line {
    time: String,
    #[serde(alias = "life_a_raw")]
    life_a: Option<RegisterByte>,
    #[serde(alias = "life_b_raw")]
    life_b: Option<RegisterByte>,
    #[serde(alias = "pre_eol_raw")]
    pre_eol: Option<RegisterByte>,
    written_bytes: Option<u64>,
    cid: Option<String>,
    // Lines of others may have these keys with any value.
    #[serde(default)]
    read_only: serde_json::Value,
    #[serde(default)]
    schema: serde_json::Value,
    #[serde(default)]
    card: serde_json::Value,
    #[serde(default)]
    host: serde_json::Value,
    #[serde(default)]
    boot_id: serde_json::Value,
}

/// What a sample says beside the point: it counts from the boot on, and names its card by a hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sampled {
    boot_id: Option<String>,
    written_bytes: Option<u64>,
    cid_hash: Option<String>,
}

/// A register's byte: `2`, or `"0x02"` as sysfs prints it.
#[derive(Deserialize)]
#[serde(try_from = "serde_json::Value")]
struct RegisterByte(u8);

impl TryFrom<serde_json::Value> for RegisterByte {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let number = match &value {
            serde_json::Value::String(text) => text
                .trim()
                .strip_prefix("0x")
                .map_or_else(|| text.trim().parse().ok(), |digits| u8::from_str_radix(digits, 16).ok()),
            other => other.as_u64().and_then(|number| u8::try_from(number).ok()),
        };
        number.map(Self).ok_or_else(|| format!("a register byte cannot be {value}"))
    }
}

impl HistoryPoint {
    /// The observation of a card at the time when it was read.
    ///
    /// Errors: no source of the card says when it was read.
    pub fn from_card(card: &CardData) -> Result<Self, HealthError> {
        let stamp = card.origins.iter().find_map(|origin| origin.taken_at.as_deref());
        let no_time = |found: &str| HealthError::NoTime { name: card.name(), found: found.into() };
        let text = stamp.ok_or_else(|| no_time("none"))?;
        let life = |area| reading::life(card, area, &super::HealthOptions::default()).reading.raw;
        let byte = |raw: Option<u16>| raw.and_then(|raw| u8::try_from(raw).ok());
        Ok(Self {
            time: text.parse().map_err(|_| no_time(text))?,
            life_a: byte(life(Area::A)),
            life_b: byte(life(Area::B)),
            pre_eol: byte(reading::pre_eol(card).raw),
            read_only: None,
            written_bytes: None,
            cid: card.cid.map(|cid| cid.0.iter().map(|byte| format!("{byte:02x}")).collect()),
        })
    }

    /// The CID without its last byte, which many host controllers strip, in lower case.
    pub(super) fn card_key(&self) -> Option<String> {
        let digits: String = self.cid.as_ref()?.trim().trim_start_matches("0x").to_ascii_lowercase();
        digits.get(..30).map(str::to_owned)
    }
}

/// Reads a history file: one JSON object a line, in any order; blank lines are skipped.
///
/// Errors: the number of the first line that is not an observation, or is a sample of another card than one before.
pub fn parse_history(name: &str, text: &str) -> Result<Vec<HistoryPoint>, HealthError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut points = Vec::new();
    let mut first: Option<String> = None;
    for (index, line) in lines {
        let (point, sampled) = point(name, index + 1, line)?;
        if let Some(hash) = &sampled.cid_hash {
            let known = first.get_or_insert_with(|| hash.clone());
            if known != hash {
                return Err(HealthError::HistoryLine {
                    name: name.into(),
                    line: index + 1,
                    expected: format!("samples of one card, \"cid_hash\":\"{known}\"; grep can choose them"),
                    found: format!("\"cid_hash\":\"{hash}\""),
                });
            }
        }
        points.push((point, sampled));
    }
    Ok(total(points))
}

/// Totals of samples, in the order of the file. Their counters start again with each boot: what was written before the
/// first sample, and between the last sample of a boot and its end, is not in them.
fn total(points: Vec<(HistoryPoint, Sampled)>) -> Vec<HistoryPoint> {
    let (mut total, mut before): (u64, Option<Sampled>) = (0, None);
    let summed = points.into_iter().map(|(mut point, sampled)| {
        if let Some(written) = sampled.written_bytes {
            let is_same_boot = before.as_ref().is_some_and(|before| before.boot_id == sampled.boot_id);
            let since = before.as_ref().filter(|_| is_same_boot).and_then(|before| before.written_bytes);
            total = total.saturating_add(written.checked_sub(since.unwrap_or(0)).unwrap_or(written));
            point.written_bytes = Some(total);
            before = Some(sampled);
        }
        point
    });
    summed.collect()
}

fn point(name: &str, number: usize, text: &str) -> Result<(HistoryPoint, Sampled), HealthError> {
    let wrong = |expected: &str, found: String| HealthError::HistoryLine {
        name: name.into(),
        line: number,
        expected: expected.into(),
        found,
    };
    let line: Line = serde_json::from_str(text).map_err(|error| {
        let mut found: String = text.trim().chars().take(40).collect();
        if found.len() < text.trim().len() {
            found.push_str("...");
        }
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default();
        wrong("an object like {\"time\": \"2026-11-21T07:00:00Z\", \"life_a\": 2}", format!("{found} ({reason})"))
    })?;
    let time = line.time.trim().parse();
    let text_of = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let sampled = match line.schema == crate::sample::SCHEMA {
        true => Sampled {
            boot_id: text_of(&line.boot_id),
            written_bytes: line.host["written_bytes"].as_u64(),
            cid_hash: text_of(&line.card["cid_hash"]),
        },
        false => Sampled::default(),
    };
    let point = HistoryPoint {
        time: time.map_err(|_| wrong("a time like 2026-11-21T07:00:00Z", format!("{:?}", line.time)))?,
        life_a: line.life_a.map(|byte| byte.0),
        life_b: line.life_b.map(|byte| byte.0),
        pre_eol: line.pre_eol.map(|byte| byte.0),
        read_only: line.read_only.as_bool(),
        written_bytes: line.written_bytes,
        cid: line.cid,
    };
    Ok((point, sampled))
}

#[cfg(test)]
mod tests {
    use emmc_port::Format;

    use super::*;

    #[test]
    fn lines_are_read_in_all_spellings_and_written_in_one() {
        let text = concat!(
            "{\"time\": \"2026-01-01T00:00:00Z\", \"life_a\": 2, \"life_b\": 1, \"pre_eol\": 1, \"written_bytes\": 7}\n",
            "\n",
            "  {\"time\": \"2026-01-02T01:00:00+01:00\", \"life_a\": \"0x0b\", \"life_b\": null, \"host\": {\"name\": \"x\"}}\r\n",
        );
        let points = parse_history("h", text).unwrap();
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].life_a, points[0].written_bytes, points[1].life_a), (Some(2), Some(7), Some(11)));
        assert_eq!((points[1].life_b, points[1].pre_eol), (None, None));
        let line = |point: &HistoryPoint| serde_json::to_string(point).unwrap();
        assert_eq!(line(&points[1]), "{\"time\":\"2026-01-02T00:00:00Z\",\"life_a\":11}");
        assert_eq!(parse_history("h", &line(&points[0])).unwrap(), points[..1]);
    }

    #[test]
    fn lines_of_the_monitor_are_one_cards_and_count_over_boots() {
        let sample = |day: u8, boot: &str, written: u64, hash: &str| {
            format!(
                "{{\"schema\":\"emmclab.sample/1\",\"time\":\"2026-01-{day:02}T00:00:00Z\",\"boot_id\":\"{boot}\",\
                 \"life_a_raw\":2,\"life_b_raw\":1,\"pre_eol_raw\":1,\"read_only\":false,\"card\":{{\"cid_hash\":\"{hash}\"}},\
                 \"host\":{{\"written_bytes\":{written}}}}}\n"
            )
        };
        let text = [sample(1, "one", 100, "aa"), sample(2, "one", 150, "aa"), sample(4, "two", 10, "aa")].concat();
        let points = parse_history("h", &text).unwrap();
        let written: Vec<_> = points.iter().map(|point| point.written_bytes).collect();
        assert_eq!(written, [Some(100), Some(150), Some(160)]);
        assert_eq!((points[0].life_a, points[0].life_b, points[0].pre_eol), (Some(2), Some(1), Some(1)));
        assert_eq!(points[2].read_only, Some(false));
        let mixed = parse_history("h", &(text + &sample(5, "two", 20, "bb"))).unwrap_err().to_string();
        assert!(mixed.starts_with("h: line 4: expected samples of one card") && mixed.contains("bb"), "{mixed}");
    }

    #[test]
    fn an_invalid_line_is_reported_with_its_number() {
        let message = |text: &str| parse_history("wear.log", text).unwrap_err().to_string();
        let good = "{\"time\": \"2026-01-01T00:00:00Z\"}\n";
        for (line, part) in [
            ("life_a 2", "found life_a 2 (expected value)"),
            ("{\"life_a\": 2}", "missing field `time`"),
            ("{\"time\": \"yesterday\"}", "a time like 2026-11-21T07:00:00Z, found \"yesterday\""),
            ("{\"time\": \"2026-01-01T00:00:00Z\", \"life_a\": 300}", "a register byte cannot be 300"),
            ("{\"time\": \"2026-01-01T00:00:00Z\", \"written_bytes\": -1}", "invalid value"),
            ("[1, 2", "line 3"),
            ("\u{feff}{}", "line 3"),
        ] {
            let message = message(&format!("{good}\n{line}\n{good}"));
            assert!(message.starts_with("wear.log: line 3: expected ") && message.contains(part), "{message}");
        }
        assert_eq!(parse_history("wear.log", "\n\n").unwrap(), []);
    }

    #[test]
    fn a_card_without_a_time_is_refused() {
        let mut card = CardData::new("dump.bin", Format::ExtCsdBinary);
        let refused = HistoryPoint::from_card(&card).map_err(|error| error.to_string());
        let expected = "dump.bin: expected the time when the card was read, found none; a snapshot has it";
        assert_eq!(refused, Err(expected.into()));
        card.sysfs.insert("life_time".into(), "0x01 0x02".into());
        card.origins[0].taken_at = Some("2026-11-21T07:00:00Z".into());
        let point = HistoryPoint::from_card(&card).unwrap();
        assert_eq!((point.life_a, point.life_b, point.pre_eol), (Some(1), Some(2), None));
    }
}
