//! The host as a pipeline: its limits, its timeline, and the white paper's tables.

mod paper;
mod timeline;

use emmc_host::{Bottleneck, CqEngine, PipelineResult, PipelineStudy, Speed};

use crate::{Align, BarItem, Bars, Cell, Document, KeyValue, Section, Table, Tone};

/// The report of `sim pipeline`.
pub fn pipeline(result: &PipelineResult) -> Document {
    let mut document = Document::new(match (&result.platform, result.pipelines.is_empty()) {
        (Some(platform), _) => format!("Host pipeline of {}", platform.title),
        (None, false) => "Host pipeline".into(),
        (None, true) => "Host pipeline: the white paper's tables".into(),
    });
    document.subtitle = result.platform.as_ref().map(|platform| platform.host.into());
    for study in &result.pipelines {
        one(study, &mut document);
    }
    if let Some(platform) = result.platform.as_ref().filter(|_| !result.pipelines.is_empty()) {
        let section = document.section("sources", "Sources");
        section.note(Tone::Muted, format!("Gap between two transfers: {}.", platform.gap_source));
    }
    if let Some(paper) = &result.paper {
        paper::paper(paper, &mut document);
    }
    document
}

fn one(study: &PipelineStudy, document: &mut Document) {
    let prefix = study.workload.map(|name| format!("{name}-")).unwrap_or_default();
    let heading =
        |title: &str| study.workload.map_or(title.to_owned(), |name| format!("{name}: {}", title.to_lowercase()));
    let section = document.section(format!("{prefix}request"), heading("One request"));
    request(study, section);
    let section = document.section(format!("{prefix}limits"), heading("Limits"));
    limits(study, section);
    let title = format!("{} requests", super::sim::count(study.requests));
    let section = document.section(format!("{prefix}makespan"), heading(&title));
    makespan(study, section);
    section.push(timeline::timeline(study));
}

fn request(study: &PipelineStudy, section: &mut Section) {
    let engine = match study.engine {
        CqEngine::Hardware => "in the controller (hardware)",
        CqEngine::Software => "on a core (software)",
        CqEngine::None => "none",
    };
    let mut pairs = vec![
        KeyValue::new("chunk", study.chunk_bytes.to_string()),
        KeyValue::new("depth, cores", format!("{}, {}", study.depth, study.cores)),
        KeyValue::new("command queue engine", engine),
    ];
    if study.serial_us < study.pre_us {
        pairs.push(KeyValue::new("serial part of pre", us(study.serial_us)));
    }
    if let Some(source) = study.source {
        pairs.push(KeyValue::new("spans", source));
    }
    section.push(pairs);
    let hw_end = study.pre_us + study.hw_us;
    let part = |label: &str, from: f64, to: f64| BarItem::range(label, from, to);
    let bars = Bars::stacked("One request alone", "us")
        .max(study.limits.request_us)
        .item(part("request-pre", 0.0, study.pre_us))
        .item(part("hardware", study.pre_us, hw_end))
        .item(part("request-post", hw_end, study.limits.request_us));
    section.push(bars);
    section.paragraph(format!("Software is {:.1} % of a request's time.", study.limits.overhead_percent));
}

fn limits(study: &PipelineStudy, section: &mut Section) {
    let limits = &study.limits;
    let columns = [("", Align::Left), ("MB/s", Align::Right), ("MiB/s", Align::Right), ("us a request", Align::Right)];
    let mut table = Table::new(columns).caption("MB is 10^6 bytes, MiB is 2^20 bytes.");
    let mut row = |name: &str, speed: Speed| {
        let time = study.chunk_bytes.0 as f64 / speed.mb_s;
        table.row([name.to_owned(), format!("{:.2}", speed.mb_s), format!("{:.2}", speed.mib_s), format!("{time:.1}")]);
    };
    row("one at a time", limits.one_at_a_time);
    row("one at a time, infinitely fast device", limits.one_at_a_time_fast_device);
    row("pipelined", limits.pipelined);
    row("pipelined, infinitely fast device", limits.pipelined_fast_device);
    section.push(table);
    section.push(vec![
        KeyValue::new("bottleneck", bottleneck(limits.bottleneck)),
        KeyValue::new("command queue engine speed-up", format!("{:.1} %", limits.cq_gain_percent)).note(format!(
            "period {} without it ({} pass between two transfers), {} with it; {:.1} % if all of post did",
            us(limits.period_cq_off_us),
            us(study.gap_us),
            us(limits.period_cq_on_us),
            limits.cq_gain_all_of_post_percent
        )),
    ]);
}

fn makespan(study: &PipelineStudy, section: &mut Section) {
    let closed = if study.makespan.is_exact { "exact" } else { "an estimate: the steady-state period and one request" };
    section.push(vec![
        KeyValue::new("closed form", whole_us(study.makespan.us)).note(closed),
        KeyValue::new("simulated", whole_us(study.simulated_us)).note(difference(study)),
        KeyValue::new(
            "average speed",
            format!("{:.2} MB/s = {:.2} MiB/s", study.simulated.mb_s, study.simulated.mib_s),
        ),
        KeyValue::new("cores busy", format!("{:.1} %", study.cores_busy_percent)),
        KeyValue::new("card busy", format!("{:.1} %", study.device_busy_percent)),
    ]);
}

fn difference(study: &PipelineStudy) -> String {
    let percent = (study.makespan.us / study.simulated_us - 1.0) * 100.0;
    if percent == 0.0 { "equal".into() } else { format!("the closed form is {percent:+.2} % off") }
}

fn bottleneck(what: Bottleneck) -> Cell {
    Cell::from(match what {
        Bottleneck::Cores => "the cores: pre and post together",
        Bottleneck::SerialPre => "request-pre: one request at a time passes its serial part",
        Bottleneck::Device => "the device",
        Bottleneck::Depth => "the depth: too few requests in flight",
    })
}

/// Whole microseconds, so that two totals can be compared.
fn whole_us(time: f64) -> String {
    format!("{} us", super::sim::count(time.round() as u64))
}

fn us(time: f64) -> String {
    super::sim::micros(time)
}

#[cfg(test)]
mod tests {
    use emmc_host::{Pipeline, PlatformFacts, Spans, platform};
    use emmc_units::Bytes;

    use super::*;
    use crate::{TextOptions, text};

    fn shown(result: &PipelineResult) -> String {
        text(&pipeline(result), &TextOptions { width: 100, colour: false, unicode: false })
    }

    #[test]
    fn the_first_row_of_the_paper_is_printed() {
        let own = Pipeline::new(Spans::from_micros(635, 1414, 51), Bytes(128 << 10));
        let pipelines = vec![PipelineStudy::of(own, 1000, 4).unwrap()];
        let page = shown(&PipelineResult { pipelines, ..PipelineResult::default() });
        for expected in ["62.42", "59.52", "191.07", "182.22", "88.40", "32.7 %", "the device", "exact", "equal"] {
            assert!(page.contains(expected), "{expected} is missing:\n{page}");
        }
    }

    #[test]
    fn a_platform_and_the_tables_are_printed() {
        let zynq = platform("zynq-zed").unwrap();
        let study = |workload| PipelineStudy::of(zynq.pipeline(workload), 10, 3).unwrap().named(workload);
        let result = PipelineResult {
            platform: Some(PlatformFacts::from(zynq)),
            pipelines: zynq.workloads.iter().map(study).collect(),
            paper: Some(emmc_host::paper::reproduce()),
        };
        let page = shown(&result);
        for expected in ["random-read: limits", "random-write: 10 requests", "36.58", "not reproduced", "10.0 %"] {
            assert!(page.contains(expected), "{expected} is missing:\n{page}");
        }
        let ids: std::collections::BTreeSet<_> = pipeline(&result).sections.iter().map(|one| one.id.clone()).collect();
        assert_eq!(ids.len(), pipeline(&result).sections.len());
    }
}
