//! A log of samples, and what is news.

use jiff::Timestamp;
use serde_json::Value;

use super::Sample;

/// What a line of a log says that a later sample may change.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded(Value);

/// The last sample of a card in a log; lines that are none are passed over. A card without a hash is known by its
/// device.
pub fn last_of(log: &str, sample: &Sample) -> Option<Recorded> {
    let lines = log.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_same = |line: &Value| match &sample.card.cid_hash {
        Some(hash) => line["card"]["cid_hash"] == *hash,
        None => line["card"]["device"].as_str() == sample.card.device.as_deref(),
    };
    let mut samples = lines.filter(|line| line["schema"] == super::SCHEMA);
    samples.find(is_same).map(Recorded)
}

impl Sample {
    /// Whether a log whose last line is `recorded` should have this sample: wear, state or errors changed, or the line
    /// is `max_age_days` old, or of the future.
    pub fn is_news_after(&self, Recorded(line): &Recorded, max_age_days: u32) -> bool {
        let second = |time: &str| time.parse::<Timestamp>().ok().map(Timestamp::as_second);
        let recorded = line["time"].as_str().and_then(second);
        let age = second(&self.time).zip(recorded).map(|(now, then)| now - then);
        let is_due = age.is_none_or(|age| age < 0 || age >= i64::from(max_age_days) * 86_400);
        let registers = [
            ("life_a_raw", self.life_a_raw.map(u64::from)),
            ("life_b_raw", self.life_b_raw.map(u64::from)),
            ("pre_eol_raw", self.pre_eol_raw.map(u64::from)),
            ("io_errors", self.io_errors),
        ];
        let is_other = registers.iter().any(|(key, value)| line[*key].as_u64() != *value);
        is_due || is_other || line["read_only"].as_bool() != self.read_only
    }
}
