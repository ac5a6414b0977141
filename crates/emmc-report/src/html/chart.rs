//! Charts: their specifications as data, and the bundled scripts that draw them.

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use super::blocks::prose;
use crate::Chart;
use crate::visible::visible;

/// The scripts of a page with charts, in order, each with the hash that the page's policy allows.
///
/// Source: assets/README.md says where they are from and how to make the hashes.
const SCRIPTS: [(&str, &str); 4] = [
    (include_str!("../../assets/vega.min.js"), "sha256-j2o1h8+NT0LH4IEg4+sF0GfnRtVU450tz1KswL1boo8="),
    (include_str!("../../assets/vega-lite.min.js"), "sha256-hD0gdiym5S/1zqt6MpYhknKpwLU2RALWgU88dzj0vl4="),
    (include_str!("../../assets/vega-embed.min.js"), "sha256-ZxnwPt9yvv8jMQ7lbNDxqeu/fdzGVtPlzC+QZ6uDVnE="),
    (include_str!("../../assets/charts.js"), "sha256-U9zlP2rJUbsymT4gGjeRkjSxV3wCQWA8Zxh6C0h/odk="),
];
const CONFIG: &str = include_str!("../../assets/chart-config.json");
const LICENSES: &str = include_str!("../../assets/LICENSES.txt");

/// The names of the libraries in [`SCRIPTS`].
pub(super) const LIBRARIES: &str = "Vega 6.4.0, Vega-Lite 6.4.3 and Vega-Embed 7.3.0";

pub(super) fn chart(chart: &Chart) -> Markup {
    html! {
        figure.chart {
            figcaption {
                h3 { (visible(&chart.title)) }
                p { (prose(&chart.description)) }
            }
            div.plot {}
            script type="application/json" { (PreEscaped(json_in_html(&specification(chart)))) }
            // Open, so it is shown and printed unless the chart was drawn.
            details open {
                summary { "In words" }
                pre { @for line in &chart.text { (visible(line)) "\n" } }
            }
        }
    }
}

/// The caller's specification, by default as wide as the page and with a description for screen readers.
fn specification(chart: &Chart) -> Value {
    let mut spec = chart.spec.clone();
    if let Value::Object(members) = &mut spec {
        // A chart made of charts has no width of its own.
        if !["facet", "concat", "hconcat", "vconcat", "repeat"].iter().any(|name| members.contains_key(*name)) {
            members.entry("width").or_insert_with(|| "container".into());
        }
        let description = format!("{}. {}", chart.title, chart.description);
        members.entry("description").or_insert_with(|| visible(&description).into());
    }
    spec
}

/// JSON that can neither end its script element nor open another.
fn json_in_html(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// A script without its last line, which would make a browser look for another file.
fn without_source_map(script: &str) -> &str {
    script.split("//# sourceMappingURL").next().unwrap_or(script)
}

pub(super) fn script_sources() -> String {
    SCRIPTS.map(|(_, hash)| format!("'{hash}'")).join(" ")
}

pub(super) fn scripts() -> Markup {
    html! {
        script type="text/plain" { (PreEscaped(LICENSES)) }
        script type="application/json" id="chart-config" { (PreEscaped(CONFIG)) }
        @for (script, _) in SCRIPTS { script { (PreEscaped(without_source_map(script))) } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_lets_exactly_the_bundled_scripts_run() {
        for (i, (script, hash)) in SCRIPTS.into_iter().enumerate() {
            let script = without_source_map(script);
            let digest = Sha256::digest(script.as_bytes());
            assert_eq!(hash, format!("sha256-{}", base64(&digest)), "script {i}");
            assert!(!script.contains("</script") && !script.contains("<!--"), "script {i} cannot stand in a page");
        }
        assert!(!LICENSES.contains("</"));
        assert!(!CONFIG.contains("</") && serde_json::from_str::<Value>(CONFIG).is_ok());
    }

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for group in bytes.chunks(3) {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
            for i in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
                out.push(if i <= group.len() { char::from(digit) } else { '=' });
            }
        }
        out
    }

    #[test]
    fn data_cannot_leave_its_script_element() {
        let spec = json!({ "data": { "values": [{ "name": "</script><script>alert(1)</script><!--" }] } });
        let chart = Chart { title: "t".into(), description: "d".into(), spec: spec.clone(), text: vec![] };
        let html = super::chart(&chart).into_string();
        assert_eq!(html.matches("<script").count(), 1);
        assert_eq!(html.matches("</script").count(), 1);
        assert!(!html.contains("<!--"));
        let start = html.find('{').unwrap();
        let end = html.find("</script").unwrap();
        let parsed: Value = serde_json::from_str(&html[start..end]).unwrap();
        assert_eq!(parsed["data"], spec["data"]);
    }

    #[test]
    fn a_chart_has_the_width_of_the_page_by_default() {
        let wide = |spec| specification(&Chart { title: "t".into(), description: "d".into(), spec, text: vec![] });
        assert_eq!(
            wide(json!({ "mark": "bar" })),
            json!({ "mark": "bar", "width": "container", "description": "t. d" })
        );
        assert_eq!(wide(json!({ "width": 50 }))["width"], 50);
        assert!(wide(json!({ "hconcat": [] })).get("width").is_none());
        assert_eq!(wide(json!("not an object")), json!("not an object"));
    }
}
