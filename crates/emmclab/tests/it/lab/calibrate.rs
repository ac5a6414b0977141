//! `lab calibrate`, and `bench --host` with its file beside the lab, for workloads that are not in the calibration.

use super::kernel;
use crate::support::{emmclab, save, scratch};

/// MB/s of fio in the lab and of `bench --host` for the same requests.
struct Row {
    lab: f64,
    predicted: f64,
    bare: f64,
}

#[test]
fn a_calibrated_host_predicts_workloads_that_it_was_not_measured_with() {
    let Some(kernel) = kernel() else { return };
    let folder = scratch("lab_calibrate");
    let host = folder.join("host.toml").display().to_string();
    let calibrate = ["lab", "calibrate", "--kernel", &kernel, "--cpu-ns", "4"];
    let document = emmclab(calibrate.iter().chain(&["-o", &host, "--json"])).exits(0).json();
    let cost = &document["host"]["cqe"]["read"];
    assert!(cost["busy_us"].as_f64() > cost["before_us"].as_f64(), "{cost}");
    let shipped = emmc_host::host("lab-4ns").unwrap();
    let version = document["kernel"].as_str().unwrap();
    if shipped.description.contains(&format!("Linux {version} ")) {
        let measured = emmc_host::HostDescription::from_toml(&std::fs::read_to_string(&host).unwrap()).unwrap();
        for queueing in [true, false] {
            let costs = |of: &emmc_host::HostDescription| [of.of(queueing).read, of.of(queueing).write];
            for (now, then) in costs(&measured).into_iter().zip(costs(&shipped)) {
                // Where the kernel's ticks fall depends on all that the guest's scripts did before.
                let sums = |of: emmc_host::RequestCost| [of.call_us + of.before_us + of.after_us, of.busy_us];
                for (now, then) in sums(now).into_iter().zip(sums(then)) {
                    assert!((now / then - 1.0).abs() < 0.01, "queueing {queueing}: {now} us, shipped {then} us");
                }
            }
        }
    } else {
        eprintln!("SKIPPED in part: lab-4ns ({}) is of another kernel than {version}", shipped.description);
    }
    let again = emmclab(calibrate.iter().chain(&["-o", &host])).exits(2);
    assert!(again.stderr.contains("exists"), "{}", again.stderr);

    let script = "fio_record x --filename=$DEVICE --size=64m --io_size=$AMOUNT --rw=$RW --bs=$BS --direct=1 \
                  --ioengine=libaio --iodepth=$DEPTH $MORE >/dev/null\n";
    let script = save(&folder, "one.sh", script);
    let row = |controller: &str, job: [(&str, &str); 4]| {
        let lab = |ns: &str, more: &str, out: &str| {
            let set = job.iter().map(|(name, value)| format!("{name}={value}")).chain([format!("MORE={more}")]);
            let set: Vec<String> = set.flat_map(|set| ["--env".to_owned(), set]).collect();
            let words = ["lab", "run", "--kernel", &kernel, "--card", "generic-8g", "--script", &script, "--json"];
            let words = [&words[..], &["--controller", controller, "--cpu-ns", ns, "--out", out]].concat();
            emmclab(words.iter().map(|word| (*word).to_owned()).chain(set)).exits(0).json()
        };
        // Recording the requests costs processor time, so it has a run of its own, in which that is free.
        let out = folder.join(format!("{controller}-{}", job[1].1)).display().to_string();
        lab("0", "--write_iolog=/out/x.log", &out);
        let side = if job[0].1.contains("read") { "read" } else { "write" };
        let found = lab("4", "", &format!("{out}-timed"));
        let bytes_per_s = found["fio"][0]["result"]["jobs"][0][side]["bw_bytes"].as_f64().unwrap();
        let bench = |more: &[&str]| {
            let log = format!("{out}/x.log");
            let words = ["bench", "sim:generic-8g", "--suite", "replay", "--trace", &log, "--queue-depth", job[2].1];
            let queueing: &[&str] = if controller == "cqe" { &[] } else { &["--no-queueing"] };
            let result = emmclab(words.iter().chain(queueing).chain(more).chain(&["--json"])).json();
            result["measurements"][0]["mb_per_s"].as_f64().unwrap()
        };
        Row { lab: bytes_per_s / 1e6, predicted: bench(&["--host", &host]), bare: bench(&[]) }
    };
    let job = |rw, bs, depth, amount| [("RW", rw), ("BS", bs), ("DEPTH", depth), ("AMOUNT", amount)];
    for (controller, job) in [
        ("cqe", job("randread", "8k", "4", "16m")),
        ("no-cqe", job("randread", "32k", "1", "32m")),
        ("no-cqe", job("randwrite", "4k", "2", "8m")),
    ] {
        let Row { lab, predicted, bare } = row(controller, job);
        println!("{controller} {job:?}: lab {lab:.2} MB/s, predicted {predicted:.2}, without the host {bare:.2}");
        assert!((predicted / lab - 1.0).abs() < 0.02, "{controller} {job:?}: {lab} MB/s, predicted {predicted}");
        // Without the host the same comparison fails: it says something.
        assert!(bare / lab - 1.0 > 0.04, "{controller} {job:?}: {lab} MB/s, without the host {bare}");
    }
}

#[test]
fn a_wrong_file_of_a_host_is_one_line() {
    let folder = scratch("lab_host_file");
    let bad = save(&folder, "bad.toml", "name = \"a\"\ndescription = \"b\"\ncores = 0\n");
    let none = folder.join("none.toml").display().to_string();
    for (host, part) in [
        (bad.as_str(), "bad.toml: not the file of a host: line 1: missing field `no_cqe`"),
        (none.as_str(), "none.toml: cannot read"),
        ("jetson", "jetson-tx1"),
    ] {
        let run = emmclab(["bench", "sim:generic-8g", "--host", host]).exits(2);
        assert!(run.stderr.contains(part) && run.stderr.lines().count() == 1, "{}", run.stderr);
    }
    let real = emmclab(["bench", "/dev/null", "--host", &bad]).exits(2);
    assert!(real.stderr.contains("--board: supported only for virtual cards"), "{}", real.stderr);
}
