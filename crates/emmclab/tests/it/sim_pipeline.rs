//! The host's pipeline through the binary: figures of the white paper, and one clear error for impossible values.

use crate::support;
use crate::support::{emmclab, scratch};
use serde_json::Value;

const FIRST_ROW: [&str; 8] = ["--pre", "635", "--hw", "1414", "--post", "51", "--chunk", "128KiB"];

fn pipeline(args: &[&str]) -> support::Run {
    emmclab(["sim", "pipeline"].iter().chain(args))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn the_first_row_of_table_2_is_printed() {
    let result = pipeline(&[&FIRST_ROW[..], &["--json"]].concat()).exits(0).json();
    let one = &result["pipelines"][0];
    let limits = &one["limits"];
    for (figure, mb_s, mib_s) in [
        ("one_at_a_time", 62.42, 59.52),
        ("one_at_a_time_fast_device", 191.07, 182.22),
        ("pipelined", 92.70, 88.40),
        ("pipelined_fast_device", 206.41, 196.85),
    ] {
        assert!((number(&limits[figure]["mb_s"]) - mb_s).abs() < 0.01, "{figure}: {limits}");
        assert!((number(&limits[figure]["mib_s"]) - mib_s).abs() < 0.01, "{figure}: {limits}");
    }
    assert_eq!((&limits["bottleneck"], number(&limits["period_us"])), (&"device".into(), 1414.0));
    assert_eq!(number(&one["simulated_us"]), 2100.0 + 999.0 * 1414.0);
    assert_eq!(one["makespan"]["us"], one["simulated_us"]);
    assert_eq!((&result["platform"], &result["paper"]), (&Value::Null, &Value::Null));
    let text = pipeline(&[&FIRST_ROW[..], &["--requests", "2"]].concat()).exits(0);
    let text = text.says(&["59.52", "182.22", "the device", "MB is 10^6 bytes, MiB is 2^20 bytes", "equal"]);
    let marks: Vec<&str> = text.stdout.lines().filter(|line| line.contains('<') && line.contains("##")).collect();
    assert!(marks.len() >= 2, "{}", text.stdout);
}

#[test]
fn cores_depth_and_engine_change_the_result() {
    let limits =
        |args: &[&str]| pipeline(&[args, &["--json"]].concat()).exits(0).json()["pipelines"][0]["limits"].take();
    let zynq = ["--platform", "zynq-zed", "--workload", "random-read"];
    let with = |args: &[&str]| limits(&[&zynq[..], args].concat());
    assert_eq!(with(&[])["bottleneck"], "serial-pre");
    assert_eq!(with(&["--cores", "1"])["bottleneck"], "cores");
    assert_eq!(with(&["--depth", "1"])["bottleneck"], "depth");
    assert_eq!(with(&["--cqe", "none"])["bottleneck"], "device");
    assert!((9.0..11.0).contains(&number(&with(&[])["cq_gain_percent"])));
    assert_eq!(number(&with(&["--cqe", "none", "--gap", "0"])["period_us"]), 737.0);
    assert_eq!(number(&with(&["--serial", "100"])["period_us"]), 560.0);
}

#[test]
fn tables_name_the_figures_that_differ() {
    let paper = pipeline(&["--tables", "--json"]).exits(0).json()["paper"].take();
    let cells = paper["cells"].as_array().unwrap();
    let off: Vec<&str> = cells
        .iter()
        .filter(|cell| cell["verdict"] == "not-reproduced")
        .map(|cell| cell["printed"].as_str().unwrap())
        .collect();
    assert_eq!(off, ["81", "30.23", "36.58"]);
    for one in paper["measured"].as_array().unwrap() {
        assert!(number(&one["difference_percent"]).abs() < 10.0, "{one}");
    }
    let shown = pipeline(&["--tables"]).exits(0);
    shown.says(&[
        "-0.69 % not reproduced",
        "no spans printed",
        "nothing overlapped",
        "one number fitted to one number",
    ]);
}

#[cfg(feature = "html")]
#[test]
fn the_page_draws_the_timeline() {
    let file = scratch("sim_pipeline").join("pipeline.html");
    let file = file.to_str().unwrap();
    pipeline(&["--platform", "jetson-tx1", "--tables", "-o", file]).exits(0);
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("request-post") && page.contains("The first 12 requests"));
    let again = pipeline(&["--platform", "jetson-tx1", "-o", file]).exits(2);
    assert!(again.stderr.contains("--force"), "{again:?}");
}

/// One line with the found and the expected value.
#[test]
fn invalid_requests_are_refused() {
    let own = |change: (&str, &'static str)| {
        let mut args = FIRST_ROW;
        let at = args.iter().position(|word| *word == change.0).unwrap();
        args[at + 1] = change.1;
        pipeline(&args)
    };
    let more = |args: &[&str]| pipeline(&[&FIRST_ROW[..], args].concat());
    for (run, says) in [
        (own(("--pre", "0")), "pre is 0 us; expected more than 0"),
        (own(("--hw", "0")), "hw is 0 us"),
        (own(("--post", "0")), "post is 0 us"),
        (own(("--hw", "61000000")), "expected at most 60 s"),
        (own(("--chunk", "1000B")), "chunk is 1000 B; expected a multiple of 512 B"),
        (own(("--chunk", "0B")), "chunk is 0 B"),
        (more(&["--depth", "0"]), "depth is 0; expected 1 to 32"),
        (more(&["--depth", "33"]), "depth is 33; expected 1 to 32"),
        (more(&["--cores", "0"]), "cores is 0; expected 1 to 1024"),
        (more(&["--requests", "0"]), "requests is 0; expected 1 to 10000000"),
        (more(&["--serial", "636"]), "serial part of pre is 636.0 us; expected at most pre"),
        (more(&["--gap", "687"]), "gap is 687.0 us; expected at most pre + post"),
        (pipeline(&["--platform", "zynq-zed", "--workload", "x"]), "expected one of random-read, random-write"),
        (pipeline(&["--tables", "--depth", "3"]), "--queue-depth changes nothing in the tables"),
    ] {
        let run = run.exits(2);
        assert_eq!((run.stdout.as_str(), run.stderr.lines().count()), ("", 1), "{run:?}");
        assert!(run.stderr.starts_with("emmclab: ") && run.stderr.contains(says), "no {says:?} in {run:?}");
    }
    for (run, says) in [
        (own(("--hw", "-5")), "expected microseconds"),
        (own(("--chunk", "50%")), "expected a number of bytes"),
        (own(("--hw", "NaN")), "expected microseconds"),
        (own(("--chunk", "128")), "has no unit"),
        (pipeline(&["--pre", "635"]), "--hw"),
        (pipeline(&[]), "required"),
        (more(&["--platform", "zynq-zed"]), "cannot be used with"),
        (pipeline(&["--board", "pi"]), "possible values: jetson-tx1, zynq-zed"),
    ] {
        let run = run.exits(2);
        assert!(run.stderr.contains(says), "no {says:?} in {run:?}");
    }
}

/// With `--json` standard output is one JSON document and nothing else.
#[cfg(feature = "html")]
#[test]
fn json_to_standard_output_is_json() {
    let plain = pipeline(&[&FIRST_ROW[..], &["--json"]].concat()).exits(0);
    assert_eq!(pipeline(&[&FIRST_ROW[..], &["--json", "-o", "-"]].concat()).exits(0).stdout, plain.stdout);
    let page = pipeline(&[&FIRST_ROW[..], &["-o", "-"]].concat()).exits(0);
    assert!(page.stdout.starts_with("<!DOCTYPE html>"), "{:.100}", page.stdout);
}
