//! The files in `reference/` are generated from `testdata/`: `EMMCLAB_WRITE_REFERENCE=1` writes them.

use std::collections::BTreeMap;

use super::*;
use crate::import::{self, published_rate};
use crate::result::Figure;
use crate::result::measurement::Measurement;

fn file(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn testdata(path: &str) -> String {
    std::fs::read_to_string(file(&format!("../../testdata/{path}"))).unwrap()
}

fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

fn rows(path: &str) -> Vec<Vec<String>> {
    testdata(path).lines().skip(1).map(|line| line.split(',').map(Into::into).collect()).collect()
}

/// `1m13.938s`.
fn seconds(text: &str) -> f64 {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}

fn reference(name: String, about: String, source: &str) -> Reference {
    Reference { name, about, source: source.into(), iozone: None, outcomes: Vec::new() }
}

fn nine_cards() -> Vec<Reference> {
    let source = "a forum thread of 2018, one RK3399 board: iozone -e -I -a -s 100M; dmesg; time apt install lxde";
    let columns = ["write", "rewrite", "read", "reread", "random read", "random write"].map(|name| (name, "KiB/s"));
    let times = rows("nine_cards/boot_lxde.csv");
    times
        .iter()
        .map(|times| {
            let mut grid = Grid::new("iozone", "record KiB", &columns, "iozone -e -I -a -s 100M -i 0 -i 1 -i 2");
            for row in rows("nine_cards/iozone.csv").iter().filter(|row| row[0] == times[0]) {
                let rates: Vec<f64> = row[2..8].iter().map(|rate| rate.parse().unwrap()).collect();
                grid.line(row[1].clone(), &rates);
            }
            let boots: Vec<f64> = times[2].split(';').map(|time| time.parse().unwrap()).collect();
            let mut outcome = Outcome { suite: "boot and install".into(), ..Outcome::default() };
            outcome.about = "until a service near the end of the boot; installing a desktop".into();
            let mean = boots.iter().sum::<f64>() / boots.len() as f64;
            outcome.figures = vec![
                Figure::new("boot", mean, "s", format!("mean of {} boots", boots.len())),
                Figure::new("install of LXDE", seconds(&times[3]), "s", "time apt install lxde, real"),
            ];
            let mut card = reference(format!("nine-cards-{}", slug(&times[0])), times[0].clone(), source);
            (card.iozone, card.outcomes) = (Some(grid), vec![outcome]);
            card
        })
        .collect()
}

fn board_vendor() -> Vec<Reference> {
    let cards = [
        ("colibri-t30-mlc", "t30_bonnie_dd_before", "Colibri T30's eMMC as delivered, 3825205248 bytes"),
        ("colibri-t30-pslc", "t30_bonnie_dd_after", "the same as pSLC, 1912602624 bytes"),
        ("colibri-imx6s-wrrel-on", "wrrel_on_colibri-imx6s", "Colibri iMX6S's eMMC, write reliability on"),
        ("colibri-imx6s-wrrel-off", "wrrel_off_colibri-imx6s", "Colibri iMX6S's eMMC, write reliability off"),
    ];
    let read = |(name, path, about): (&str, &str, &str)| {
        let text = testdata(&format!("seeds_console/{path}.txt"));
        let source = "the board vendor's page on eMMC: its console";
        let outcomes = import::read(name, text.as_bytes()).unwrap().outcomes;
        Reference { outcomes, ..reference(name.into(), about.into(), source) }
    };
    cards.map(read).into()
}

fn open_units() -> Vec<Reference> {
    let source = "a mailing list, April 2011: flashbench -O, as printed";
    let mut cards: BTreeMap<String, Outcome> = BTreeMap::new();
    for row in rows("flashbench/open_au_2011.csv") {
        let outcome = cards.entry(row[0].clone()).or_default();
        let units: u32 = row[1].parse().unwrap();
        let column = if units == 1 { "1 AU".to_owned() } else { format!("{units} AUs") };
        let (digits, unit) = row[6].split_at(row[6].len() - 3);
        let scale = if unit == "M/s" { 1e6 } else { 1e3 };
        let rate = digits.parse::<f64>().unwrap() * scale;
        let block = row[5].parse::<u64>().unwrap() << 10;
        let told = published_rate(["open-au, linear", &row[4], &column], ["write", "strided"], block, rate);
        // One run was made twice: the first counts.
        if !outcome.measurements.iter().any(|cell| (&cell.row, &cell.column) == (&told.row, &told.column)) {
            outcome.measurements.push(told);
        }
    }
    let told = cards.into_iter().map(|(card, mut outcome)| {
        outcome.suite = "open-au".into();
        outcome.about = "writes of halving size to allocation units of 4 MiB in turn".into();
        outcome.tables = vec![Pivot {
            table: "open-au, linear".into(),
            rows: "block".into(),
            unit: "MB/s".into(),
            caption: "10^6 bytes a second".into(),
        }];
        let about = format!("the {card} eMMC of a phone of 2011");
        Reference { outcomes: vec![outcome], ..reference(format!("open-units-{card}"), about, source) }
    });
    told.collect()
}

fn white_paper() -> Vec<Reference> {
    let tables: serde_json::Value = serde_json::from_str(&testdata("cq_tables/cq_tables.json")).unwrap();
    let source = tables["source"].as_str().unwrap().to_owned();
    let mut measured = Outcome { suite: "white paper, table 2".into(), ..Outcome::default() };
    measured.about = "measured speeds; its MB are 2^20 bytes: converted".into();
    let mut cells: Vec<Measurement> = Vec::new();
    for row in tables["table2"]["rows"].as_array().unwrap() {
        let workload = row[0].as_str().unwrap();
        let op = workload.rsplit(' ').next().unwrap();
        let order = if workload.contains("direct") { "sequential" } else { "sequential, buffered" };
        let rate = row[6].as_f64().unwrap() * 1_048_576.0;
        cells.push(published_rate(["white paper", "128 KiB", workload], [op, order], 128 << 10, rate));
        let theory = row[4].as_f64().unwrap() * 1.048_576;
        measured.figures.push(Figure::new(format!("{workload}, theoretical"), theory, "MB/s", "Table 2"));
    }
    measured.measurements = cells;
    let mut zynq = Outcome { suite: "white paper, table 3".into(), ..Outcome::default() };
    zynq.about = "theoretical speeds of 64 KiB random requests; its MB are 2^20 bytes: converted".into();
    for row in tables["table3"]["rows"].as_array().unwrap() {
        for (column, threads) in [(4, "one thread"), (5, "several threads")] {
            let name = format!("{}, {threads}, theoretical", row[0].as_str().unwrap().to_lowercase());
            let theory = row[column].as_f64().unwrap() * 1.048_576;
            zynq.figures.push(Figure::new(name, theory, "MB/s", "Table 3"));
        }
    }
    vec![
        Reference {
            outcomes: vec![measured],
            ..reference("jetson-tx1".into(), "NVIDIA Jetson TX1, 8 GB e.MMC, HS400".into(), &source)
        },
        Reference {
            outcomes: vec![zynq],
            ..reference("zynq".into(), "Xilinx Zynq ZedBoard, 32 GB e.MMC, HS400".into(), &source)
        },
    ]
}

#[test]
fn references_match_testdata() {
    let made = [
        ("nine-cards", nine_cards()),
        ("board-vendor", board_vendor()),
        ("open-units-2011", open_units()),
        ("white-paper", white_paper()),
    ];
    let mut all = Vec::new();
    for (name, list) in made {
        let path = file(&format!("reference/{name}.json"));
        let lines: Vec<String> = list.iter().map(|one| serde_json::to_string(one).unwrap()).collect();
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        if std::env::var_os("EMMCLAB_WRITE_REFERENCE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert!(std::fs::read_to_string(&path).unwrap() == text, "{path} is not what testdata makes of it");
        all.extend(list);
    }
    assert_eq!(all.len(), 17);
}

#[test]
fn references_are_found_by_name() {
    let names: Vec<String> = references().into_iter().map(|reference| reference.name).collect();
    assert_eq!(names.len(), 17, "{names:?}");
    for name in &names {
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        let result = super::reference(name).unwrap().result();
        assert!(result.outcomes.iter().any(|outcome| !outcome.measurements.is_empty() || !outcome.figures.is_empty()));
    }
    let card = super::reference("nine-cards-sandisk-extreme-a1-32gb").unwrap().result();
    let cells = &card.outcomes[0].measurements;
    assert_eq!(cells.len(), 48);
    let cell = cells.iter().find(|cell| cell.row == "4" && cell.column == "random write").unwrap();
    assert_eq!((cell.mb_per_s, cell.iops), (5888.0 * 1024.0 / 1e6, 1472.0));
    assert_eq!(card.outcomes[1].figures[1].value, Some(58.518));
    assert_eq!(super::reference("none"), None);
}
