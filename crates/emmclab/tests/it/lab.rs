//! `lab run`: scripts on a real Linux, and wrong ones. Skipped with a message where the lab's kernel is not built.

mod calibrate;

use std::path::{Path, PathBuf};

use crate::support::{Run, emmclab, save, scratch};

/// The folder of the kernel in this checkout.
pub(crate) fn kernel() -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest/lab");
    let is_there = ["linux", "initramfs"].iter().all(|name| folder.join(name).is_file());
    if !is_there {
        eprintln!("SKIPPED: no kernel of the lab: cargo xtask guest build --uml");
    }
    is_there.then(|| folder.display().to_string())
}

fn lab(kernel: &str, script: &str, more: &[&str]) -> Run {
    let start = ["lab", "run", "--kernel", kernel, "--card", "generic-8g", "--script", script];
    emmclab(start.iter().chain(more))
}

#[test]
fn equal_runs_of_a_fio_job_print_equal_documents() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_fio");
    let job = save(&folder, "job.fio", "[a]\nrw=randread\nbs=4k\nsize=256k\ndirect=1\n");
    let requests = folder.join("requests").display().to_string();
    let first = lab(&kernel, &job, &["--json", "--requests", &requests]).exits(0);
    assert_eq!(first.stdout, lab(&kernel, &job, &["--json"]).exits(0).stdout);
    let document = first.json();
    assert_eq!(document["fio"][0]["result"]["jobs"][0]["read"]["total_ios"], 64);
    let script = document["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "script").unwrap();
    assert_eq!((&script["requests"][0]["kind"], &script["requests"][0]["requests"]), (&"read".into(), &64.into()));
    assert!(std::fs::read_to_string(requests).unwrap().lines().count() >= 64);
}

#[test]
fn a_script_passes_on_its_status_and_names_phases() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_script");
    let text = "mark more\ndd if=/dev/zero of=x bs=4k count=4 conv=fsync status=none\necho $A; exit 7\n";
    let script = save(&folder, "a.sh", text);
    let document = lab(&kernel, &script, &["--json", "--filesystem", "ext4", "--env", "A=it's"]).exits(7).json();
    assert_eq!((&document["status"], &document["output"]), (&7.into(), &"it's\n".into()));
    let names: Vec<_> = document["phases"].as_array().unwrap().iter().map(|phase| phase["name"].clone()).collect();
    assert_eq!(names, ["setup", "script", "more", "end"]);
}

#[test]
fn what_cannot_run_is_one_line() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_bad");
    let hangs = save(&folder, "hangs.sh", "while :; do :; done\n");
    let one_line = |run: Run, part: &str| {
        let run = run.exits(2);
        assert!(run.stderr.contains(part) && run.stderr.lines().count() == 1, "{}: {}", run.args, run.stderr);
    };
    one_line(lab(&kernel, &hangs, &["--patience", "1"]), "the simulated clock has stood at");
    let waits = save(&folder, "waits.sh", "mkfifo /tmp/pipe\nread -r line </tmp/pipe\n");
    // The machine must have started before, on a busy host too.
    one_line(lab(&kernel, &waits, &["--patience", "10"]), "nothing happens: between ");
    let sleeps = save(&folder, "sleeps.sh", "sleep 1000\n");
    one_line(lab(&kernel, &sleeps, &["--limit", "10"]), "did not end within 10 simulated seconds");
    one_line(lab("/bin/sh", &sleeps, &[]), "no User-Mode Linux with time travel");
    let nothing: PathBuf = folder.join("nothing");
    one_line(lab(&nothing.display().to_string(), &sleeps, &[]), "nothing");
    one_line(lab(&kernel, &sleeps, &["--controller", "hs200"]), "INTx");
    let wrong_variable = lab(&kernel, &sleeps, &["--env", "1=2"]).exits(2);
    assert!(wrong_variable.stderr.contains("expected NAME=VALUE"), "{}", wrong_variable.stderr);
    one_line(lab(&kernel, &sleeps, &["--dma", "sdma"]), "--controller no-cqe");
    let sd = ["lab", "run", "--kernel", &kernel, "--card", "sandisk-ultra-8g", "--script", &sleeps];
    one_line(emmclab(sd), "an SD card");
}

#[test]
fn a_script_gives_orders_to_the_card_and_reports_figures() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_orders");
    let text = "ask ctl clear-faults >/dev/null || exit 1\n\
                ask ctl inject-host data-crc --command 46 --times 2 >/dev/null || exit 1\n\
                dd if=$DEVICE of=/dev/null bs=4k count=8 iflag=direct status=none || exit 2\n\
                ask ctl cut --in 1ms >/dev/null || exit 3\n\
                usleep 2000; dd if=$DEVICE of=/dev/null bs=4k count=1 iflag=direct status=none && exit 4\n\
                ask ctl on >/dev/null || exit 5\n\
                ask ctl bogus; ask ctl stop; figure 'odd name' 2.5; figure x y\n\
                state_number host_units; exit 0\n";
    let script = save(&folder, "a.sh", text);
    let document = lab(&kernel, &script, &["--json"]).exits(0).json();
    assert_eq!(document["figures"], serde_json::json!([{"name": "odd name", "value": 2.5}]));
    let output = document["output"].as_str().unwrap();
    for part in ["'bogus'", "an order to stop", "figure x y: expected NAME NUMBER"] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let errors = |phase: &serde_json::Value| {
        phase["requests"].as_array().unwrap().iter().map(|kind| kind["errors"].as_u64().unwrap()).sum::<u64>()
    };
    let errors: u64 = document["phases"].as_array().unwrap().iter().map(errors).sum();
    assert!(errors >= 2, "{errors} errors");
}

#[test]
fn a_script_loses_power_and_restarts_with_the_same_card() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_boots");
    let text = "case $BOOT in\n\
                1) echo kept >kept && sync\n\
                   dd if=/dev/zero of=written bs=64k count=64 oflag=direct status=none &\n\
                   sleep 0.01; echo off; power_loss ;;\n\
                2) dmesg | grep -o 'recovery complete'; cat kept; echo again >again; restart ;;\n\
                esac\n\
                dmesg | grep -c 'recovery complete'; cat kept again; figure boots $BOOT\n";
    let script = save(&folder, "a.sh", text);
    let run = || lab(&kernel, &script, &["--json", "--filesystem", "ext4"]).exits(0);
    let first = run();
    assert_eq!(first.stdout, run().stdout, "two runs");
    let document = first.json();
    assert_eq!(document["output"], "off\nrecovery complete\nkept\n0\nkept\nagain\n");
    assert_eq!(document["figures"][0]["value"], 3.0);
    let phases = document["phases"].as_array().unwrap();
    let names: Vec<_> =
        phases.iter().map(|phase| (phase["boot"].as_u64().unwrap(), phase["name"].as_str().unwrap())).collect();
    let after = |boot| [(boot, "setup"), (boot, "script"), (boot, "end")];
    assert_eq!(names, [&[(1, "setup"), (1, "script")][..], &after(2), &after(3)].concat());
    assert!(phases.windows(2).all(|pair| pair[0]["start_s"].as_f64() <= pair[1]["start_s"].as_f64()), "{phases:?}");
}

#[test]
fn a_sweep_shows_every_run_and_repeats_itself() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_sweep");
    let job =
        save(&folder, "job.fio", "[a]\nrw=randwrite\nbs=4k\nsize=256k\ndirect=1\niodepth=${DEPTH}\nioengine=libaio\n");
    let sweep = |more: &[&str]| {
        let start = ["lab", "sweep", "--kernel", &kernel, "--card", "generic-8g", "--script", &job];
        emmclab(start.iter().chain(more))
    };
    let grid = ["--env", "DEPTH=1", "--env", "DEPTH=8", "--scheduler", "none", "--scheduler", "absent"];
    let one = sweep(&[&grid[..], &["--json", "--jobs", "1"]].concat()).exits(1);
    let two = sweep(&[&grid[..], &["--json", "--jobs", "2"]].concat()).exits(1);
    assert_eq!(one.stdout, two.stdout);
    let document = one.json();
    assert_eq!(document["axes"], serde_json::json!(["scheduler", "DEPTH"]));
    assert_eq!(document["failed"], 2);
    let runs = document["runs"].as_array().unwrap();
    let iops = |run: &serde_json::Value| run["result"]["fio"][0]["iops"].as_f64().unwrap();
    assert!(iops(&runs[1]) > iops(&runs[0]), "{document}");
    for run in &runs[2..] {
        assert!(run["error"].as_str().unwrap().contains("no scheduler absent"), "{run}");
    }
    let text = sweep(&grid).exits(1).stdout;
    assert!(text.contains("failed") && text.contains("Failed: 2 of 4"), "{text}");
}

#[test]
fn a_history_below_a_filesystem_collapses_and_a_trim_brings_it_back() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_aged");
    let profile = include_str!("../../../../xtask/guest/tight.toml");
    let tight = save(&folder, "tight.toml", profile);
    let deaf = save(&folder, "deaf.toml", profile.replace("[ftl]", "[ftl]\ntrim_frees = false"));
    let job = save(&folder, "aged.json", include_str!("../../../../xtask/guest/aged.json"));
    let script = save(&folder, "story.sh", include_str!("../../../../docs/examples/trim-story.sh"));
    let sweep = emmclab([
        "lab",
        "sweep",
        "--kernel",
        &kernel,
        "--card",
        &tight,
        "--card",
        &deaf,
        "--age",
        &job,
        "--script",
        &script,
        "--filesystem",
        "ext4",
        "--filesystem",
        "f2fs",
        "--mkfs",
        "nodiscard",
        "--mount",
        "nodiscard",
        "--controller",
        "no-cqe",
        "--env",
        "FILE_MIB=16",
        "--env",
        "WRITE_MIB=2",
        "--json",
    ]);
    let document = sweep.exits(0).json();
    for run in document["runs"].as_array().unwrap() {
        let figures = run["result"]["figures"].as_array().unwrap();
        let figure =
            |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap()["value"].as_f64().unwrap();
        let (aged, trimmed) = (figure("aged: write us"), figure("trimmed: write us"));
        if run["settings"]["card"].as_str().unwrap().contains("deaf") {
            assert!(trimmed > 0.6 * aged, "{run}");
        } else {
            assert!(trimmed < 0.5 * aged, "{run}");
        }
    }
}

#[test]
fn wrong_sweeps_are_one_line() {
    let folder = scratch("lab_sweep_bad");
    let script = save(&folder, "a.sh", "true\n");
    let bad = |more: &[&str], part: &str| {
        let start = ["lab", "sweep", "--script", &script];
        let run = emmclab(start.iter().chain(more)).exits(2);
        let first = run.stderr.lines().next().unwrap_or_default();
        assert!(first.contains(part), "{}: {}", run.args, run.stderr);
    };
    bad(&["--card", "none-such"], "no profile has this name");
    bad(&["--card", "sandisk-ultra-8g"], "an SD card");
    bad(&["--card", "generic-8g", "--age", "/nonexistent"], "not a shipped job");
    bad(&["--card", "generic-8g", "--cpu-ns", "x"], "expected 0 to 1000 ns");
    let card = folder.join("card").display().to_string();
    emmclab(["sim", "create", &card, "--profile", "generic-8g"]).exits(0);
    bad(&["--card", &card], "a sweep needs a new card for each run");
}
