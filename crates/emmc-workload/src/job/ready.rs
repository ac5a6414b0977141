//! The jobs that are shipped with emmclab, by name.

macro_rules! ready {
    ($($name:literal: $about:literal),+ $(,)?) => {
        [$(ReadyJob { name: $name, about: $about, text: include_str!(concat!("../../jobs/", $name, ".json")) }),+]
    };
}

/// A job that is run by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyJob {
    /// Its name.
    pub name: &'static str,
    /// What it does to a card.
    pub about: &'static str,
    /// The job, as JSON.
    pub text: &'static str,
}

/// Every ready job.
pub const READY_JOBS: &[ReadyJob] = &ready![
    "steady-random": "random overwriting to the steady state, then one measured pass",
    "collapse-and-trim": "what brings a full card down and up again: random overwriting, idle time, trim",
    "skewed": "hot and cold data, Zipf, writes mixed with trims, reads among writes",
    "open-units": "writes to 1, 7 and 8 allocation units of 4 MiB in turn, and with half the block size",
    "whole-life": "random overwriting until the card is worn out",
];

/// A ready job by its name.
pub fn ready_job(name: &str) -> Option<&'static ReadyJob> {
    READY_JOBS.iter().find(|job| job.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;

    #[test]
    fn every_ready_job_is_read() {
        for ready in READY_JOBS {
            let job = Job::from_json(ready.text, &mut |_| Err("no traces".into()));
            assert!(job.is_ok_and(|job| !job.phases.is_empty()), "{}", ready.name);
            assert_eq!(ready_job(ready.name), Some(ready));
        }
        assert_eq!(ready_job("steady"), None);
    }
}
