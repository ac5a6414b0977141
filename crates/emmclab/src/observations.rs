//! Earlier observations of a card, and the forecast from them.

#[cfg(feature = "html")]
use std::path::Path;

use anyhow::Context;
use emmc_analysis::health::{Forecast, ForecastOptions, HistoryPoint, forecast, parse_history};
use emmc_port::CardData;

use crate::cli::HistoryArgs;
use crate::source;

impl HistoryArgs {
    /// The files that are read.
    #[cfg(feature = "html")]
    pub(crate) fn files(&self) -> Vec<&Path> {
        let since = self.since.iter().map(|earlier| Path::new(name_and_time(earlier).0));
        since.chain(self.history.as_deref()).collect()
    }

    /// Sets the time of the source, if one is given.
    ///
    /// Errors: text that is no time.
    pub(crate) fn set_time(&self, card: &mut CardData) -> anyhow::Result<()> {
        self.at.as_ref().map_or(Ok(()), |at| source::set_time(card, at))
    }

    /// The forecast from all observations; `None` without an earlier one.
    ///
    /// Errors: a file that cannot be read, an observation without a time, observations of different cards.
    pub(crate) fn forecast(&self, card: &CardData) -> anyhow::Result<Option<Forecast>> {
        if self.since.is_empty() && self.history.is_none() {
            return Ok(None);
        }
        let mut points = Vec::new();
        for earlier in &self.since {
            let (name, at) = name_and_time(earlier);
            let mut seen = source::open_one(name, None)?;
            if let Some(at) = at {
                source::set_time(&mut seen, at)?;
            }
            points.push(HistoryPoint::from_card(&seen)?);
        }
        if let Some(path) = &self.history {
            let name = path.display().to_string();
            let text = String::from_utf8(source::read_limited(&name)?)
                .with_context(|| format!("{name}: is not UTF-8 text"))?;
            points.extend(parse_history(&name, &text)?);
        }
        match HistoryPoint::from_card(card) {
            Ok(point) => points.push(point),
            // A history alone can be enough for a forecast; one earlier snapshot is not.
            Err(error) if self.history.is_none() => return Err(error.into()),
            Err(_) => {}
        }
        Ok(Some(forecast(&points, &ForecastOptions::default())?))
    }
}

/// `FILE@TIME`, or a file alone.
fn name_and_time(text: &str) -> (&str, Option<&str>) {
    text.rsplit_once('@').map_or((text, None), |(name, at)| (name, Some(at)))
}
