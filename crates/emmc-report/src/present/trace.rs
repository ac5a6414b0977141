//! Where the time of recorded requests goes.

use emmc_trace::result::{Analysis, Limit, SpanRow, Times};

use crate::{Align, Cell, Document, KeyValue, Lead, LeadLine, Table, Tone};

/// Rows of kinds that the text shows.
const ROWS: usize = 12;

/// The report of a recording.
pub fn trace(analysis: &Analysis) -> Document {
    let requests = match analysis.requests {
        0 => counted(analysis.commands.map_or(0, |commands| commands.count), "command"),
        count => counted(count, "request"),
    };
    let mut document = Document::new(format!("Where the time goes: {requests} in {:.3} s", analysis.duration_s));
    let clock = analysis.clock.as_ref().map_or(String::new(), |clock| format!(", clock {clock}"));
    document.subtitle = Some(format!("{}, {} events{clock}", analysis.forms.join(", "), analysis.events));
    document.lead = Some(lead(analysis));
    if !analysis.causes.is_empty() {
        let section = document.section("causes", "What the recording shows");
        for cause in &analysis.causes {
            section.note(Tone::Warn, cause.clone());
        }
    }
    spans(analysis, &mut document);
    returns(analysis, &mut document);
    super::trace_time::named(analysis, &mut document);
    super::trace_time::over_time(analysis, &mut document);
    reasons(analysis, &mut document);
    paper(analysis, &mut document);
    stalls(analysis, &mut document);
    if let Some(limit) = &analysis.limit {
        self::limit(limit, &mut document);
    }
    super::trace_counts::counts(analysis, &mut document);
    document
}

/// A study with the limit that a recording shows: its lines below the verdict, and the prediction as a section.
pub fn with_trace(mut document: Document, analysis: &Analysis) -> Document {
    let own = analysis.limit.as_ref().map(|limit| {
        let (speed, most) = (limit.theoretical_mb_per_s, limit.zero_hardware_mb_per_s);
        let text = format!("{speed:.1} MB/s at depth 1, {most:.1} with no card time; longest: {}", limit.ceiling);
        LeadLine::words("LIMIT", Tone::Plain, text)
    });
    let lines = &mut document.lead.get_or_insert_default().lines;
    // Behind SPEED, which comes after HEALTH.
    let place = lines.iter().position(|line| line.label == "SAFETY").unwrap_or(lines.len());
    lines.splice(place..place, own);
    let mut found = Document::new("");
    if let Some(limit) = &analysis.limit {
        self::limit(limit, &mut found);
    }
    spans(analysis, &mut found);
    for mut section in found.sections {
        section.id = format!("trace-{}", section.id);
        document.sections.push(section);
    }
    document
}

fn lead(analysis: &Analysis) -> Lead {
    let mut lines = Vec::new();
    let main = analysis.limit.as_ref().and_then(|limit| {
        let is_main =
            |row: &&SpanRow| (&row.op, row.size_bytes, &row.mode) == (&limit.op, limit.size_bytes, &limit.mode);
        analysis.spans.iter().find(is_main)
    });
    if let Some(row) = main {
        let kind = format!("{} ({}): {} us", kind(row), row.mode, us(row.total_us.mean));
        let text = match (row.hardware_us, row.hardware_percent) {
            (Some(hardware), Some(percent)) => {
                let linux = row.total_us.mean - hardware.mean;
                let rest = 100.0 - percent;
                format!(
                    "{kind}; the card {} us ({percent:.0} %), Linux {} us ({rest:.0} %)",
                    us(hardware.mean),
                    us(linux)
                )
            }
            _ => format!("{kind}; at the driver and the card {} us", us(row.device_us.mean)),
        };
        lines.push(LeadLine::words("TIME", Tone::Plain, text));
    }
    if let Some(limit) = &analysis.limit {
        let text = format!(
            "{:.2} MB/s one at a time; {:.2} MB/s if the card needed no time; {}",
            limit.theoretical_mb_per_s,
            limit.zero_hardware_mb_per_s,
            ceiling(limit)
        );
        lines.push(LeadLine::words("LIMIT", Tone::Plain, text));
        let at = |queueing: bool| {
            let wanted = limit.predicted.iter().find(|at| (at.depth, at.cores, at.queueing) == (32, 2, queueing));
            wanted.map_or(0.0, |found| found.mb_per_s)
        };
        let text = format!(
            "32 requests on two processors: {:.2} MB/s without a command queue, {:.2} MB/s with one",
            at(false),
            at(true)
        );
        lines.push(LeadLine::words("DEPTH", Tone::Plain, text));
    }
    if let Some(stall) = analysis.stalls.first() {
        let count = analysis.stalls.len();
        let text = format!("{count} of 50 ms or more; the longest: {}, {:.1} ms", stall.what, stall.took_ms);
        lines.push(LeadLine::words("STALLS", Tone::Warn, text));
    }
    let unpaired = analysis.unpaired;
    let tone = if unpaired + analysis.lost_events + analysis.losses_uncounted + analysis.damaged > 0 {
        Tone::Warn
    } else {
        Tone::Good
    };
    let more = if analysis.losses_uncounted > 0 { " or more" } else { "" };
    let mut text = format!("{unpaired} unpaired, {}{more} events lost", analysis.lost_events);
    if analysis.damaged > 0 {
        text += &format!(", {} damaged places in the files", analysis.damaged);
    }
    if analysis.other_requests > 0 {
        text += &format!("; {} requests of other devices are left out", analysis.other_requests);
    }
    lines.push(LeadLine::words("PAIRED", tone, text));
    Lead { lines, ..Lead::default() }
}

fn spans(analysis: &Analysis, document: &mut Document) {
    if analysis.spans.is_empty() {
        return;
    }
    let several = analysis.spans.iter().any(|row| row.device != analysis.spans[0].device);
    let section = document.section("spans", "Spans");
    section.push(spans_table(analysis.spans.iter().take(ROWS), several));
    if analysis.spans.len() > ROWS {
        section.note(Tone::Muted, format!("{} more kinds: --json has them", analysis.spans.len() - ROWS));
    }
    let sources = analysis.sources.iter();
    let rows: Vec<KeyValue> =
        sources.map(|source| KeyValue::new(source.span, source.quality).note(source.events)).collect();
    document.section("sources", "Where the spans come from").push(rows);
}

/// Means of the spans by kind of request; with their devices if there are several.
pub(super) fn spans_table<'a>(rows: impl Iterator<Item = &'a SpanRow>, several: bool) -> Table {
    let right = ["requests", "1 vfs", "2 block", "3 issue", "4 card", "5 post", "total", "p99", "waited"];
    let columns = [("request", Align::Left), ("mode", Align::Left)];
    let mut table = Table::new(columns.into_iter().chain(right.map(|name| (name, Align::Right))));
    for row in rows {
        let span = |times: &Option<Times>| times.map_or("-".into(), |times| us(times.mean));
        table.row([
            Cell::from(if several { format!("{} {}", row.device, kind(row)) } else { kind(row) }),
            Cell::from(row.mode.as_str()),
            Cell::from(row.count.to_string()),
            Cell::from(span(&row.vfs_us)),
            Cell::from(span(&row.block_us)),
            Cell::from(span(&row.issue_us)),
            Cell::from(span(&row.hardware_us)),
            Cell::from(span(&row.post_us)),
            Cell::from(us(row.total_us.mean)),
            Cell::from(us(row.total_us.p99)),
            Cell::from(us(row.waited_us)),
        ]);
    }
    let caption = "means in us, p99 of the total; waited: the part of 2 and 3 behind other requests; most time first";
    table.caption(caption)
}

/// Span 5 of what a call waits for, in its parts.
fn returns(analysis: &Analysis, document: &mut Document) {
    let right = ["requests", "completed", "woken up", "running", "returned", "wake-ups", "switches"];
    let columns = [("request", Align::Left), ("mode", Align::Left)];
    let mut table = Table::new(columns.into_iter().chain(right.map(|name| (name, Align::Right))));
    let mut is_empty = true;
    for row in analysis.spans.iter().take(ROWS) {
        // Without any event of the scheduler span 5 says as much.
        let Some(parts) = row.post_parts.filter(|parts| parts.with_wake + parts.with_run > 0) else { continue };
        is_empty = false;
        let mean = |times: &Option<Times>| times.map_or("-".into(), |times| us(times.mean));
        table.row([
            Cell::from(kind(row)),
            Cell::from(row.mode.as_str()),
            Cell::from(parts.count.to_string()),
            Cell::from(mean(&parts.completion_us)),
            Cell::from(mean(&parts.wake_us)),
            Cell::from(mean(&parts.run_us)),
            Cell::from(mean(&parts.return_us)),
            Cell::from(parts.with_wake.to_string()),
            Cell::from(parts.with_run.to_string()),
        ]);
    }
    if is_empty {
        return;
    }
    let caption = "means in us of requests that a call waits for: the card's end to completion, from there to the \
                   wake-up of the thread and to the thread on a processor, from there to the call's return";
    document.section("returns", "From the card back to the caller").push(table.caption(caption));
}

/// Why requests were made, and for which files.
fn reasons(analysis: &Analysis, document: &mut Document) {
    if !analysis.reasons.is_empty() {
        let right = ["requests", "read", "written", "time"].map(|name| (name, Align::Right));
        let columns = [("why", Align::Left)].into_iter().chain(right).chain([("threads", Align::Left)]);
        let mut table = Table::new(columns);
        for row in &analysis.reasons {
            table.row([
                Cell::from(row.why.as_str()),
                Cell::from(row.requests.to_string()),
                Cell::from(size(row.read_bytes)),
                Cell::from(size(row.written_bytes)),
                Cell::from(format!("{:.3} ms", row.waited_ms)),
                Cell::from(row.threads.join(", ")),
            ]);
        }
        document.section("reasons", "Why these requests were made").push(table);
    }
    if analysis.files.is_empty() {
        return;
    }
    let right = ["inode", "requests", "read", "written", "time"].map(|name| (name, Align::Right));
    let mut table = Table::new([("device", Align::Left)].into_iter().chain(right));
    for file in analysis.files.iter().take(ROWS) {
        table.row([
            Cell::from(file.device.as_str()),
            Cell::from(file.inode.to_string()),
            Cell::from(file.requests.to_string()),
            Cell::from(size(file.read_bytes)),
            Cell::from(size(file.written_bytes)),
            Cell::from(format!("{:.3} ms", file.waited_ms)),
        ]);
    }
    document.section("files", "Files of these requests").push(table);
}

/// The white paper's overhead lists and tables, from the recording.
fn paper(analysis: &Analysis, document: &mut Document) {
    if analysis.paper.is_empty() {
        return;
    }
    let right = ["pre", "card", "post", "Linux", "1 thread", "no card", "threads", "measured"];
    let columns = [("request", Align::Left), ("mode", Align::Left), ("order", Align::Left)];
    let mut table = Table::new(columns.into_iter().chain(right.map(|name| (name, Align::Right))));
    for row in analysis.paper.iter().take(ROWS) {
        let order = if row.is_sequential { "sequential" } else { "random" };
        table.row([
            Cell::from(format!("{} {}", row.op, size(row.size_bytes))),
            Cell::from(row.mode.as_str()),
            Cell::from(order),
            Cell::from(us(row.pre_us)),
            Cell::from(us(row.hardware_us)),
            Cell::from(us(row.post_us)),
            Cell::from(format!("{:.1} %", row.overhead_percent)),
            Cell::from(format!("{:.2}", row.theoretical_mib_per_s)),
            Cell::from(format!("{:.2}", row.zero_hardware_mib_per_s)),
            Cell::from(format!("{:.2}", row.many_threads_mib_per_s)),
            Cell::from(format!("{:.2}", row.measured_mib_per_s)),
        ]);
    }
    let caption =
        "us; Linux: share of pre and post; MiB/s: one thread, a card without any time, many threads, measured";
    document.section("paper", "Stages as in the white paper").push(table.caption(caption));
}

fn stalls(analysis: &Analysis, document: &mut Document) {
    if analysis.stalls.is_empty() {
        return;
    }
    let columns = [
        ("at", Align::Right),
        ("took", Align::Right),
        ("command", Align::Left),
        ("what", Align::Left),
        ("first block", Align::Right),
        ("thread", Align::Left),
    ];
    let mut table = Table::new(columns);
    for stall in &analysis.stalls {
        table.row([
            Cell::from(format!("{:.6} s", stall.at_s)),
            Cell::from(format!("{:.3} ms", stall.took_ms)),
            Cell::from(format!("{} {}", stall.host, stall.command)),
            Cell::from(stall.what.as_str()),
            Cell::from(stall.argument.to_string()),
            Cell::from(stall.who.clone().unwrap_or_else(|| "?".into())),
        ]);
    }
    document.section("stalls", "Commands of 50 ms and more").push(table);
}

/// What takes most of the time, in words.
fn ceiling(limit: &Limit) -> String {
    match limit.ceiling.as_str() {
        "processor" => "the processor is the limit".into(),
        span => format!("the longest span is {span}"),
    }
}

fn limit(limit: &Limit, document: &mut Document) {
    let device = if limit.is_hardware { "the card" } else { "driver and card (no MMC events)" };
    let mut rows = vec![
        KeyValue::new("before the card", format!("{} us", us(limit.pre_us)))
            .note("software, without waiting for others"),
        KeyValue::new(device, format!("{} us", us(limit.hardware_us))),
        KeyValue::new("after it", format!("{} us", us(limit.post_us))),
    ];
    if let Some(own) = limit.own_us {
        rows.push(
            KeyValue::new("the program", format!("{} us", us(own))).note("its own work between two, one at a time"),
        );
    }
    if let Some(work) = limit.processor_us {
        rows.push(
            KeyValue::new("processors", format!("{} us", us(work))).note("not idle, for each request, all in all"),
        );
    }
    rows.push(
        KeyValue::new("measured", format!("{:.2} MB/s", limit.measured_mb_per_s))
            .note("while such requests were in progress"),
    );
    for found in &limit.predicted {
        let queue = if found.queueing { "with a command queue" } else { "without a command queue" };
        let cores = if found.cores == 1 { "1 processor".into() } else { format!("{} processors", found.cores) };
        let name = format!("depth {}, {cores}", found.depth);
        rows.push(KeyValue::new(name, format!("{:.2} MB/s", found.mb_per_s)).note(format!("predicted, {queue}")));
    }
    let bytes = size(limit.size_bytes);
    document.section("limit", format!("The limit of {} of {bytes}, {}", limit.op, limit.mode)).push(rows);
}

pub(super) fn kind(row: &SpanRow) -> String {
    if row.size_bytes == 0 { row.op.clone() } else { format!("{} {}", row.op, size(row.size_bytes)) }
}

/// With its plural.
pub(super) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

pub(super) fn size(bytes: u64) -> String {
    emmc_units::Bytes(bytes).to_string()
}

/// Microseconds with three or four digits.
pub(super) fn us(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}
