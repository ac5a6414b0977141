//! The virtual card through the binary: profiles, runs, cards in folders, and as a source.

use std::path::Path;

use crate::support::{Run, emmclab, emmclab_with_input, save, scratch};
use serde_json::{Value, json};

const JOB: &str = r#"{"seed": 3, "phases": [
    {"kind": "fill", "block": "1MiB"}, {"kind": "random", "amount": "8MiB", "block": "4KiB"},
    {"kind": "idle", "seconds": 5}, {"kind": "random", "amount": "4MiB", "read_share": 0.5}]}"#;

/// A card of 64 MiB, so that a test is quick in a debug build.
fn small_profile(folder: &Path) -> String {
    let text = emmclab(["sim", "profiles", "generic-8g"]).exits(0).stdout;
    let text = text
        .replace("user_bytes = 7818182656", "user_bytes = 67108864")
        .replace("pages_per_block = 256", "pages_per_block = 32")
        .replace("over_provisioning = 0.07", "over_provisioning = 0.3")
        .replace("enhanced_groups_max = 466", "enhanced_groups_max = 4")
        .replace("name = \"generic-8g\"", "name = \"small\"");
    assert!(text.contains("user_bytes = 67108864") && text.contains("pages_per_block = 32"), "{text}");
    save(folder, "small.toml", text)
}

fn run_json(args: &[&str]) -> Value {
    emmclab(["sim", "run"].iter().chain(args).chain(&["--json"])).exits(0).json()
}

#[test]
fn a_run_has_the_documented_keys() {
    let folder = scratch("sim_contract");
    let (profile, job) = (small_profile(&folder), save(&folder, "job.json", JOB));
    let run = run_json(&["--profile", &profile, "--job", &job]);
    for key in ["host_writes", "nand_programs", "erases"] {
        assert!(run[key].is_u64(), "{key}: {}", run[key]);
    }
    for key in ["write_amplification", "simulated_s", "wall_s"] {
        assert!(run[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {}", run[key]);
    }
    for key in ["p50", "p99", "p999", "max"] {
        assert!(run["latency_us"][key].as_f64().is_some_and(|number| number > 0.0), "{key}");
    }
    for key in ["min", "mean", "max"] {
        assert!(run["wear"][key].is_number(), "{key}");
    }
    assert!(run["registers"]["life_time_b"].is_u64());
    let quotient = run["nand_programs"].as_f64().unwrap() / run["host_writes"].as_f64().unwrap();
    assert!((run["write_amplification"].as_f64().unwrap() - quotient).abs() < 1e-9);
    // 64 MiB, 8 MiB and half of 4 MiB in units of 4 KiB.
    let written = run["host_writes"].as_u64().unwrap();
    assert!((16384 + 2048 + 400..16384 + 2048 + 620).contains(&written), "{written}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let folder = scratch("sim_seed");
    let (profile, job) = (small_profile(&folder), save(&folder, "job.json", JOB));
    let run = |seed: &str| {
        let mut run = run_json(&["--profile", &profile, "--job", &job, "--seed", seed]);
        run.as_object_mut().unwrap().remove("wall_s");
        run
    };
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1")["simulated_s"], run("2")["simulated_s"]);
}

#[test]
fn a_card_in_a_folder_ages() {
    let folder = scratch("sim_folder");
    let (profile, job) = (small_profile(&folder), save(&folder, "job.json", JOB));
    let card = folder.join("card").display().to_string();
    let info = || emmclab(["sim", "info", &card, "--json"]).exits(0).json();
    emmclab(["sim", "create", "--profile", &profile, &card]).exits(0).says(&["sim run"]);
    let new = info();
    assert_eq!((&new["nand"]["erases"], &new["profile"]), (&json!(0), &json!("small")));
    let first = run_json(&[&card, "--job", &job]);
    let used = info();
    assert!(used["nand"]["page_programs"].as_u64().unwrap() >= 16384 / 4);
    assert!(used["simulated_s"].as_f64().unwrap() >= first["simulated_s"].as_f64().unwrap());
    let valid: f64 = used["block_map"]["valid_share"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    assert!(valid > 10.0, "the map is back after power: {valid}");
    run_json(&[&card, "--job", &job, "--dry-run"]);
    assert_eq!(info()["nand"], used["nand"]);
    run_json(&[&card, "--job", &job]);
    let older = info();
    assert!(older["nand"]["erases"].as_u64().unwrap() > 20, "{}", older["nand"]);
    let again = emmclab(["sim", "create", "--profile", &profile, &card]).exits(2);
    assert!(again.stderr.contains("exists already"), "{again:?}");
    assert_eq!(info()["nand"], older["nand"]);
    emmclab(["show", &format!("sim:{card}"), "--field", "SEC_COUNT", "--raw"]).exits(0).says(&["0x00020000"]);
}

#[test]
fn a_profile_can_lose_power_without_notice() {
    let folder = scratch("sim_cut");
    let cut = r#"{"phases": [{"kind": "sequential", "amount": "1MiB"}, {"kind": "power_cycle", "notify": false}]}"#;
    let (profile, job) = (small_profile(&folder), save(&folder, "cut.json", cut));
    let run = run_json(&["--profile", &profile, "--job", &job]);
    assert_eq!(run["phases"][1]["kind"], json!("power_cycle"));
}

#[test]
fn a_damaged_card_is_reported_and_kept() {
    let folder = scratch("sim_damaged");
    let profile = small_profile(&folder);
    let card = folder.join("card");
    let name = card.display().to_string();
    emmclab(["sim", "create", "--profile", &profile, &name]).exits(0);
    let state = card.join("card.state");
    let whole = std::fs::read(&state).unwrap();
    for bytes in [&whole[..whole.len() / 2], b"rubbish", b"", b"emmclab card 1\n\xff\xff\xff\xff\x00"] {
        std::fs::write(&state, bytes).unwrap();
        let run = emmclab(["sim", "info", &name]).exits(2);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        assert!(run.stderr.contains("card.state"), "{run:?}");
        assert_eq!(std::fs::read(&state).unwrap(), bytes);
    }
    std::fs::write(&state, whole).unwrap();
    emmclab(["sim", "info", &name]).exits(0);
}

#[test]
fn an_aged_card_is_a_source_of_every_command() {
    let folder = scratch("sim_source");
    let source = format!("sim:{}@45%", small_profile(&folder));
    let health = emmclab(["health", &source, "--json"]).exits(0).json();
    assert!(health.to_string().contains("\"0x05\"") || health.to_string().contains("40"), "{health}");
    emmclab(["show", &source, "--field", "DEVICE_LIFE_TIME_EST_TYP_B", "--raw"]).exits(0).says(&["0x05"]);
    emmclab(["check", &source]).exits(0).says(&["40 % to 50 %"]);
    emmclab(["diff", &source, &source]).exits(0);
    let study = emmclab(["study", &source, "--full"]);
    assert!(study.code <= 1, "{study:?}");
    study.says(&["erase counts", "agree on spare blocks"]);
    emmclab(["plan", "hwpart", &source, "--enh-user", "max"]).exits(0);
    let snapshot = emmclab(["snapshot", &source, "-o", "-"]).exits(0);
    let shown = emmclab_with_input(&["show", "-", "--field", "SEC_COUNT", "--raw"], snapshot.stdout.as_bytes());
    assert_eq!(shown.exits(0).stdout.trim(), "0x00020000");
}

#[test]
fn invalid_input_is_refused_in_one_line() {
    let folder = scratch("sim_refused");
    let (profile, job) = (small_profile(&folder), save(&folder, "job.json", JOB));
    let text = std::fs::read_to_string(&profile).unwrap();
    let bad = |name: &str, from: &str, to: &str| save(&folder, name, text.replace(from, to));
    let one_line = |run: Run, phrases: &[&str]| {
        let run = run.exits(2);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        assert!(phrases.iter().all(|phrase| run.stderr.contains(phrase)), "{phrases:?}: {run:?}");
    };
    let run = |profile: &str, job: &str| emmclab(["sim", "run", "--profile", profile, "--job", job]);
    one_line(run("generic-9g", &job), &["generic-9g", "generic-8g"]);
    one_line(run("generic-8g@150%", &job), &["150%", "0 to below 100"]);
    one_line(run(&bad("zero.toml", "page_bytes = 16384", "page_bytes = 0"), &job), &["nand.page_bytes", "0"]);
    one_line(run(&bad("minus.toml", "planes = 2", "planes = -2"), &job), &["planes"]);
    one_line(run(&bad("odd.toml", "[nand]", "[nand]\nplains = 2"), &job), &["plains"]);
    one_line(run(&bad("op.toml", "over_provisioning = 0.3", "over_provisioning = nan"), &job), &["over_provisioning"]);
    one_line(run("/nonexistent/card.toml", &job), &["/nonexistent/card.toml"]);
    one_line(run(&profile, "/nonexistent/job.json"), &["/nonexistent/job.json"]);
    let jobs =
        [r#"{"phases": [{"kind": "dance"}]}"#, r#"{"phases": []}"#, "", "[]", r#"{"phases": [{"kind": "random"}]}"#];
    for (index, text) in jobs.iter().enumerate() {
        let job = save(&folder, &format!("bad{index}.json"), text);
        one_line(run(&profile, &job), &[&job]);
    }
    emmclab(["sim", "run", "--job", &job]).exits(2);
    emmclab(["sim", "info", "/nonexistent"]).exits(2);
}

#[test]
fn every_shipped_profile_is_listed_and_makes_a_card() {
    let list = emmclab(["sim", "profiles", "--json"]).exits(0).json();
    let profiles = list["profiles"].as_array().unwrap();
    assert!(profiles.len() >= 20, "{}", profiles.len());
    for wanted in ["generic-8g", "friendlyelec-emmc-8g", "apalis-imx8qm-16g", "toshiba-7au", "sandisk-20au"] {
        assert!(profiles.iter().any(|profile| profile["name"] == wanted), "{wanted}");
    }
    for profile in profiles.iter().filter(|profile| profile["user_bytes"].as_u64().unwrap() < 5_000_000_000) {
        let name = profile["name"].as_str().unwrap();
        let inside = emmclab(["sim", "info", "--profile", name, "--json"]).exits(0).json();
        assert_eq!(inside["profile"], profile["name"]);
    }
}

#[cfg(feature = "html")]
#[test]
fn a_run_is_written_as_one_html_file() {
    let folder = scratch("sim_html");
    let (profile, job) = (small_profile(&folder), save(&folder, "job.json", JOB));
    let file = folder.join("run.html");
    let path = file.to_str().unwrap();
    emmclab(["sim", "run", "--profile", &profile, "--job", &job, "-o", path]).exits(0);
    let page = std::fs::read_to_string(&file).unwrap();
    for phrase in ["Write amplification over simulated time", "Block map", "Wear"] {
        assert!(page.contains(phrase), "{phrase}");
    }
    emmclab(["sim", "run", "--profile", &profile, "--job", &job, "-o", path]).exits(2);
    emmclab(["sim", "run", "--profile", &profile, "--job", &job, "-o", path, "--force"]).exits(0);
    let page = emmclab(["sim", "run", "--profile", &profile, "--job", &job, "-o", "-"]).exits(0);
    assert!(page.stdout.starts_with("<!DOCTYPE html>"), "{}", page.stdout);
    // JSON goes to standard output: a page for the same place is dropped, one for a file is not.
    assert_eq!(run_json(&["--profile", &profile, "--job", &job, "-o", "-"])["schema"], "emmclab.sim-run/1");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(run_json(&["--profile", &profile, "--job", &job, "-o", path])["schema"], "emmclab.sim-run/1");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<!DOCTYPE html>"));
}

/// Ctrl-C: the simulated part is reported, marked, and a card in a folder keeps it.
#[test]
fn an_interrupted_run_reports_its_results() {
    let folder = scratch("sim_interrupted");
    let card = folder.join("card").display().to_string();
    emmclab(["sim", "create", "--profile", "generic-8g", &card]).exits(0);
    let mut command = crate::support::hold::with_default_signals(crate::support::command().get_program());
    command.args(["sim", "run", &card, "--job", "whole-life", "--json"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
        u64::from_str_radix(mask, 16).unwrap() >> 1 & 1 == 1
    };
    while !catches() {
        std::thread::yield_now();
    }
    let signalled = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let output = child.wait_with_output().unwrap();
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &run["ended"]), (Some(1), &json!("stopped")));
    assert!(run["host_writes"].as_u64().unwrap() > 0);
    let kept = emmclab(["sim", "info", &card, "--json"]).exits(0).json();
    assert!(kept["nand"]["page_programs"].as_u64().unwrap() > 0);
}

/// Ctrl-C between two lives: the lives so far are reported, and that more were asked for.
#[cfg(feature = "bench")]
#[test]
fn power_cuts_that_are_interrupted_report_what_they_have() {
    let folder = scratch("cuts_interrupted");
    let mut command = crate::support::hold::with_default_signals(crate::support::command().get_program());
    command.args(["sim", "power-cut", "sim:generic-8g", "--cuts", "1000000000", "--json"]);
    let hold = crate::support::hold::Hold::at(&mut command, "life", 2, &folder);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    hold.wait(&mut child);
    let signalled = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let output = child.wait_with_output().unwrap();
    drop(hold);
    let cuts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &cuts["stopped"], &cuts["lives"]), (Some(1), &json!(true), &json!(2)));
    assert!(cuts["cuts"].as_u64().unwrap() > 0 && cuts["violations"].as_array().unwrap().is_empty(), "{cuts}");
}

/// The counts of the translation layer do not survive power: that is said, not "nothing was written".
#[test]
fn the_inside_of_a_used_card_says_what_it_counts() {
    let folder = scratch("sim_counts");
    let (profile, job) = (small_profile(&folder), save(&folder, "job.json", JOB));
    let card = folder.join("card").display().to_string();
    emmclab(["sim", "create", "--profile", &profile, &card]).exits(0);
    emmclab(["sim", "info", &profile_card(&profile)]).exits(0).says(&["nothing written yet"]);
    emmclab(["sim", "run", &card, "--job", &job]).exits(0);
    let inside = emmclab(["sim", "info", &card]).exits(0);
    assert!(!inside.words().contains("nothing written yet"), "{}", inside.stdout);
    inside.says(&["not known: nothing written since the card was switched on", "its counts do not survive power"]);
}

/// A new card of a profile's file.
fn profile_card(profile: &str) -> String {
    format!("sim:{profile}")
}

#[test]
fn a_ready_job_is_run_by_its_name() {
    let folder = scratch("sim_ready");
    let profile = small_profile(&folder);
    let run = run_json(&["--profile", &profile, "--job", "steady-random"]);
    assert_eq!(run["phases"].as_array().unwrap().len(), 3);
    let unknown = emmclab(["sim", "run", "--profile", &profile, "--job", "steady"]).exits(2);
    assert!(unknown.stderr.contains("not a shipped job (steady-random, collapse-and-trim"), "{}", unknown.stderr);
}

/// With a write cache that is full when the last spare block goes.
#[test]
fn a_card_that_wears_out_is_reported_and_kept() {
    let folder = scratch("sim_worn_out");
    let profile = concat!("sim:", env!("CARGO_MANIFEST_DIR"), "/../../examples/small-card.toml");
    let job = save(&folder, "job.json", r#"{"phases": [{"kind": "random", "amount": "until worn out"}]}"#);
    let card = folder.join("card").display().to_string();
    emmclab(["sim", "create", &card, &format!("{profile}@90%")]).exits(0);
    let run = emmclab(["sim", "run", &card, "--job", &job, "--json"]).exits(1).json();
    assert_eq!(run["ended"], "worn out");
    assert!(run["host_writes"].as_u64().unwrap() > 1000);
    // The card is kept as it ended: it takes no more writes.
    let again = emmclab(["sim", "run", &card, "--job", &job, "--json"]).exits(1).json();
    assert_eq!((&again["ended"], &again["host_writes"]), (&json!("worn out"), &json!(0)));
    let refused = emmclab(["health", &format!("{profile}@99%")]).exits(2).stderr;
    assert!(refused.contains("small-card@99%: the card wears out before"), "{refused}");
}
