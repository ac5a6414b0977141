//! The host's answers to a guest script: `ask ctl`, `ask counts`, `ask number`, `ask simulate`, `ask bench`,
//! `ask probe`.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::guest::driven;
use crate::guest::server::{Emmclab, Server};
use crate::guest::trial::Host;

/// The context of the host's answers.
pub(crate) struct Aside<'a> {
    pub(crate) server: Option<&'a Server<'a>>,
    pub(crate) emmclab: Option<&'a Emmclab>,
    pub(crate) profile: &'a str,
    /// The controller has a queue engine.
    pub(crate) queues: bool,
    /// This run's.
    pub(crate) folder: &'a Path,
}

/// Status and text of the host's answer.
pub(crate) fn answer(words: &str, aside: &Aside, host: &mut dyn Host) -> anyhow::Result<(i32, String)> {
    let server = aside.server;
    if let (Some(job), Some(emmclab)) = (words.strip_prefix("simulate "), aside.emmclab) {
        return simulate(emmclab, aside, job);
    }
    if let (Some((command @ ("bench" | "probe"), words)), Some(emmclab)) = (words.split_once(' '), aside.emmclab) {
        return on_simulated(emmclab, aside.profile, command, words);
    }
    if let (Some(server), "counts") = (server, words) {
        return counts(server);
    }
    let (Some(server), Some((kind @ ("ctl" | "number"), words))) = (server, words.split_once(' ')) else {
        let is_ours = words.starts_with("ctl ") || words.starts_with("number ");
        return if is_ours { Ok((1, "no card is served".into())) } else { Ok((0, host.asked(words, server)?)) };
    };
    if kind == "number" {
        return number(server, words);
    }
    let output = server.control(&words.split(' ').collect::<Vec<_>>())?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.code().unwrap_or(255), String::from_utf8_lossy(&text).into_owned()))
}

/// The first number of that name in the card's internal state: the whole state is long for a guest's channel.
fn number(server: &Server, name: &str) -> anyhow::Result<(i32, String)> {
    let output = server.control(&["state", "--json"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let key = format!("\"{name}\": ");
    let value = text.lines().find_map(|line| line.trim().strip_prefix(&key)?.trim_end_matches(',').parse::<f64>().ok());
    Ok(value.map_or_else(|| (1, format!("the card's state has no number {name}")), |value| (0, value.to_string())))
}

/// Accesses of registers on one clock (reads, writes, interrupts), and the requests that moved data: how many, and the
/// card's account of all of them in us.
fn counts(server: &Server) -> anyhow::Result<(i32, String)> {
    let output = server.control(&["stats", "--json"])?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).context("sim ctl stats --json")?;
    let (client, controller) = (&found["client"], &found["controller"]);
    let [Some(reads), Some(writes), Some(interrupts)] =
        ["reads", "writes", "interrupts"].map(|name| client[name].as_u64())
    else {
        return Ok((1, "no client drives the card's clock".into()));
    };
    let sum = |name: &str| ["read", "write"].iter().filter_map(|kind| controller[kind][name].as_f64()).sum::<f64>();
    Ok((0, format!("{reads} {writes} {interrupts} {} {}", sum("requests"), sum("total_us"))))
}

/// Runs a job on a new card of the same profile in simulated time: for each phase its kind, its requests and the time
/// per request, in us; concurrent requests share the time.
fn simulate(emmclab: &Emmclab, aside: &Aside, job: &str) -> anyhow::Result<(i32, String)> {
    let path = aside.folder.join("job.json");
    fs::write(&path, job)?;
    let path = path.to_string_lossy();
    let profile = driven::profile(aside.profile, aside.folder)?;
    let profile = profile.to_string_lossy();
    let mut args = vec!["sim", "run", "--json", "--profile", &profile, "--job", &path];
    if !aside.queues {
        args.push("--no-queueing");
    }
    let output = emmclab.run(&args)?;
    if !output.status.success() {
        return Ok((1, String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).context("sim run --json")?;
    let phases = result["phases"].as_array().context("sim run --json: no phases")?;
    let line = |phase: &serde_json::Value| {
        let rate = phase["requests_per_s"].as_f64().filter(|rate| *rate > 0.0);
        let took_us = rate.map_or("-".into(), |rate| format!("{:.1}", 1e6 / rate));
        format!("{} {} {took_us}\n", phase["kind"].as_str().unwrap_or("?"), phase["host_requests"])
    };
    Ok((0, phases.iter().map(line).collect()))
}

/// Runs `emmclab bench` or `probe` on a new card of the same profile in simulated time.
fn on_simulated(emmclab: &Emmclab, profile: &str, command: &str, words: &str) -> anyhow::Result<(i32, String)> {
    let target = format!("sim:{profile}");
    let args: Vec<&str> = [command, &target].into_iter().chain(words.split(' ')).collect();
    let output = emmclab.run(&args)?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.code().unwrap_or(255), String::from_utf8_lossy(&text).into_owned()))
}
