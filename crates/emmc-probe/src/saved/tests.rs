use emmc_workload::import::read;

use super::*;
use crate::result::Confidence;

fn concluded(path: &str) -> Findings {
    let file = format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    let result = read(path, &std::fs::read(file).expect("testdata")).expect("a result");
    conclude(&[result]).expect("a conclusion")
}

fn whole(findings: &Findings, name: &str) -> Option<u64> {
    findings.parameters[name].value.as_ref().and_then(Value::whole)
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Page, least useful write, allocation unit, open units linear and random.
fn geometry(path: &str) -> [Option<u64>; 5] {
    let found = concluded(path);
    ["page", "write_unit", "allocation_unit", "open_units", "open_units_random"].map(|name| whole(&found, name))
}

#[test]
fn the_cards_of_the_mailing_list() {
    assert_eq!(geometry("flashbench/toshiba-2011.txt"), [None, Some(32 * KIB), Some(4 * MIB), Some(7), None]);
    // The time of a merge fits 4 MiB only, and writes of 2 MiB have nothing to merge.
    assert_eq!(geometry("flashbench/sandisk-2011.txt"), [None, None, None, Some(20), None]);
}

#[test]
fn cards_with_a_conclusion_of_a_person() {
    assert_eq!(geometry("flashbench/readme.txt"), [Some(8 * KIB), None, Some(4 * MIB), Some(2), None]);
    let kingston = geometry("flashbench/kingston-sa04g.txt");
    assert_eq!(kingston, [Some(16 * KIB), None, Some(4 * MIB), Some(3), Some(3)]);
    let kingston = concluded("flashbench/kingston-sa04g.txt");
    assert_eq!(kingston.parameters["fat_region"].value, Some(Value::Kind("none".into())));
    // Its streams fit 2 MiB too, as its author says.
    assert_eq!(kingston.parameters["allocation_unit"].confidence, Some(Confidence::Low));
    let readme = concluded("flashbench/readme.txt");
    assert_eq!(readme.parameters["allocation_unit"].confidence, Some(Confidence::High));
    // The last line is cut; its three times are there.
    assert_eq!(geometry("flashbench/h3po-128g.txt"), [None, None, Some(2 * MIB), None, None]);
}

#[test]
fn noisy_and_truncated_runs_tell_nothing() {
    for path in ["smi-00000", "sandisk-sl16g-pt", "usb-2023"] {
        assert_eq!(geometry(&format!("flashbench/{path}.txt")), [None; 5], "{path}");
    }
    let loop_device = geometry("bench_results/flashbench_62.txt");
    assert_eq!(loop_device, [None; 5]);
}

/// What a text of flashbench says.
fn said(text: &str) -> Result<Findings, ImportError> {
    conclude(&[read("f", text.as_bytes()).expect("a result")])
}

/// Rows of `--align` with these differences, the first at 1 KiB.
fn aligned(differences: &[f64]) -> Findings {
    let row = |(power, diff): (usize, &f64)| {
        format!("align {}\tpre 500us\ton {}us\tpost 500us\tdiff {diff}us\n", KIB << power, 500.0 + diff)
    };
    said(&differences.iter().enumerate().map(row).collect::<String>()).expect("a conclusion")
}

#[test]
fn equal_rows_have_no_step() {
    for differences in [[0.0; 15], [12.5; 15]] {
        let found = aligned(&differences);
        assert_eq!(["page", "allocation_unit"].map(|name| whole(&found, name)), [None; 2]);
        let why = found.parameters["allocation_unit"].cannot_tell.as_deref().expect("a reason");
        assert!(why.contains("no clear step over boundaries of 1 KiB to 16 MiB; rows differ by 0 us"), "{why}");
    }
    // Below what flashbench prints.
    let mut differences = [10.0; 15];
    differences[12..].fill(12.0);
    assert_eq!(whole(&aligned(&differences), "allocation_unit"), None);
    // One true step, with the rows around it as equal as before.
    differences[12..].fill(110.0);
    assert_eq!(whole(&aligned(&differences), "allocation_unit"), Some(4 * MIB));
}

#[test]
fn sizes_of_writes_have_a_limit() {
    let run = |size: &str| {
        let smaller = "4MiB 9M/s\n2MiB 9M/s\n1MiB 9M/s\n512KiB 9M/s\n";
        let command = |units: u32| format!("$ flashbench -O --open-au-nr={units} /dev/sdb\n");
        said(&format!("{}{size} 9M/s\n{smaller}{}{size} 9M/s\n{smaller}", command(1), command(2)))
    };
    assert_eq!(run("1024GiB").map(|found| whole(&found, "open_units")), Ok(Some(2)));
    // As `bench --json` could have it too.
    for size in ["9223372036854775808B", "4611686018427387904B", "1025GiB"] {
        let error = run(size).expect_err(size).to_string();
        assert!(error.starts_with("f: open-au, linear: a write of "), "{error}");
        assert!(error.ends_with(" is larger than any unit of a card; expected at most 1024GiB"), "{error}");
    }
    // Boundaries of a large disk are none.
    assert!(said("align 4398046511104\tpre 1us\ton 1us\tpost 1us\tdiff 1us\n").is_ok());
    assert_eq!(
        [labelled("99999999999GiB"), labelled("99999999999999999999B"), labelled("B")],
        [Some(u64::MAX), Some(u64::MAX), None]
    );
}

/// Why a parameter has no value, from runs of `--open-au`: options, and rows of sizes with MB/s.
fn reason(name: &str, runs: &[(&str, &[(&str, f64)])]) -> String {
    let run = |(options, rows): &(&str, &[(&str, f64)])| {
        let rows = rows.iter().map(|(size, rate)| format!("{size} {rate}M/s\n")).collect::<String>();
        format!("$ flashbench -O --open-au-nr={options} /dev/sdb\n{rows}")
    };
    let found = said(&runs.iter().map(run).collect::<String>()).expect("a conclusion");
    found.parameters[name].cannot_tell.clone().expect("a reason")
}

const LARGE: [(&str, f64); 2] = [("4MiB", 9.0), ("2MiB", 9.0)];
const MANY: [(&str, f64); 4] = [("4MiB", 9.0), ("2MiB", 9.0), ("1MiB", 9.0), ("512KiB", 9.0)];

#[test]
fn reasons_are_those_of_the_rates() {
    let write_unit = |rates: [f64; 6]| {
        let sizes = ["4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB"];
        let rows: Vec<(&str, f64)> = sizes.into_iter().zip(rates).collect();
        reason("write_unit", &[("1", &rows)])
    };
    assert_eq!(
        write_unit([0.76, 0.32, 0.59, 1.23, 6.62, 8.07]),
        "smaller writes are faster than larger ones: disturbed"
    );
    assert_eq!(write_unit([0.5, 1.0, 1.4, 2.0, 2.9, 4.2]), "the rates rise over many sizes");
    assert_eq!(write_unit([9.0; 6]), "no clear drop down to 4 KiB, the smallest size");
    let gap = [("4KiB", 0.4), ("8KiB", 0.5), ("64KiB", 2.0), ("128KiB", 2.1), ("256KiB", 2.1)];
    assert_eq!(reason("write_unit", &[("1", &gap)]), "the rate drops below 64 KiB, and half of that was not measured");
}

#[test]
fn reasons_are_those_of_the_runs() {
    let shared = "the runs with and without --random share too few small sizes; smaller ones show it";
    let small = [("256KiB", 9.0), ("128KiB", 9.0), ("64KiB", 9.0)];
    assert_eq!(reason("mapping_class", &[("1", &MANY), ("1 --random", &small)]), shared);
    assert_eq!(reason("mapping_class", &[("1", &MANY), ("1 --random", &LARGE)]), shared);
    let same_time = [("4MiB", 8.0), ("2MiB", 4.0), ("1MiB", 2.0), ("512KiB", 1.0)];
    let why = reason("mapping_class", &[("1", &same_time), ("1 --random", &same_time)]);
    assert_eq!(why, "the times of linear writes do not shrink with their size");

    let open_units = |runs: &[(&str, &[(&str, f64)])]| reason("open_units", runs);
    assert_eq!(
        open_units(&[("5", &MANY), ("6", &LARGE)]),
        "with no --random, the runs of 5 and 6 units share too few small sizes; smaller ones show it"
    );
    assert_eq!(open_units(&[("5", &LARGE)]), "the runs with no --random have too few sizes; smaller ones show it");
    assert_eq!(open_units(&[("5", &MANY)]), "only 5 units were tried with no --random; more and fewer show it");
    assert_eq!(open_units(&[("1", &MANY)]), "only 1 unit was tried with no --random; more and fewer show it");
    let slow = [("4MiB", 9.0), ("2MiB", 4.5), ("1MiB", 2.2), ("512KiB", 1.1)];
    assert_eq!(open_units(&[("1", &MANY), ("5", &MANY), ("5", &slow)]), "two runs of 5 units differ by 8.2 times");
    let one = aligned(&[1.0]).parameters["page"].cannot_tell.clone();
    assert_eq!(one.as_deref(), Some("no step among small boundaries: only 1 row, boundaries of 1 KiB to 1 KiB"));
}
