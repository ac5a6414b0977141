//! `lab run`: scripts on a real Linux, and wrong ones. Skipped with a message where the lab's kernel is not built.

use std::path::{Path, PathBuf};

use crate::support::{Run, emmclab, save, scratch};

/// The folder of the kernel in this checkout.
fn kernel() -> Option<String> {
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
    one_line(lab(&kernel, &waits, &["--patience", "1"]), "nothing happens: between ");
    let sleeps = save(&folder, "sleeps.sh", "sleep 1000\n");
    one_line(lab(&kernel, &sleeps, &["--limit", "10"]), "did not end within 10 simulated seconds");
    one_line(lab("/bin/sh", &sleeps, &[]), "no User-Mode Linux with time travel");
    let nothing: PathBuf = folder.join("nothing");
    one_line(lab(&nothing.display().to_string(), &sleeps, &[]), "nothing");
    one_line(lab(&kernel, &sleeps, &["--controller", "hs200"]), "INTx");
    one_line(lab(&kernel, &sleeps, &["--env", "1=2"]), "expected NAME=VALUE");
}
