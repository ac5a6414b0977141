//! What a script of the lab asks: orders of `sim ctl`, and numbers of the card's internal state.

use std::sync::{Arc, mpsc};

use clap::Parser;
use emmc_report::{TextOptions, text};
use emmc_serve::control::{Control, Order};
use emmc_serve::layer::{Faults, Stats};
use emmc_serve::sdhci::HostFaults;
use emmc_serve::served::Served;
use emmc_units::printable_json;
use serde_json::Value;

use crate::cli::LabOrder;
use crate::commands::sim::ctl::{self, Answer};

/// Columns of an answer as text.
const WIDTH: usize = 100;

/// Answers the script.
pub(super) struct Orders {
    control: Arc<Control>,
    card: String,
}

impl Orders {
    pub(super) fn new(served: &Arc<Served>, host_faults: &HostFaults, card: &str) -> Self {
        let faults = Arc::new(Faults::new(Arc::clone(served) as _));
        let stats = Arc::new(Stats::new(Arc::clone(&faults) as _, Arc::clone(served)));
        // Orders to stop are refused, so nobody listens.
        let (stop, _) = mpsc::channel();
        let control = Control { served: Arc::clone(served), faults, host_faults: host_faults.clone(), stats, stop };
        Self { control: Arc::new(control), card: card.into() }
    }

    /// Status and text of the answer to `ask WORDS`.
    pub(super) fn answer(&self, words: &str) -> (i32, String) {
        let answer = match words.split_once(' ').unwrap_or((words, "")) {
            ("ctl", words) => self.order(words),
            ("number", name) => self.number(name),
            _ => Err(format!("the lab cannot answer {words:?}")),
        };
        answer.map_or_else(|error| (2, error), |text| (0, text))
    }

    fn order(&self, words: &str) -> Result<String, String> {
        // In place of the program's name, and of the folder that `sim ctl` has.
        let words = ["ask ctl", self.card.as_str()].into_iter().chain(words.split_whitespace());
        let order = LabOrder::try_parse_from(words).map_err(|error| one_line(&error.to_string()))?;
        let answer = self.control.execute(ctl::timed_order(&order.ctl).map_err(|error| error.to_string())?)?;
        let answer = Answer { card: self.card.clone(), answer };
        if order.json {
            return serde_json::to_string_pretty(&answer).map(printable_json).map_err(|error| error.to_string());
        }
        let options = TextOptions { width: WIDTH, colour: false, unicode: false };
        Ok(text(&ctl::present(&answer), &options))
    }

    /// The first number of that name in the card's internal state.
    fn number(&self, name: &str) -> Result<String, String> {
        let state = self.control.execute(Order::State)?;
        find(&state, name)
            .map(|number| number.to_string())
            .ok_or_else(|| format!("the card's state has no number {name}"))
    }
}

/// The first number with this key, in the sequence of the document.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a serde_json::Number> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| match value {
            Value::Number(number) if key == name => Some(number),
            value => find(value, name),
        }),
        Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

/// What clap says before its hints.
fn one_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_name() {
        let state = serde_json::json!({"a": "x", "b": [{"c": 1}, {"d": {"c": 2, "e": 3.5}}]});
        assert_eq!(find(&state, "c").map(ToString::to_string), Some("1".into()));
        assert_eq!(find(&state, "e").map(ToString::to_string), Some("3.5".into()));
        assert_eq!(find(&state, "a"), None);
    }
}
