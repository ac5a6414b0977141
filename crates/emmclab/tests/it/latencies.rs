//! The table and the drawing of docs/collection.md: latencies under collection, of five profiles.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::support::emmclab_with_input;

const JOB: &str =
    r#"{"phases": [{"kind": "fill"}, {"kind": "random", "amount": "0.3x"}, {"kind": "random", "amount": "0.02x"}]}"#;

/// Profiles and families, as the page names them.
const CARDS: [(&str, &str); 5] = [
    ("generic-8g", "paced"),
    ("zynq-32g", "paced"),
    ("odroid-64g", "paced"),
    ("friendlyelec-emmc-8g", "paced, behind an SLC front"),
    ("toshiba-7au", "segment, merges at once"),
];

/// The drawing: its size, and the part in which the curves are. Unit: user units.
const SIZE: (f64, f64) = (760.0, 420.0);
const PLOT: (f64, f64, f64, f64) = (70.0, 20.0, 560.0, 380.0);
/// Powers of ten on the axes: us from left to right, shares from bottom to top.
const LATENCIES: (i32, i32) = (1, 6);
const SHARES: (i32, i32) = (-5, 0);
const COLOURS: [&str; 5] = ["#1b6ca8", "#c0392b", "#2e7d32", "#8e44ad", "#b7791f"];

struct Curve {
    name: &'static str,
    family: &'static str,
    latency: Value,
}

fn curve(&(name, family): &(&'static str, &'static str)) -> Curve {
    let card = format!("sim:{name}");
    let result = emmclab_with_input(&["sim", "run", &card, "--job", "-", "--json"], JOB.as_bytes()).exits(0).json();
    let phases = result["phases"].as_array().unwrap();
    Curve { name, family, latency: phases.last().unwrap()["latency_us"].clone() }
}

fn row(curve: &Curve) -> String {
    let figure = |key: &str| curve.latency[key].as_f64().unwrap();
    let ms = |key: &str| format!("{:.1}", figure(key) / 1e3);
    let (p50, slow) = (figure("p50").round(), ["p99", "p999", "max"].map(ms));
    format!("| `{}` | {} | {p50} | {} |", curve.name, curve.family, slow.join(" | "))
}

/// Where a power of ten lies between two others, on a line from `at.0` to `at.1`.
fn place(exponent: f64, (low, high): (i32, i32), at: (f64, f64)) -> f64 {
    let share = (exponent - f64::from(low)) / f64::from(high - low);
    at.0 + share.clamp(0.0, 1.0) * (at.1 - at.0)
}

/// For each latency that was seen, the share of requests that took longer.
fn points(latency: &Value) -> String {
    let total = latency["count"].as_f64().unwrap();
    let mut left = total;
    let mut points = Vec::new();
    for bucket in latency["histogram"].as_array().unwrap() {
        let x = place((bucket["ns"].as_f64().unwrap() / 1e3).log10(), LATENCIES, (PLOT.0, PLOT.2));
        let y = |left: f64| place((left / total).log10(), SHARES, (PLOT.3, PLOT.1));
        points.push(format!("{x:.1},{:.1}", y(left)));
        left -= bucket["count"].as_f64().unwrap();
        points.push(format!("{x:.1},{:.1}", y(left.max(1e-9))));
    }
    points.dedup();
    points.join(" ")
}

fn drawing(curves: &[Curve]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        SIZE.0, SIZE.1
    );
    let names = ["10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"];
    for (exponent, name) in (LATENCIES.0..=LATENCIES.1).zip(names) {
        let x = place(f64::from(exponent), LATENCIES, (PLOT.0, PLOT.2));
        writeln!(svg, "<line x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\" stroke=\"#ddd\"/>", PLOT.1, PLOT.3).unwrap();
        writeln!(svg, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{name}</text>", PLOT.3 + 18.0).unwrap();
    }
    let shares = ["0.001 %", "0.01 %", "0.1 %", "1 %", "10 %", "100 %"];
    for (exponent, name) in (SHARES.0..=SHARES.1).zip(shares) {
        let y = place(f64::from(exponent), SHARES, (PLOT.3, PLOT.1));
        writeln!(svg, "<line x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#ddd\"/>", PLOT.0, PLOT.2).unwrap();
        writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>", PLOT.0 - 6.0, y + 4.0).unwrap();
    }
    for (index, (curve, colour)) in curves.iter().zip(COLOURS).enumerate() {
        let points = points(&curve.latency);
        writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>").unwrap();
        let y = PLOT.1 + 16.0 + 20.0 * index as f64;
        let (from, to) = (PLOT.2 + 12.0, PLOT.2 + 34.0);
        writeln!(svg, "<line x1=\"{from}\" x2=\"{to}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"/>")
            .unwrap();
        writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", to + 6.0, y + 4.0, curve.name).unwrap();
    }
    svg + "</svg>\n"
}

/// With `EMMCLAB_WRITE_PAGES=1` it renews both instead.
#[test]
#[ignore = "minutes without optimisation: cargo test --release -p emmclab --test it latencies -- --ignored"]
fn the_page_shows_the_latencies_of_five_profiles() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (page, picture) = (docs.join("collection.md"), docs.join("collection.svg"));
    let curves: Vec<Curve> = CARDS.iter().map(curve).collect();
    let mut text = std::fs::read_to_string(&page).unwrap();
    let is_row = |line: &&str| CARDS.iter().any(|(name, _)| line.starts_with(&format!("| `{name}` |")));
    let shown: Vec<String> = text.lines().filter(is_row).map(str::to_owned).collect();
    let rows: Vec<String> = curves.iter().map(row).collect();
    if std::env::var_os("EMMCLAB_WRITE_PAGES").is_some() {
        text = text.replacen(&shown.join("\n"), &rows.join("\n"), 1);
        std::fs::write(&page, text).unwrap();
        std::fs::write(&picture, drawing(&curves)).unwrap();
        return;
    }
    assert_eq!(shown, rows);
    assert_eq!(std::fs::read_to_string(&picture).unwrap(), drawing(&curves));
}
