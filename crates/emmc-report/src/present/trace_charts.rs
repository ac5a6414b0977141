//! The pictures of a recording: spans as stacked bars, latencies over time, requests through the layers, heat maps.

use emmc_trace::result::{Analysis, SpanRow, Times};
use emmc_trace::{Heat, Pictures};
use serde_json::{Value, json};

use super::trace::{kind, size, trace, us};
use crate::{Chart, Document, Section};

/// Kinds of requests that are drawn.
const KINDS: usize = 12;
/// Lines of a chart's text.
const TEXT_LINES: usize = 16;
/// The parts of a request, first to last, as the legends have them.
const SPANS: [&str; 6] = ["vfs", "block", "issue", "card", "driver and card", "post"];
const COLOURS: [&str; 6] =
    ["var(--series-3)", "var(--series-2)", "var(--series-4)", "var(--series-1)", "var(--series-1)", "var(--series-5)"];

/// The report of a recording with its pictures.
pub fn trace_page(analysis: &Analysis, pictures: &Pictures) -> Document {
    let mut document = trace(analysis);
    let mut drawn = vec![];
    if let Some(chart) = stacked(analysis) {
        let mut section = Section::new("drawn-spans", "Spans, drawn");
        section.push(chart);
        drawn.push(section);
    }
    if !pictures.points.is_empty() {
        let mut section = Section::new("latency", "Latency over time");
        section.push(latency(pictures));
        drawn.push(section);
    }
    if !pictures.lines.is_empty() {
        let mut section = Section::new("timeline", "Requests around the slowest one");
        section.push(timeline(pictures));
        drawn.push(section);
    }
    let maps = [
        ("Sizes", "Requests by size over time", "requests", "size", &pictures.sizes),
        ("Depths", "Requests at the driver over time", "% of the time", "depth", &pictures.depths),
    ];
    for (name, title, unit, rows, heat) in maps {
        if let Some(heat) = heat {
            let mut section = Section::new(rows, name);
            section.push(self::heat(title, unit, rows, heat));
            drawn.push(section);
        }
    }
    // After the causes, before the tables.
    let place = document.sections.iter().position(|section| section.id == "spans").unwrap_or(document.sections.len());
    document.sections.splice(place..place, drawn);
    document
}

/// The mean time of each span: those of the system call first, as in a request.
fn parts(row: &SpanRow) -> Vec<(&'static str, f64)> {
    let mean = |times: &Option<Times>| times.as_ref().map(|times| times.mean);
    let card = match mean(&row.hardware_us) {
        Some(card) => ("card", Some(card)),
        None => ("driver and card", Some(row.device_us.mean)),
    };
    let all = [
        ("vfs", mean(&row.vfs_us)),
        ("block", mean(&row.block_us)),
        ("issue", mean(&row.issue_us)),
        card,
        ("post", mean(&row.post_us)),
    ];
    all.into_iter().filter_map(|(name, mean)| Some((name, mean?))).collect()
}

fn stacked(analysis: &Analysis) -> Option<Chart> {
    let rows: Vec<(String, Vec<(&str, f64)>)> = analysis
        .spans
        .iter()
        .take(KINDS)
        .map(|row| (format!("{}, {} ({})", kind(row), row.mode, row.count), parts(row)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let order = |span: &str| SPANS.iter().position(|name| *name == span);
    let values: Vec<Value> = rows
        .iter()
        .flat_map(|(name, parts)| {
            let sum: f64 = parts.iter().map(|(_, mean)| mean).sum();
            parts.iter().map(move |(span, mean)| {
                let share = if sum > 0.0 { mean / sum } else { 0.0 };
                json!({"request": name, "span": span, "us": mean, "share": share, "order": order(span)})
            })
        })
        .collect();
    let names: Vec<&String> = rows.iter().map(|(name, _)| name).collect();
    let spec = json!({
        "data": {"values": values},
        "height": 26 * names.len() + 10,
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "request", "type": "nominal", "title": null, "sort": names, "axis": {"labelLimit": 260}},
            "x": {"field": "us", "type": "quantitative", "title": "mean time (us)"},
            "color": colour(&values),
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [
                {"field": "request", "type": "nominal"},
                {"field": "span", "type": "nominal"},
                {"field": "us", "type": "quantitative", "format": ".1f", "title": "mean (us)"},
                {"field": "share", "type": "quantitative", "format": ".1%"}
            ]
        }
    });
    let text = rows.iter().map(|(name, parts)| {
        let parts: Vec<String> = parts.iter().map(|(span, mean)| format!("{span} {}", us(*mean))).collect();
        format!("{name}: {} us", parts.join(" + "))
    });
    Some(Chart {
        title: "Where the mean request spends its time".into(),
        description: "Mean of each span, stacked; most time of the recording first, with the number of requests".into(),
        spec,
        text: text.collect(),
    })
}

/// Spans have the same colours in all charts; the legend has those that occur.
fn colour(values: &[Value]) -> Value {
    let occurs = |span: &&&str| values.iter().any(|value| value["span"] == ***span);
    let seen: Vec<&&str> = SPANS.iter().filter(occurs).collect();
    json!({
        "field": "span", "type": "nominal", "title": null,
        "scale": {"domain": SPANS, "range": COLOURS},
        "legend": {"values": seen}
    })
}

fn latency(pictures: &Pictures) -> Chart {
    let values: Vec<Value> = pictures
        .points
        .iter()
        .map(|point| {
            json!({
                "s": point.at_s, "us": point.took_us.max(0.001), "op": point.op, "mode": point.mode,
                "size": size(point.size_bytes)
            })
        })
        .collect();
    let mut slowest: Vec<&emmc_trace::Point> = pictures.points.iter().collect();
    slowest.sort_by(|a, b| b.took_us.total_cmp(&a.took_us));
    let line = |point: &&emmc_trace::Point| {
        format!(
            "{:>12.6} s  {:>10} us  {} {}, {}",
            point.at_s,
            us(point.took_us),
            point.op,
            size(point.size_bytes),
            point.mode
        )
    };
    let sample = if pictures.is_sample { "; a sample, with all of the slowest" } else { "" };
    Chart {
        title: "Latency of each request".into(),
        description: format!("From begin to end, over the time of its begin{sample}. Scroll to zoom, drag to move"),
        spec: json!({
            "data": {"values": values},
            "height": 300,
            "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}],
            "mark": {"type": "point", "size": 30, "filled": true, "opacity": 0.6, "clip": true},
            "encoding": {
                "x": {"field": "s", "type": "quantitative", "title": "time (s)"},
                "y": {"field": "us", "type": "quantitative", "scale": {"type": "log"}, "title": "latency (us)"},
                "color": {"field": "op", "type": "nominal", "title": null},
                "tooltip": [
                    {"field": "op", "type": "nominal"}, {"field": "size", "type": "nominal"},
                    {"field": "mode", "type": "nominal"},
                    {"field": "us", "type": "quantitative", "format": ".1f", "title": "latency (us)"},
                    {"field": "s", "type": "quantitative", "format": ".6f", "title": "at (s)"}
                ]
            }
        }),
        text: slowest.iter().take(TEXT_LINES).map(line).collect(),
    }
}

fn timeline(pictures: &Pictures) -> Chart {
    let mut values: Vec<Value> = Vec::new();
    for (number, line) in (1..).zip(&pictures.lines) {
        for (span, from, to) in &line.parts {
            values.push(
                json!({"number": number, "request": line.name, "span": span, "from": from, "to": to, "us": to - from}),
            );
        }
    }
    let text = pictures.lines.iter().take(TEXT_LINES).map(|line| {
        let parts: Vec<String> =
            line.parts.iter().map(|(span, from, to)| format!("{span} {}", us(to - from))).collect();
        format!("{}: {} us", line.name, parts.join(" + "))
    });
    Chart {
        title: format!("{} requests through the layers", pictures.lines.len()),
        description: "One line for each request, in the order of completion: those within four times the time of \
                      the slowest of the recording, before and after it. Scroll to zoom, drag to move"
            .into(),
        spec: json!({
            "data": {"values": values},
            "height": pictures.lines.len() * if pictures.lines.len() > 40 { 6 } else { 14 } + 10,
            "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}],
            "mark": {"type": "bar", "clip": true},
            "encoding": {
                "y": {"field": "number", "type": "ordinal", "title": "request", "axis": {"labels": false}},
                "x": {"field": "from", "type": "quantitative", "title": "time (us)"},
                "x2": {"field": "to"},
                "color": colour(&values),
                "tooltip": [
                    {"field": "request", "type": "nominal"}, {"field": "span", "type": "nominal"},
                    {"field": "us", "type": "quantitative", "format": ".3f", "title": "took (us)"},
                    {"field": "from", "type": "quantitative", "format": ".3f", "title": "from (us)"}
                ]
            }
        }),
        text: text.collect(),
    }
}

fn heat(title: &str, unit: &str, rows: &str, heat: &Heat) -> Chart {
    let mut values: Vec<Value> = Vec::new();
    let mut sums = vec![0.0; heat.rows.len()];
    for (column, figures) in heat.columns.iter().enumerate() {
        let (from, to) = (column as f64 * heat.column_s, (column + 1) as f64 * heat.column_s);
        for ((row, figure), sum) in heat.rows.iter().zip(figures).zip(&mut sums) {
            *sum += figure;
            if *figure > 0.0 {
                values.push(json!({"from": from, "to": to, "row": row, "figure": figure}));
            }
        }
    }
    let all: f64 = sums.iter().sum();
    let from_top: Vec<&String> = heat.rows.iter().rev().collect();
    let share = |(row, sum): (&String, &f64)| format!("{row:>10}  {:5.1} %", 100.0 * sum / all.max(f64::MIN_POSITIVE));
    Chart {
        title: title.to_owned(),
        description: format!("Columns of {} ms; the colour is {unit}", us(heat.column_s * 1e3)),
        spec: json!({
            "data": {"values": values},
            "height": 22 * heat.rows.len() + 10,
            "mark": {"type": "rect", "tooltip": true},
            "encoding": {
                "x": {"field": "from", "type": "quantitative", "title": "time (s)", "scale": {"nice": false}},
                "x2": {"field": "to"},
                "y": {"field": "row", "type": "nominal", "title": rows, "sort": from_top},
                "color": {"field": "figure", "type": "quantitative", "title": unit, "legend": {"format": "~s"}},
                "tooltip": [
                    {"field": "row", "type": "nominal", "title": rows},
                    {"field": "figure", "type": "quantitative", "format": ".1f", "title": unit},
                    {"field": "from", "type": "quantitative", "format": ".3f", "title": "from (s)"}
                ]
            }
        }),
        text: heat.rows.iter().zip(&sums).map(share).collect(),
    }
}

#[cfg(test)]
mod tests {
    use emmc_trace::{Line, Point};

    use super::*;

    #[test]
    fn charts_have_their_figures_in_text_too() {
        let point = |took_us| Point { at_s: 1.5, took_us, op: "write", size_bytes: 4096, mode: "direct" };
        let line = Line { name: "<b>write".into(), parts: vec![("block", 0.0, 10.0), ("card", 10.0, 110.0)] };
        let columns = vec![vec![1.0, 0.0], vec![2.0, 1.0]];
        let heat = Heat { rows: vec!["4 KiB".into(), "8 KiB".into()], columns, column_s: 0.5 };
        let points = vec![point(10.0), point(110.0)];
        let pictures = Pictures { points, lines: vec![line], sizes: Some(heat), ..Pictures::default() };
        assert_eq!(latency(&pictures).text[0], "    1.500000 s         110 us  write 4 KiB, direct");
        let lines = timeline(&pictures);
        assert_eq!(lines.text, ["<b>write: block 10.0 + card 100 us"]);
        assert_eq!(lines.spec["data"]["values"].as_array().unwrap().len(), 2);
        let sizes = super::heat("Sizes", "requests", "size", pictures.sizes.as_ref().unwrap());
        assert_eq!(sizes.text, ["     4 KiB   75.0 %", "     8 KiB   25.0 %"]);
        assert_eq!(sizes.spec["data"]["values"].as_array().unwrap().len(), 3);
    }
}
