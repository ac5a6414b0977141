//! The white paper's tables: computed and printed values.

use emmc_host::paper::{Figure, MeasuredSpeed, OverheadVerdict, QueueGain, Reproduction, TableCell, Verdict};

use crate::{Align, Cell, Document, Table, Tone};

pub(super) fn paper(paper: &Reproduction, document: &mut Document) {
    document.subtitle.get_or_insert_with(|| paper.source.to_owned());
    speeds(paper, document);
    overheads(paper, document);
    measured(&paper.measured, document);
    gains(&paper.queue_gains, document);
    inconsistencies(paper, document);
}

fn speeds(paper: &Reproduction, document: &mut Document) {
    let section = document.section("paper-speeds", "Speeds of the white paper");
    section.paragraph("In every row its MB/s are MiB/s and its KB are KiB.");
    let mut table = Table::new([
        ("", Align::Left),
        ("workload", Align::Left),
        ("figure", Align::Left),
        ("printed", Align::Right),
        ("MiB/s", Align::Right),
        ("MB/s", Align::Right),
        ("off", Align::Right),
        ("verdict", Align::Left),
    ]);
    for cell in &paper.cells {
        table.row([
            Cell::from(cell.place),
            Cell::from(cell.workload),
            Cell::from(figure(cell.figure)),
            Cell::from(cell.printed),
            Cell::from(format!("{:.3}", cell.computed.mib_s)),
            Cell::from(format!("{:.2}", cell.computed.mb_s)),
            Cell::from(format!("{:+.2} %", cell.difference_percent)),
            verdict(cell),
        ]);
    }
    section.push(table);
    for cell in &paper.cells {
        if let Some(why) = cell.why {
            section.note(
                Tone::Notice,
                format!(
                    "{} {}, from {:.2} to {:.2} by spans that round to the printed ones: {why}.",
                    cell.workload, cell.printed, cell.low_mib_s, cell.high_mib_s
                ),
            );
        }
    }
}

fn figure(figure: Figure) -> &'static str {
    match figure {
        Figure::Theoretical => "theoretical",
        Figure::ZeroHardwareTime => "no hw time",
        Figure::MultiThread => "threads",
        Figure::OtherHardwareTime => "hw 700 us",
        Figure::Loss => "lost to hw",
    }
}

fn verdict(cell: &TableCell) -> Cell {
    match cell.verdict {
        Verdict::Rounded => Cell::new("rounded", Tone::Good),
        Verdict::Truncated => Cell::new("cut off", Tone::Good),
        Verdict::NotReproduced => Cell::new("not reproduced", Tone::Notice),
    }
}

fn overheads(paper: &Reproduction, document: &mut Document) {
    let section = document.section("paper-overheads", "Software's share");
    let mut table = Table::new([
        ("platform", Align::Left),
        ("chunk", Align::Right),
        ("line", Align::Left),
        ("printed %", Align::Right),
        ("computed %", Align::Right),
        ("points beside", Align::Right),
        ("from", Align::Left),
    ]);
    for share in &paper.overheads {
        let number = |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.1}"));
        let from = match share.verdict {
            OverheadVerdict::NoSpans => Cell::new("no spans printed", Tone::Muted),
            OverheadVerdict::Off => Cell::new(share.workload.unwrap_or_default(), Tone::Notice),
            OverheadVerdict::WithinFivePoints => Cell::new(share.workload.unwrap_or_default(), Tone::Good),
        };
        table.row([
            Cell::from(share.platform),
            Cell::from(share.chunk_bytes.to_string()),
            Cell::from(share.line),
            Cell::from(share.printed),
            Cell::from(number(share.computed_percent)),
            Cell::from(number(share.beside_points)),
            from,
        ]);
    }
    section.push(table);
    for share in paper.overheads.iter().filter(|share| share.verdict == OverheadVerdict::Off) {
        section.note(
            Tone::Notice,
            format!("{} {}: {}.", share.platform, share.line, share.why.unwrap_or("not explained")),
        );
    }
}

fn measured(speeds: &[MeasuredSpeed], document: &mut Document) {
    let section = document.section("paper-measured", "Measured speeds, in the model of a whole system");
    let mut table = Table::new([
        ("workload", Align::Left),
        ("measured", Align::Right),
        ("three stages", Align::Right),
        ("simulated", Align::Right),
        ("MB/s", Align::Right),
        ("off", Align::Right),
        ("a record's time (us)", Align::Left),
    ])
    .caption("In MiB/s, except the column MB/s.");
    for one in speeds {
        let per_record = &one.per_record_us;
        let parts = [
            ("request", per_record.request),
            ("program", per_record.program),
            ("size update", per_record.size_update),
            ("journal blocks", per_record.journal_log),
            ("flush", per_record.flush),
            ("commit block", per_record.journal_commit),
        ];
        let parts = parts.iter().filter(|(_, us)| *us > 0.0).map(|(name, us)| format!("{name} {us:.0}"));
        let tone = if one.difference_percent.abs() < 10.0 { Tone::Good } else { Tone::Notice };
        table.row([
            Cell::from(one.workload),
            Cell::from(format!("{:.0}", one.measured_mib_s)),
            Cell::from(format!("{:.1}", one.one_at_a_time.mib_s)),
            Cell::from(format!("{:.1}", one.simulated.mib_s)),
            Cell::from(format!("{:.1}", one.simulated.mb_s)),
            Cell::new(format!("{:+.1} %", one.difference_percent), tone),
            Cell::from(parts.collect::<Vec<_>>().join(", ")),
        ]);
    }
    section.push(table);
    for one in speeds {
        if let Some(ahead) = one.read_ahead {
            section.note(
                Tone::Notice,
                format!(
                    "{}: with the next window fetched ahead it would be {:.0} MiB/s, the card's pace; {:.0} were measured, less than the \
                     three stages in a row, so nothing overlapped. The model fetches a window only when it is asked for.",
                    one.workload, ahead.mib_s, one.measured_mib_s
                ),
            );
        }
    }
}

fn gains(gains: &[QueueGain], document: &mut Document) {
    let section = document.section("paper-queue", "Command queueing on the Zynq");
    let mut table = Table::new([
        ("workload", Align::Left),
        ("printed %", Align::Right),
        ("computed %", Align::Right),
        ("all of post %", Align::Right),
        ("pace with it", Align::Left),
        ("pace without it", Align::Left),
    ]);
    for gain in gains {
        table.row([
            Cell::from(gain.workload),
            Cell::from(gain.printed),
            Cell::from(format!("{:.1}", gain.computed_percent)),
            Cell::from(format!("{:.1}", gain.all_of_post_percent)),
            super::bottleneck(gain.bottleneck_on),
            super::bottleneck(gain.bottleneck_off),
        ]);
    }
    section.push(table);
    if let Some(gain) = gains.first() {
        section.paragraph(format!(
            "Without the engine {} pass between two transfers: {}. Nothing of it helps where the cores set the pace: random writes.",
            super::us(gain.gap_us),
            gain.gap_source
        ));
    }
}

fn inconsistencies(paper: &Reproduction, document: &mut Document) {
    let section = document.section("paper-inconsistencies", "Where the paper contradicts itself or the model");
    let mut table = Table::new([("printed", Align::Left), ("against it", Align::Left)]);
    for one in &paper.inconsistencies {
        table.row([one.printed, one.against]);
    }
    section.push(table);
}
