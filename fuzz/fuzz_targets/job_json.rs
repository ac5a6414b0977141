#![no_main]
//! Any text as a job.

use emmc_workload::job::Job;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Job::from_json(text, &mut |_: &str| Err("no file is read".into())) {
        Ok(job) => drop(format!("{job:?}")),
        Err(refusal) => drop(refusal.to_string()),
    }
});
