//! `advise system` and `advise worth`: findings of a copied system, and a change before and after.

use std::path::Path;

use crate::keys;
use crate::support::{emmclab, is_root, save, scratch, skip, testdata};

/// A board that swaps to its card, logs to it, and has a partition inside of a unit.
fn board(name: &str) -> String {
    let folder = scratch(name);
    let copy =
        std::process::Command::new("cp").arg("-a").arg(testdata("sysfs/board")).arg(folder.join("board")).status();
    assert!(copy.unwrap().success());
    let root = folder.join("board");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/swaps", "Filename Type Size Used Priority\n/swapfile file 524288 10240 -2\n");
    write("proc/vmstat", "pswpin 0\npswpout 250000\n");
    write("proc/uptime", "864000.00 100.00\n");
    write("etc/systemd/journald.conf", "[Journal]\nStorage=persistent\n");
    root.display().to_string()
}

#[test]
fn a_system_that_wears_its_card_is_told_why() {
    let root = board("advise_system");
    let history = save(
        &scratch("advise_history"),
        "samples.ndjson",
        "{\"time\": \"2026-01-01T00:00:00Z\", \"life_a\": 5, \"life_b\": 5, \"written_bytes\": 0}\n\
         {\"time\": \"2026-06-01T00:00:00Z\", \"life_a\": 6, \"life_b\": 6, \"written_bytes\": 100000000000}\n\
         {\"time\": \"2026-12-01T00:00:00Z\", \"life_a\": 7, \"life_b\": 7, \"written_bytes\": 200000000000}\n",
    );
    let args = ["advise", "system", "--sysroot", &root, "mmcblk0", "--history", &history];
    let found = emmclab([&args[..], &["--json"]].concat()).exits(1).json();
    let ids: Vec<&str> =
        found["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect();
    for id in ["advise-swap", "advise-journal", "advise-tmp", "advise-commit"] {
        assert!(ids.contains(&id), "{id} is not in {ids:?}");
    }
    assert_eq!(found["findings"][0]["id"], "advise-swap");
    let saves = found["findings"][0]["saves_bytes_per_day"].as_f64().unwrap();
    assert!(saves > 0.0 && found["system"]["swappiness"].is_null());
    keys::documents("advise-system", &[args.map(String::from).to_vec()]);
    let text = emmclab(args).exits(1).stdout;
    assert!(
        text.contains("The system swaps to the card (/swapfile)") && text.contains("What it would bring"),
        "{text}"
    );
}

#[test]
fn processes_that_write_are_watched() {
    if !is_root() || !Path::new("/proc/self/io").exists() {
        return skip("needs root and /proc/PID/io");
    }
    let run = emmclab(["advise", "system", "/", "--for", "200ms", "--json"]);
    // In a container / is no block device.
    if run.code == 3 {
        return skip("/ is not on a block device here");
    }
    let watched = &run.json()["system"]["watched"];
    assert!(watched["seconds"].as_f64().unwrap() >= 0.2 && watched["writers"].is_array(), "{watched}");
}

#[test]
fn a_change_is_compared_before_and_after() {
    let samples = format!("{}/../../examples/samples.ndjson", env!("CARGO_MANIFEST_DIR"));
    let args = ["advise", "worth", &samples, "--split", "2026-10-21T03:00:00Z"];
    let found = emmclab([&args[..], &["--json"]].concat()).exits(0).json();
    let saved = found["saved_percent"].as_f64().unwrap();
    assert!((60.0..70.0).contains(&saved) && found["is_clear"] == true, "{found}");
    keys::documents("advise-worth", &[args.map(String::from).to_vec()]);
    // In the middle of equal days nothing is clear.
    let same = ["advise", "worth", &samples, "--split", "2026-10-11T03:00:00Z"];
    let before_change: Vec<String> =
        std::fs::read_to_string(&samples).unwrap().lines().take(21).map(str::to_owned).collect();
    let first = save(&scratch("advise_worth"), "first.ndjson", before_change.join("\n"));
    let found = emmclab(["advise", "worth", &first, same[3], same[4], "--json"]).exits(1).json();
    assert_eq!(found["is_clear"], false, "{found}");

    let late = emmclab(["advise", "worth", &samples, "--split", "2027-01-01T00:00:00Z"]).exits(2).stderr;
    assert!(late.contains("after 2027-01-01T00:00:00Z: 0 samples"), "{late}");
    emmclab(["advise", "worth", &samples, "--split", "yesterday"]).exits(2);
    let none = emmclab(["advise", "worth", "/no/such/file", "--split", "2027-01-01T00:00:00Z"]).exits(2).stderr;
    assert!(none.contains("/no/such/file"), "{none}");
}
