//! `twin`: fits of small tables, checks, the baseline, and what is refused.

use std::path::Path;

use serde_json::Value;

use crate::contract::words;
use crate::keys::documents;
use crate::support::{emmclab, save, scratch, testdata};

/// A table of two records, measured on a virtual card.
fn table(folder: &Path, part: &str) -> String {
    let run = format!("bench sim:{part} --suite iozone --rows 512,1024 --size 16MiB --json");
    save(folder, "table.json", emmclab(run.split(' ')).exits(0).stdout)
}

fn median(document: &Value) -> f64 {
    document["error"]["median"].as_f64().unwrap()
}

#[test]
fn a_fitted_profile_is_a_card_with_the_measured_speeds() {
    let folder = scratch("twin_fit");
    let table = table(&folder, "generic-8g");
    let profile = folder.join("my-part.toml").display().to_string();
    let fit = ["twin", "fit", &table, "--kind", "emmc", "-o", &profile, "--json"];
    let twin = emmclab(fit).exits(0).json();
    assert_eq!(twin["cells"].as_array().unwrap().len(), 12);
    assert!(twin["held_out"].is_null() && median(&twin) < 3.0, "{}", twin["error"]);
    let parameters = twin["parameters"].as_array().unwrap();
    for found in parameters {
        let number = |key: &str| found[key].as_f64().unwrap();
        assert!(number("low") <= number("value") && number("value") <= number("high"), "{found}");
        assert!(found["unit"].is_string() && found["is_determined"].is_boolean(), "{found}");
    }
    // Twelve cells of two sizes do not tell all of them apart.
    assert!(parameters.iter().any(|found| found["is_determined"] == false));
    let log = parameters.iter().find(|found| found["name"] == "log").unwrap();
    let is_noted = twin["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("of the log"));
    assert_eq!(is_noted, log["is_determined"] == false, "{log} {}", twin["notes"]);
    let next = twin["next"].as_array().unwrap();
    let narrower = |found: &Value| found["narrower_percent"].as_f64().unwrap();
    assert!(next.iter().map(narrower).is_sorted_by(|a, b| a >= b) && narrower(&next[0]) > 0.0, "{next:?}");
    assert!(next[0]["command"].as_str().unwrap().starts_with("emmclab bench DEVICE --suite "), "{next:?}");
    let checked = emmclab(["twin", "check", &profile, &table, "--json"]).exits(0).json();
    assert_eq!((&checked["error"], &checked["cells"]), (&twin["error"], &twin["cells"]));
    assert_eq!(checked["profile"], "my-part");
    emmclab(["sim", "info", "--profile", &profile]).exits(0);
    // What no measurement shows is that of the base; what they show is not.
    let based = folder.join("based.toml").display().to_string();
    let with_base = ["twin", "fit", &table, "--kind", "emmc", "--base", "generic-32g", "-o", &based, "--json"];
    assert!(median(&emmclab(with_base).exits(0).json()) < 3.0);
    let user = |profile: &str| {
        let info = emmclab(["sim", "info", "--profile", profile]).exits(0).stdout;
        info.lines().find(|line| line.starts_with("  user ")).map(str::to_owned)
    };
    assert!(user(&based).is_some() && user(&based) == user("generic-32g"));
    assert_ne!(user(&profile), user("generic-32g"));
    let again = emmclab(fit).exits(2);
    assert!(again.stderr.contains("exists already; --force replaces it"), "{}", again.stderr);
}

#[test]
fn another_part_does_not_have_the_measured_speeds() {
    let folder = scratch("twin_check");
    let table = table(&folder, "generic-8g");
    let check = |part: &str| median(&emmclab(["twin", "check", part, &table, "--json"]).exits(0).json());
    assert!(check("generic-8g") < 1.0 && check("toshiba-7au") > 30.0);
    emmclab(["twin", "check", "sim:generic-8g", &table]).exits(0).says(&["speeds of 12 cells differ by"]);
}

/// iozone's output for a card of lines.
fn iozone(file_kib: u64, records: &[u64]) -> String {
    let rate = |kib: u64, fixed: u64| kib * 1_000_000 / (fixed + 40 * kib);
    let row = |kib: u64| {
        let speeds = [3000, 1000, 500, 500, 700, 5000].map(|fixed| format!("{:9}", rate(kib, fixed)));
        format!("{file_kib:16}{kib:8}{}\n", speeds.concat())
    };
    let head = "                                                              random    random\n              kB  reclen    write  rewrite    read    reread    read     write\n";
    format!("{head}{}", records.iter().copied().map(row).collect::<String>())
}

/// The rules are simple enough to be known for a table that keeps them.
#[test]
fn the_baseline_of_lines_is_exact_for_lines() {
    let folder = scratch("twin_baseline");
    let table = save(&folder, "iozone.txt", iozone(102_400, &[4, 16, 128, 512, 1024, 16384]));
    let found = emmclab(["twin", "baseline", &table, "--json"]).exits(0).json();
    for rule in ["lines", "lines_every_second"] {
        assert!(found[rule]["p90"].as_f64().unwrap() < 0.1, "{found}");
    }
    // A random write of 16 KiB takes 5640 us, the first write 3640.
    assert!((found["copied"]["p90"].as_f64().unwrap() - 55.0).abs() < 0.1, "{found}");
    // A half of one record has no line.
    let two = save(&folder, "two.txt", iozone(102_400, &[4, 128]));
    let found = emmclab(["twin", "baseline", &two, "--json"]).exits(0).json();
    assert!(found["lines"].is_object() && found["lines_every_second"].is_null(), "{found}");
    emmclab(["twin", "baseline", &two]).exits(0).says(&["baseline of 1 table"]);
}

#[test]
fn what_cannot_be_fitted_is_refused_with_the_reason() {
    let folder = scratch("twin_refused");
    let table = table(&folder, "generic-8g");
    let one = "bench sim:generic-8g --suite iozone --rows 512 --size 16MiB --json";
    let one = save(&folder, "one.json", emmclab(one.split(' ')).exits(0).stdout);
    let refused = |args: &[&str], says: &str| {
        let run = emmclab(["twin"].iter().chain(args)).exits(2);
        assert!(run.stderr.contains(says) && run.stdout.is_empty(), "{args:?}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    };
    refused(&["fit", &one, "--kind", "emmc"], "column \"write\" has records of 1 size; a fit needs at least 2");
    // A rate of dd counts beside a table, not alone.
    refused(&["fit", "ref:colibri-t30-mlc", "--kind", "emmc"], "no column of iozone and no run of flashbench -O");
    refused(
        &["fit", &table, "--kind", "sd", "--base", "generic-8g"],
        "--base generic-8g: an eMMC; the fit is of an SD",
    );
    refused(&["fit", &table, "--kind", "emmc", "--base", "generic-8g@5%"], "leave out @PERCENT");
    refused(&["fit", &table, "--kind", "emmc", "--base", "nothing"], "no profile \"nothing\"");
    refused(&["baseline", "ref:jetson-tx1"], "no column of iozone and no run of flashbench -O");
    refused(&["fit", "ref:nothing", "--kind", "sd"], "no such published result");
    refused(&["fit", &table, "--kind", "emmc", "--host", "nobody"], "--host nobody: expected lab-1ns");
    refused(&["fit", &table, "--kind", "emmc", "--registers", &table], "table.json");
    refused(&["fit", "-", "-", "--kind", "sd"], "standard input can be only one of the results");
    refused(&["check", "generic-8g@60%", &table], "a new card is measured");
    refused(&["check", "nothing", &table], "no profile \"nothing\"");
    refused(&["baseline", "-", "-"], "standard input can be only one of the results");
    refused(&["check", "/dev/zero", &table], "/dev/zero: expected a file or a pipe; a device may be endless");
    let long = save(&folder, "long.toml", "#".repeat((1 << 20) + 1));
    refused(&["check", &long, &table], "long.toml: expected at most 1048576 bytes, found");
    // Each says which file, and why, before a search.
    let big = save(&folder, "big.txt", iozone(20 << 20, &[4, 128]));
    let longer = save(&folder, "longer.txt", iozone(102_400, &[4, 128, 32_768]));
    let odd = save(&folder, "odd.txt", iozone(102_400, &[500, 1000]));
    let short = save(&folder, "short.txt", iozone(64, &[4, 128]));
    refused(&["check", "generic-8g", &big], "big.txt on generic-8g: iozone: a file of 20 GiB");
    refused(&["check", "generic-8g", &longer], "longer.txt on generic-8g: iozone: row \"32768\"");
    refused(&["check", "generic-8g", &short], "short.txt: a record of 128 KiB in a file of 64 KiB");
    refused(&["fit", &big, "--kind", "emmc"], "big.txt: iozone: a file of 20 GiB");
    refused(&["fit", &odd, "--kind", "emmc"], "odd.txt: iozone: row \"500\"");
    refused(
        &["fit", &table, "--kind", "sd", "--registers", "sim:generic-8g"],
        "--registers sim:generic-8g: those of an eMMC; the fit is of an SD card",
    );
    refused(&["fit", &table, "--kind", "emmc", "--like", "generic-8g"], "--like generic-8g: expected a profile that");
    let twice = ["fit", &table, "--kind", "emmc", "--like", "a.toml", "b.toml", "a.toml"];
    refused(&twice, "--like a.toml: it is given twice; expected profiles of other parts");
    let units = "testdata/flashbench/toshiba-2011.txt";
    let units = format!("{}/../../{units}", env!("CARGO_MANIFEST_DIR"));
    refused(&["fit", &units, "--kind", "emmc", "--hold-out", "columns"], "--hold-out needs a table of iozone");
    // One table of one card.
    let published = "ref:nine-cards-sandisk-ultra-8gb";
    let cards = "results of sim:generic-8g and SanDisk 'Ultra' 8GB; expected those of one card";
    refused(&["check", "generic-8g", &table, published], cards);
    refused(&["fit", &table, published, "--kind", "emmc"], cards);
    refused(&["check", "generic-8g", &odd, &odd], "column \"write\" has the record of 500 KiB more than once");
    let other = save(&folder, "other.txt", iozone(51_200, &[4, 128]));
    refused(&["check", "generic-8g", &odd, &other], "files of 50 MiB and 100 MiB; expected one size");
    // What cannot be written is said first.
    let to = |to: &str, says: &str| {
        let run = emmclab(["twin", "fit", &odd, "--kind", "emmc", "--force", "-o", to]);
        assert!(run.code != 0 && run.stderr.contains(says), "{to}: {}", run.stderr);
    };
    to(&folder.join("missing/p.toml").display().to_string(), "there is no folder");
    to(&folder.display().to_string(), "is a folder; expected a file");
    to(&odd, "is the source itself");
    to(&folder.join("twin").display().to_string(), "expected NAME.toml");
}

/// Each file that is read is kept, with --force too.
#[test]
fn no_source_of_a_fit_is_overwritten() {
    let folder = scratch("twin_sources");
    let table = table(&folder, "generic-8g");
    let source = save(&folder, "source.toml", "something");
    for option in ["--registers", "--host", "--base", "--like"] {
        let run =
            emmclab(["twin", "fit", &table, "--kind", "emmc", option, &source, "-o", &source, "--force"]).exits(4);
        assert!(run.stderr.contains("source.toml: is the source itself"), "{option}: {}", run.stderr);
        assert_eq!(std::fs::read_to_string(&source).unwrap(), "something");
    }
}

/// Text does not say which card it is from; and what is not repeated is listed.
#[test]
fn several_texts_are_taken_together_with_a_note() {
    let folder = scratch("twin_together");
    let [small, large] = [("small.txt", [4, 16]), ("large.txt", [128, 512])]
        .map(|(name, records)| save(&folder, name, iozone(102_400, &records)));
    let run = "bench sim:generic-8g --suite speed --size 16MiB --json";
    let speed = save(&folder, "speed.json", emmclab(run.split(' ')).exits(0).stdout);
    let checked = emmclab(["twin", "check", "generic-8g", &small, &large, &speed, "--json"]).exits(0).json();
    let note = checked["notes"][0].as_str().unwrap();
    assert!(note.contains("small.txt") && note.contains("does not say which card"), "{note}");
    let columns: Vec<&str> =
        checked["cells"].as_array().unwrap().iter().map(|cell| cell["column"].as_str().unwrap()).collect();
    assert!(columns.contains(&"random_write") && columns.contains(&"random_writes_at_1"), "{columns:?}");
    let one = emmclab(["twin", "check", "generic-8g", &small, "--json"]).exits(0).json();
    assert!(one["notes"].as_array().unwrap().is_empty(), "{one}");
}

/// The first round of `steady` meets a card that was written once; what is repeated was overwritten twice before.
#[test]
fn a_round_on_a_card_that_was_only_filled_is_not_repeated() {
    let folder = scratch("twin_steady");
    let card = format!("sim:{}", testdata("virtual-cards/small-card.toml"));
    let steady = save(&folder, "s.json", emmclab(["bench", &card, "--suite", "steady", "--json"]).exits(0).stdout);
    let found = emmclab(["twin", "check", card.strip_prefix("sim:").unwrap(), &steady, "--json"]).exits(0).json();
    let columns: Vec<&str> =
        found["cells"].as_array().unwrap().iter().map(|cell| cell["column"].as_str().unwrap()).collect();
    let is_of_aged = |column: &&str| column.starts_with("aged_") || !column.starts_with("random_writes");
    assert!(columns.iter().any(|column| column.starts_with("aged_")), "{columns:?}");
    assert!(columns.iter().all(is_of_aged), "{columns:?}");
    assert!(found["left_out"].to_string().contains("not overwritten before"), "{}", found["left_out"]);
}

#[test]
fn twin_documents_keep_their_keys() {
    let table = table(&scratch("twin_documents"), "generic-8g");
    documents("twin-fit", &[words(&format!("twin fit {table} --kind emmc --hold-out columns"))]);
    documents("twin-check", &[words(&format!("twin check generic-8g {table}"))]);
    documents("twin-baseline", &[words("twin baseline ref:nine-cards-sandisk-ultra-8gb")]);
}
