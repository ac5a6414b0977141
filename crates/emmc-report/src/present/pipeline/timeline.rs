//! The first requests over time: one line each, with marks for the stages.

use emmc_host::{PipelineStudy, TimelineRow};
use serde_json::{Value, json};

use crate::Chart;

/// Columns that the longest line's marks take.
const COLUMNS: usize = 72;

pub(super) fn timeline(study: &PipelineStudy) -> Chart {
    let end = study.timeline.iter().map(|row| row.post_end_us).fold(0.0, f64::max);
    let mut lines: Vec<String> = study.timeline.iter().map(|row| line(row, end)).collect();
    lines.push(format!("     0 us{:>width$}", super::us(end), width = COLUMNS - 4));
    Chart {
        title: format!("The first {} requests", study.timeline.len()),
        description: "< request-pre, # hardware, > request-post, . waiting".into(),
        spec: spec(&study.timeline),
        text: lines,
    }
}

fn line(row: &TimelineRow, end: f64) -> String {
    let column = |us: f64| if end > 0.0 { (us / end * COLUMNS as f64).round() as usize } else { 0 };
    let mut marks = String::new();
    for (until, mark) in [
        (row.pre_start_us, ' '),
        (row.pre_end_us, '<'),
        (row.hw_start_us, '.'),
        (row.hw_end_us, '#'),
        (row.post_start_us, '.'),
        (row.post_end_us, '>'),
    ] {
        // A stage too short for a column still takes one.
        let least = marks.len() + usize::from(mark != ' ' && mark != '.');
        let to = column(until).max(least);
        marks.extend(std::iter::repeat_n(mark, to - marks.len()));
    }
    format!("{:>3}  {marks}", row.request)
}

fn spec(rows: &[TimelineRow]) -> Value {
    let mut values: Vec<Value> = Vec::new();
    for row in rows {
        for (stage, from, to) in [
            ("request-pre", row.pre_start_us, row.pre_end_us),
            ("hardware", row.hw_start_us, row.hw_end_us),
            ("request-post", row.post_start_us, row.post_end_us),
        ] {
            values.push(json!({"request": row.request, "stage": stage, "from": from, "to": to}));
        }
    }
    json!({
        "data": {"values": values},
        "height": {"step": 18},
        "mark": {"type": "bar", "tooltip": true},
        "encoding": {
            "y": {"field": "request", "type": "ordinal", "title": "request"},
            "x": {"field": "from", "type": "quantitative", "title": "time (us)"},
            "x2": {"field": "to"},
            "color": {"field": "stage", "type": "nominal", "title": null, "sort": ["request-pre", "hardware", "request-post"]}
        }
    })
}

#[cfg(test)]
mod tests {
    use emmc_host::{Pipeline, Spans};
    use emmc_units::Bytes;

    use super::*;

    #[test]
    fn stages_are_drawn_to_scale_one_below_the_other() {
        let pipeline = Pipeline::new(Spans::from_micros(100, 200, 100), Bytes(4096));
        let chart = timeline(&PipelineStudy::of(pipeline, 2, 2).unwrap());
        // 600 us on 72 columns: 12 columns are 100 us.
        let marks = |mark: char, count: usize| mark.to_string().repeat(count);
        let first = marks('<', 12) + &marks('#', 24) + &marks('>', 12);
        let second = marks(' ', 12) + &marks('<', 12) + &marks('.', 12) + &marks('#', 24) + &marks('>', 12);
        assert_eq!(chart.text[..2], [format!("  0  {first}"), format!("  1  {second}")]);
        assert_eq!(chart.spec["data"]["values"].as_array().unwrap().len(), 6);
    }
}
