//! A log of samples, and what is news.

use jiff::Timestamp;
use serde::Deserialize;

use super::Sample;

/// What a line of a log says that a later sample may change.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Recorded {
    time: String,
    card: RecordedCard,
    life_a_raw: Option<u8>,
    life_b_raw: Option<u8>,
    pre_eol_raw: Option<u8>,
    read_only: Option<bool>,
    io_errors: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
struct RecordedCard {
    device: Option<String>,
    cid_hash: Option<String>,
}

/// The last sample of a card in a log; lines that are none are passed over. A card without a hash is known by its
/// device.
pub fn last_of(log: &str, sample: &Sample) -> Option<Recorded> {
    let lines = log.lines().rev().filter_map(|line| serde_json::from_str::<Recorded>(line).ok());
    let is_same = |recorded: &Recorded| match &sample.card.cid_hash {
        Some(hash) => recorded.card.cid_hash.as_ref() == Some(hash),
        None => recorded.card.device == sample.card.device,
    };
    lines.into_iter().find(is_same)
}

impl Sample {
    /// Whether a log whose last line is `recorded` should have this sample: wear, state or errors changed, or the line
    /// is `max_age_days` old, or of the future.
    pub fn is_news_after(&self, recorded: &Recorded, max_age_days: u32) -> bool {
        let second = |time: &str| time.parse::<Timestamp>().ok().map(Timestamp::as_second);
        let age = second(&self.time).zip(second(&recorded.time)).map(|(now, then)| now - then);
        let is_due = age.is_none_or(|age| age < 0 || age >= i64::from(max_age_days) * 86_400);
        is_due
            || (self.life_a_raw, self.life_b_raw, self.pre_eol_raw)
                != (recorded.life_a_raw, recorded.life_b_raw, recorded.pre_eol_raw)
            || (self.read_only, self.io_errors) != (recorded.read_only, recorded.io_errors)
    }
}
