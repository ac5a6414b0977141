//! Parts ranked for a load: which fit, and of those which lives longest.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_units::Instant;
use emmc_workload::Watch;
use serde::Serialize;

use super::question::Question;
use super::trial::{Step, Trial};
use super::{Answer, DutyFacts, WhatIfError};

/// What a part must do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Until the end of life. Unit: years.
    pub years: f64,
    /// The longest write or flush. Unit: milliseconds.
    pub stall_ms: Option<f64>,
}

/// Parts ranked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ranking {
    /// What is written.
    pub duty: DutyFacts,
    /// Years that a part must live.
    pub years_needed: f64,
    /// Those that fit, the best first.
    pub fitting: Vec<Answer>,
    /// The others.
    pub unfit: Vec<Unfit>,
}

/// A part that does not fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unfit {
    /// The profile's name.
    pub profile: String,
    /// Why.
    pub why: String,
    /// What it does under the load, if that could be simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<Answer>>,
}

/// A part under the load.
pub type Rated = Result<(DutyFacts, Answer), Unfit>;

/// Simulates a part under the load.
///
/// Errors: cancelled.
pub fn rate(
    profile: &Profile,
    question: &Question,
    (number, count): (u32, u32),
    watch: &mut dyn Watch,
) -> Result<Rated, WhatIfError> {
    let name = profile.name.clone();
    let unfit = |why: String| Ok(Err(Unfit { profile: name.clone(), why, answer: None }));
    let make = || {
        let card = Card::new(profile.clone(), DeviceOptions { keep: StoredContent::Nothing, seed: 1 });
        Ok((card.map_err(|error| error.to_string())?, Instant::START))
    };
    let trial = match Trial::new(&make, question, &question.today, None) {
        Ok(trial) => trial,
        Err(why) => return unfit(why),
    };
    let facts = trial.facts.facts.clone();
    match trial.run(Step { name: &name, number, count }, watch) {
        Ok(answer) => Ok(Ok((facts, answer))),
        Err(WhatIfError::Refused { what, .. }) => unfit(what),
        Err(stopped) => Err(stopped),
    }
}

/// Ranks rated parts.
pub fn ranking(duty: DutyFacts, rated: Vec<Rated>, needs: &Needs) -> Ranking {
    let (mut fitting, mut unfit) = (Vec::new(), Vec::new());
    for part in rated {
        match part {
            Err(why) => unfit.push(why),
            Ok((_, answer)) => match shortfall(&answer, needs) {
                None => fitting.push(answer),
                Some(why) => unfit.push(Unfit { profile: answer.profile.clone(), why, answer: Some(Box::new(answer)) }),
            },
        }
    }
    // Lives beyond question are equal; then stalls decide, then speed.
    fitting.sort_by(|one, other| {
        let life = |answer: &Answer| answer.years_to_end_of_life.map_or(f64::INFINITY, |years| years);
        let order = life(other).total_cmp(&life(one)).then(longest_ms(one).total_cmp(&longest_ms(other)));
        order.then(other.write_mb_per_s.total_cmp(&one.write_mb_per_s))
    });
    Ranking { duty, years_needed: needs.years, fitting, unfit }
}

/// The longest write or flush. Unit: milliseconds.
fn longest_ms(answer: &Answer) -> f64 {
    [&answer.write_us, &answer.flush_us].into_iter().flatten().map(|found| found.max / 1e3).fold(0.0, f64::max)
}

/// Why a part does not fit.
fn shortfall(answer: &Answer, needs: &Needs) -> Option<String> {
    if answer.busy_share >= 1.0 {
        let times = answer.busy_share;
        return Some(format!("it cannot keep up: the load of a day takes {times:.1} days"));
    }
    if let Some(years) = answer.years_to_end_of_life.filter(|years| *years < needs.years) {
        let what = if answer.years_to_log_end == Some(years) { "its log of small writes" } else { "it" };
        return Some(format!("{what} lives {years:.2} years; {} are needed", needs.years));
    }
    let limit = needs.stall_ms.filter(|limit| longest_ms(answer) > *limit)?;
    Some(format!("a request takes up to {:.0} ms; at most {limit} are allowed", longest_ms(answer)))
}
