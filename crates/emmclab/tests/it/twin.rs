//! `twin`: fits of small tables, checks, the baseline, and what is refused.

use std::path::Path;

use serde_json::Value;

use crate::contract::{documents, words};
use crate::support::{emmclab, save, scratch};

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
    assert!(parameters.iter().any(|found| found["is_determined"] == true));
    let checked = emmclab(["twin", "check", &profile, &table, "--json"]).exits(0).json();
    assert_eq!((&checked["error"], &checked["cells"]), (&twin["error"], &twin["cells"]));
    assert_eq!(checked["profile"], "my-part");
    emmclab(["sim", "info", "--profile", &profile]).exits(0);
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

/// The rules are simple enough to be known for a table that keeps them.
#[test]
fn the_baseline_of_lines_is_exact_for_lines() {
    let rate = |kib: u64, fixed: u64| kib * 1_000_000 / (fixed + 40 * kib);
    let row = |kib: u64| {
        let speeds = [3000, 1000, 500, 500, 700, 5000].map(|fixed| format!("{:9}", rate(kib, fixed)));
        format!("{:16}{kib:8}{}\n", 102_400, speeds.concat())
    };
    let head = "                                                              random    random\n              kB  reclen    write  rewrite    read    reread    read     write\n";
    let text = format!("{head}{}", [4, 16, 128, 512, 1024, 16384].map(row).concat());
    let table = save(&scratch("twin_baseline"), "iozone.txt", text);
    let found = emmclab(["twin", "baseline", &table, "--json"]).exits(0).json();
    for rule in ["lines", "lines_every_second"] {
        assert!(found[rule]["p90"].as_f64().unwrap() < 0.1, "{found}");
    }
    // A random write of 16 KiB takes 5640 us, the first write 3640.
    assert!((found["copied"]["p90"].as_f64().unwrap() - 55.0).abs() < 0.1, "{found}");
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
    refused(&["fit", &one, "--kind", "emmc"], "column \"write\" has 1 records; a fit needs at least 2");
    refused(&["fit", "ref:colibri-t30-mlc", "--kind", "emmc"], "no column of iozone");
    refused(&["baseline", "ref:jetson-tx1"], "no column of iozone");
    refused(&["fit", "ref:nothing", "--kind", "sd"], "no such published result");
    refused(&["fit", "-", "-", "--kind", "sd"], "standard input can be only one of the results");
    refused(&["check", "generic-8g@60%", &table], "a new card is measured");
    refused(&["check", "nothing", &table], "no profile \"nothing\"");
}

#[test]
fn twin_documents_keep_their_keys() {
    let table = table(&scratch("twin_documents"), "generic-8g");
    documents("twin-fit", &[words(&format!("twin fit {table} --kind emmc --hold-out columns"))]);
    documents("twin-check", &[words(&format!("twin check generic-8g {table}"))]);
    documents("twin-baseline", &[words("twin baseline ref:nine-cards-sandisk-ultra-8gb")]);
}
