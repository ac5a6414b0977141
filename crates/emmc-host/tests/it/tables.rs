//! The shipped platforms against the paper's tables as data.

use emmc_host::{CqEngine, PLATFORMS};
use serde_json::Value;

fn tables() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cq_tables/cq_tables.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn spans_and_measured_speeds_are_the_papers() {
    let tables = tables();
    let names = [
        ("128KB sync sequential write", "sync-sequential-write"),
        ("128KB direct sequential write", "direct-sequential-write"),
        ("128KB sync sequential read", "sync-sequential-read"),
        ("128KB direct sequential read", "direct-sequential-read"),
        ("Random read", "random-read"),
        ("Random write", "random-write"),
    ];
    let mut found = 0;
    for (platform, table) in PLATFORMS.iter().zip(["table2", "table3"]) {
        let rows = tables[table]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), platform.workloads.len());
        for row in rows {
            let name = names.iter().find(|(printed, _)| row[0] == *printed).unwrap().1;
            let workload = platform.workload(name).unwrap();
            let spans = [workload.spans.pre, workload.spans.hw, workload.spans.post];
            for (span, printed) in spans.iter().zip([&row[1], &row[2], &row[3]]) {
                assert_eq!(span.0, printed.as_u64().unwrap() * 1000, "{name}");
            }
            let measured = if table == "table2" { row[6].as_f64() } else { None };
            assert_eq!(workload.measured_mib_s, measured, "{name}");
            found += 1;
        }
    }
    assert_eq!(found, 6);
}

#[test]
fn printed_figures_are_the_papers() {
    let tables = tables();
    let shown = |value: &Value| value.as_f64().unwrap();
    let mut printed: Vec<f64> = Vec::new();
    for row in tables["table2"]["rows"].as_array().unwrap() {
        printed.extend([shown(&row[4]), shown(&row[5])]);
    }
    for row in tables["table3"]["rows"].as_array().unwrap() {
        printed.extend([shown(&row[4]), shown(&row[5])]);
    }
    printed.push(shown(&tables["text_numbers"]["sync_seq_write_at_hw_700us_MBps"]));
    printed.push(shown(&tables["text_numbers"]["loss_MBps"]));
    let ours: Vec<f64> = emmc_host::paper::reproduce().cells.iter().map(|cell| cell.printed.parse().unwrap()).collect();
    assert_eq!(ours, printed);
}

#[test]
fn shares_are_the_papers() {
    let tables = tables();
    let lists = tables["software_overhead_percent"].as_object().unwrap();
    let printed: Vec<(&str, &str)> = lists
        .values()
        .flat_map(|list| list.as_object().unwrap())
        .map(|(line, share)| (line.as_str(), share.as_str().unwrap()))
        .collect();
    let ours = emmc_host::paper::reproduce().overheads;
    assert_eq!(ours.len(), printed.len());
    for share in ours {
        assert!(printed.contains(&(share.line, share.printed)), "{share:?}");
    }
}

#[test]
fn cores_and_engines_are_the_papers() {
    let tables = tables();
    let rows = tables["table1"]["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap();
    let [jetson, zynq] = &PLATFORMS;
    let cores = |column: usize| row("Core number")[column].as_str().unwrap().parse::<u32>().unwrap();
    assert_eq!((zynq.cores, jetson.cores), (cores(1), cores(2)));
    assert_eq!(
        (row("CQE")[1].as_str(), row("CQE")[2].as_str()),
        (Some("Hardware CQ engine"), Some("Software simulation CQ"))
    );
    assert_eq!((zynq.engine, jetson.engine), (CqEngine::Hardware, CqEngine::Software));
}
