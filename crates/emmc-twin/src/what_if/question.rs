//! Questions: what is written, and the answers for today and each change.

use std::sync::Arc;

use emmc_port::BlockOp;
use emmc_units::{Bytes, Size};
use emmc_workload::Watch;
use emmc_workload::duty::{DAY_S, Discard, DutyLoad, Files, Partition, Rate, Requests};
use emmc_workload::trace::Trace;

use super::result::{Answer, DutyFacts, WhatIf};
use super::setup::Setup;
use super::trial::{Step, Trial};
use super::{Change, MakeCard, WhatIfError};

/// A card's use.
#[derive(Clone, Debug)]
pub struct Question {
    /// What the programs write.
    pub written: Written,
    /// How the card is set up today.
    pub today: Setup,
    /// Seed of everything random.
    pub seed: u64,
}

/// What the programs write.
#[derive(Clone, Debug)]
pub enum Written {
    /// A rate.
    Rate {
        /// Unit: bytes.
        bytes_per_day: f64,
        /// 0 to 1.
        random_share: f64,
        /// Unit: bytes.
        block_bytes: u32,
        /// Data that is overwritten, of today's partition.
        data: Size,
    },
    /// A recording.
    Recorded {
        /// The recording.
        trace: Arc<Trace>,
        /// Unit: bytes.
        bytes_per_day: Option<f64>,
        /// Requests beyond the partition continue at its start.
        wrap: bool,
    },
}

/// The answers for today and each change.
///
/// Errors: a change that the card cannot do, before anything is simulated; cancelled.
pub fn what_if(
    make: MakeCard<'_>,
    question: &Question,
    changes: &[Change],
    watch: &mut dyn Watch,
) -> Result<WhatIf, WhatIfError> {
    let mut setups = vec![("today".to_owned(), question.today.clone())];
    for change in changes {
        let refuse = |what: String| WhatIfError::Refused { change: change.name.clone(), what };
        if let (Written::Recorded { .. }, Some(key)) = (&question.written, change.key_of_programs()) {
            return Err(refuse(format!("{key} changes what programs write; a recording has the requests below that")));
        }
        let mut setup = question.today.clone();
        change.apply(&mut setup);
        setups.push((change.name.clone(), setup));
    }
    let mut facts = None;
    for (name, setup) in &setups {
        let refused = |what| WhatIfError::Refused { change: name.clone(), what };
        let trial = Trial::new(make, question, setup, facts.as_ref()).map_err(refused)?;
        facts.get_or_insert_with(|| trial.facts.clone());
    }
    // One bit a cell as a measure for what is left unpartitioned, where the card and the data allow it.
    if changes.iter().any(Change::leaves_unpartitioned) && !changes.iter().any(Change::is_pslc) {
        let setup = Setup { pslc: Some(Size::Max), ..question.today.clone() };
        if Trial::new(make, question, &setup, facts.as_ref()).is_ok() {
            setups.push(("pslc=all".into(), setup));
        }
    }
    let (count, mut answers) = (setups.len() as u32, Vec::<Answer>::new());
    for ((name, setup), number) in setups.iter().zip(1..) {
        let refused = |what| WhatIfError::Refused { change: name.clone(), what };
        let trial = Trial::new(make, question, setup, facts.as_ref()).map_err(refused)?;
        let mut answer = trial.run(Step { name, number, count }, watch)?;
        answer.life_times_today = answers.first().and_then(|today| times_as_long(&answer, today));
        answers.push(answer);
    }
    let profile = answers.first().map_or(String::new(), |answer| answer.profile.clone());
    let duty = facts.unwrap_or_else(|| unreachable!("today is always there"));
    Ok(WhatIf { profile, duty: duty.facts, answers })
}

/// By how much a life is longer; beyond a thousand years, which have no figure, by the wear of a day. Nothing where one
/// of them has no wear.
fn times_as_long(answer: &Answer, today: &Answer) -> Option<f64> {
    let times = match (answer.years_to_end_of_life, today.years_to_end_of_life) {
        (Some(years), Some(of_today)) => years / of_today,
        _ => today.wear_percent_per_day / answer.wear_percent_per_day,
    };
    Some(times).filter(|times| times.is_finite())
}

/// What all trials of a question have in common: as of today.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) facts: DutyFacts,
    pub(super) data_bytes: u64,
}

/// The requests of a question on a partition.
///
/// Errors: data that does not fit.
pub(super) fn requests(
    question: &Question,
    setup: &Setup,
    partition: Partition,
    today: Option<&Common>,
) -> Result<Requests, String> {
    Ok(match &question.written {
        Written::Rate { bytes_per_day, random_share, block_bytes, data } => {
            let of_today = match data {
                Size::Exact(Bytes(bytes)) => *bytes,
                Size::Percent(percent) => partition.bytes() / 100 * u64::from(*percent),
                Size::Max => partition.bytes(),
            };
            let data_bytes = today.map_or(of_today / 4096 * 4096, |today| today.data_bytes);
            if data_bytes > partition.bytes() {
                let [data, room] = [data_bytes, partition.bytes()].map(|bytes| Bytes(bytes).rounded());
                return Err(format!("{data} of data do not fit into a partition of {room} (--data)"));
            }
            Requests::Rate(Rate {
                bytes_per_day: *bytes_per_day,
                random_share: *random_share,
                block_bytes: *block_bytes,
                data_bytes,
                log_in_memory: setup.log_in_memory,
                update: setup.update,
                filesystem: setup.filesystem.map(|kind| Files { kind, discard: setup.discard }),
            })
        }
        Written::Recorded { trace, bytes_per_day, wrap } => {
            let trace = match setup.discard {
                Discard::Online => Arc::clone(trace),
                Discard::Never => Arc::new(without_trims(trace)),
                Discard::Weekly => return Err("a recording has its own trims: expected online or off".into()),
            };
            Requests::Recorded { trace, bytes_per_day: *bytes_per_day, wrap: *wrap }
        }
    })
}

fn without_trims(trace: &Trace) -> Trace {
    let requests = trace.requests.iter().filter(|request| request.op != BlockOp::Trim);
    Trace { requests: requests.copied().collect(), ..trace.clone() }
}

/// How long the load must run so that what happens seldom happens, but for updates. Unit: seconds.
pub(super) fn cycle_s(load: &DutyLoad) -> f64 {
    let Requests::Rate(rate) = &load.requests else { return 0.0 };
    let trim = rate.filesystem.filter(|files| files.discard == Discard::Weekly).map_or(0.0, |_| 7.0 * DAY_S);
    // Without a sequential part there is no log.
    let log = rate.log_in_memory.filter(|_| rate.random_share < 1.0).map_or(0.0, |_| DAY_S);
    trim.max(log)
}

pub(super) fn facts(load: &DutyLoad, bytes_per_day: f64) -> Common {
    let per_day = format!("{:.3} GB a day", bytes_per_day / 1e9);
    match &load.requests {
        Requests::Rate(rate) => {
            let data = Bytes(rate.data_bytes).rounded();
            let (random, block) = (rate.random_share * 100.0, Bytes(rate.block_bytes.into()));
            let sentence = format!("{per_day}, {random:.0} % random overwrites of {block}, on {data} of data");
            let facts = DutyFacts {
                sentence,
                bytes_per_day,
                random_share: Some(rate.random_share),
                block_bytes: Some(rate.block_bytes),
                data_bytes: Some(rate.data_bytes),
            };
            Common { facts, data_bytes: rate.data_bytes }
        }
        Requests::Recorded { trace, .. } => {
            let writes = trace.requests.iter().filter(|request| request.op == BlockOp::Write);
            let data_bytes: u64 = writes.map(|request| request.bytes).sum();
            let sentence = format!("{per_day}, {} recorded requests ({}), repeated", trace.requests.len(), trace.form);
            let facts = DutyFacts { sentence, bytes_per_day, random_share: None, block_bytes: None, data_bytes: None };
            Common { facts, data_bytes }
        }
    }
}
