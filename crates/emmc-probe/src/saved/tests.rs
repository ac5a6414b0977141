use emmc_workload::import::read;

use super::*;
use crate::result::Confidence;

fn concluded(path: &str) -> Findings {
    let file = format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    let result = read(path, &std::fs::read(file).expect("testdata")).expect("a result");
    conclude(&[result])
}

fn whole(findings: &Findings, name: &str) -> Option<u64> {
    findings.parameters[name].value.as_ref().and_then(Value::whole)
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Page, least useful write, allocation unit, open units linear and random.
fn geometry(path: &str) -> [Option<u64>; 5] {
    let found = concluded(path);
    println!("{path}: {found:#?}");
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
