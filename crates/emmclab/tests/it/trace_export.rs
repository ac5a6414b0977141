//! `trace export` and `trace compare`: what is exported is read by the tools that it is for.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{emmclab, save, scratch, skip, testdata};

const DIRECT_WRITES: &str = "traces/mmc_dwrite_4096.dat";

/// A recording in another form: the new file, and what was said.
fn export(folder: &Path, recording: &str, form: &str, name: &str) -> (String, Value) {
    let file = folder.join(name).display().to_string();
    let said = emmclab(["trace", "export", &testdata(recording), form, "-o", &file, "--json"]).exits(0).json();
    assert_eq!(said["file"].as_str(), Some(file.as_str()));
    (file, said)
}

#[test]
fn timelines_have_every_request() {
    let folder = scratch("export_timeline");
    let (chrome, said) = export(&folder, DIRECT_WRITES, "--chrome", "t.json");
    assert_eq!((said["requests"].as_u64(), said["other_requests"].as_u64()), (Some(8), Some(124)));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(chrome).unwrap()).unwrap();
    let whole = |event: &&Value| event["ph"] == "X" && event["cat"] == "write";
    assert_eq!(document["traceEvents"].as_array().unwrap().iter().filter(whole).count(), 8);
    let (perfetto, said) = export(&folder, DIRECT_WRITES, "--perfetto", "t.pftrace");
    assert_eq!(said["requests"].as_u64(), Some(8));
    // A stream of packets: field 1, with a length.
    assert_eq!(std::fs::read(perfetto).unwrap()[0], 0x0a);
}

#[test]
fn exported_requests_replay_as_the_recording_does() {
    let folder = scratch("export_replay");
    let (csv, _) = export(&folder, DIRECT_WRITES, "--csv", "t.csv");
    let (iolog, _) = export(&folder, DIRECT_WRITES, "--fio-iolog", "t.iolog");
    let (waits, _) = export(&folder, DIRECT_WRITES, "--fio-iolog=2", "t2.iolog");
    let bench = |trace: &str| {
        let run = emmclab(["bench", "sim:generic-8g", "--suite", "replay", "--trace", trace, "--wrap", "--json"]);
        run.exits(0).json()["measurements"].clone()
    };
    let recorded = bench(&testdata(DIRECT_WRITES));
    assert_ne!(recorded, Value::Null);
    for file in [&csv, &iolog, &waits] {
        assert_eq!(bench(file), recorded, "{file}");
    }
    for file in [testdata(DIRECT_WRITES), csv, iolog] {
        let phase = serde_json::json!({ "kind": "trace", "file": file, "wrap": true });
        let job = save(&folder, "job.json", serde_json::json!({ "phases": [phase] }).to_string());
        emmclab(["sim", "run", "sim:generic-8g", "--job", &job, "--json"]).exits(0);
    }
}

#[test]
fn fio_replays_the_iolog() {
    if Command::new("fio").arg("--version").output().is_err() {
        return skip("no fio here; Debian: apt install fio");
    }
    let folder = scratch("export_fio");
    let target = folder.join("target");
    std::fs::File::create(&target).unwrap().set_len(1 << 30).unwrap();
    let recorded = emmclab(["trace", "analyse", &testdata(DIRECT_WRITES), "--json"]).exits(0).json();
    let written: u64 =
        recorded["waiters"].as_array().unwrap().iter().map(|w| w["written_bytes"].as_u64().unwrap()).sum();
    for form in ["--fio-iolog=2", "--fio-iolog=3"] {
        let (iolog, _) = export(&folder, DIRECT_WRITES, form, &format!("t{form}"));
        let run = Command::new("fio")
            .args(["--name=replay", "--output-format=json", "--ioengine=psync", "--replay_no_stall=1"])
            .arg(format!("--read_iolog={iolog}"))
            .arg(format!("--replay_redirect={}", target.display()))
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{form}: {out}{err}");
        let result: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        let job = &result["jobs"][0];
        assert_eq!(job["write"]["total_ios"].as_u64(), Some(8), "{form}: {out}");
        assert_eq!(job["write"]["io_bytes"].as_u64(), Some(written), "{form}: {out}");
        assert_eq!(job["error"].as_i64(), Some(0), "{form}: {out}");
    }
}

#[test]
fn files_of_all_processors_are_one_recording() {
    let folder = scratch("export_blktrace");
    let [first, second] = ["0", "1"].map(|cpu| testdata(&format!("traces/blk_dwrite_4096.blktrace.{cpu}")));
    let file = folder.join("t.csv").display().to_string();
    let both = emmclab(["trace", "export", &first, &second, "--csv", "-o", &file, "--json"]).exits(0).json();
    // btt counts 27 requests that reached the driver; one of them was returned and issued again.
    let lines = std::fs::read_to_string(&file).unwrap();
    let moved = lines.lines().skip(1).filter(|line| !line.contains(",flush,")).count();
    assert_eq!((moved, both["requests"].as_u64().unwrap() >= 27), (27, true), "{lines}");
    let stdout = emmclab(["trace", "export", &first, &second, "--csv", "-o", "-"]).exits(0).stdout;
    assert_eq!(stdout, lines);
}

#[test]
fn wrong_exports_are_refused_in_a_line() {
    let folder = scratch("export_wrong");
    let recording = testdata(DIRECT_WRITES);
    let (file, _) = export(&folder, DIRECT_WRITES, "--csv", "t.csv");
    let own = save(&folder, "own.dat", std::fs::read(&recording).unwrap());
    let empty = save(&folder, "empty.txt", "8,0 0 1 0.000000000 1 P N [a]\n");
    let refused = |args: &[&str], code: i32, says: &str| {
        let run = emmclab(["trace"].iter().chain(args)).exits(code);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
        assert!(run.stderr.lines().count() <= 2, "a line and a hint: {}", run.stderr);
    };
    refused(&["export", &recording, "--csv", "-o", &file], 2, "exists already; --force replaces it");
    refused(&["export", &own, "--chrome", "-o", &own, "--force"], 4, "is the source itself");
    refused(&["export", &recording, "-o", "x"], 2, "--perfetto");
    refused(&["export", &recording, "--csv", "--chrome", "-o", "x"], 2, "cannot be used with");
    refused(&["export", &recording, "--csv"], 2, "--output");
    refused(&["export", &recording, "--fio-iolog=4", "-o", "x"], 2, "4");
    refused(&["export", &recording, "--fio-iolog", "--file", "a b", "-o", "x"], 2, "no name with spaces");
    refused(&["export", &recording, "--csv", "--file", "a", "-o", "x"], 2, "cannot be used with");
    refused(&["export", &recording, "--csv", "--json", "-o", "-"], 2, "both need standard output");
    refused(&["export", &empty, "--chrome", "-o", "x"], 2, "no complete request is in it");
    refused(&["export", &empty, "--csv", "-o", "x"], 2, "no request is in it");
    refused(&["export", "/dev/null", "--csv", "-o", "x"], 2, "/dev/null");
    refused(&["compare", &recording, &empty], 2, "no complete request is in it");
    refused(&["compare", "-", "-"], 2, "standard input can be only one of the recordings");
    assert!(!folder.join("x").exists() && !Path::new("x").exists());
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let recording = testdata(DIRECT_WRITES);
    let found = emmclab(["trace", "compare", &recording, &recording, "--json"]).exits(0).json();
    let kind = &found["kinds"][0];
    assert_eq!((kind["op"].as_str(), kind["size_bytes"].as_u64()), (Some("write"), Some(4096)));
    assert_eq!(kind["spans"].as_array().unwrap().len(), 7);
    assert!(kind["spans"].as_array().unwrap().iter().all(|span| span["difference_us"].as_f64() == Some(0.0)));
    emmclab(["trace", "compare", &recording, &recording]).exits(0).says(&["write 4 KiB, direct: 8 and 8 requests"]);
}
