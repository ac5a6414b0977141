//! `trace export`: a recording as a timeline for a viewer, or as requests for other tools.

use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{bail, ensure};
use emmc_trace::{Input, Part, Timeline, TimelineWriter, follow, open, survey};
use emmc_workload::trace::{IologVersion, Trace, csv, fio_iolog, read_files};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::TraceExportArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save;

pub(crate) const SCHEMA: &str = "emmclab.trace-export/1";

/// Most bytes of a recording whose requests are exported: they are sorted in memory.
const REQUESTS_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a timeline that are written at once.
const PIECE_BYTES: usize = 1 << 20;

/// What `trace export` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Exported {
    /// The new file.
    file: String,
    /// chrome, perfetto, fio-iolog or csv.
    form: &'static str,
    /// Requests in it.
    requests: u64,
    /// Requests of other devices, which are not.
    other_requests: u64,
    /// Notes on the recording: losses, damage, what has no partner.
    notes: Vec<String>,
}

pub(crate) fn run(args: &TraceExportArgs, output: &mut Output) -> CommandResult {
    let is_stdout = args.output == Path::new("-");
    ensure!(!(is_stdout && output.is_json()), "--json and -o - both need standard output: name a file");
    let timeline = match (args.perfetto, args.chrome) {
        (true, _) => Some(("perfetto", Timeline::Perfetto)),
        (_, true) => Some(("chrome", Timeline::Chrome)),
        _ => None,
    };
    let inputs = super::inputs(&args.recording)?;
    let mut exported = Exported {
        file: args.output.display().to_string(),
        form: timeline.map_or(if args.csv { "csv" } else { "fio-iolog" }, |(form, _)| form),
        requests: 0,
        other_requests: 0,
        notes: Vec::new(),
    };
    if let Some((_, timeline)) = timeline {
        self::timeline(args, timeline, inputs, &mut exported)?;
    } else {
        requests(args, inputs, &mut exported, output)?;
    }
    if output.is_json() {
        output.print(SCHEMA, &exported, |_| unreachable!("JSON was asked for"))?;
    } else if !is_stdout {
        output.said(&format!("{}: {} requests", exported.file, exported.requests))?;
        for note in &exported.notes {
            output.said(&format!("note: {note}"))?;
        }
    }
    Ok(if exported.requests == 0 { Exit::Unknown } else { Exit::Good })
}

fn timeline(
    args: &TraceExportArgs,
    timeline: Timeline,
    inputs: Vec<Input>,
    exported: &mut Exported,
) -> anyhow::Result<()> {
    let found = survey(open(inputs.clone())?, args.recording.device);
    if found.requests == 0 {
        bail!("{}: no complete request is in it", inputs[0].name);
    }
    (exported.requests, exported.other_requests) = (found.requests, found.other_requests);
    let counts = [
        (found.other_requests, "requests of other devices are left out"),
        (found.unpaired, "events without a partner are left out"),
        (found.notes.lost, "events were lost when this was recorded"),
        (found.notes.losses_uncounted, "losses of events that were not counted"),
        (found.notes.damaged, "damaged places in the files"),
    ];
    exported.notes.extend(counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    let recording = open(inputs)?;
    written(args, |file| {
        let (mut piece, mut result) = (Vec::with_capacity(2 * PIECE_BYTES), Ok(()));
        let mut writer = TimelineWriter::new(timeline, found.notes.names, &mut piece);
        follow(recording, found.selection, |request| {
            writer.request(request, &mut piece);
            if piece.len() >= PIECE_BYTES && result.is_ok() {
                result = file.write_all(&piece);
                piece.clear();
            }
        });
        writer.end(&mut piece);
        result.and_then(|()| file.write_all(&piece))
    })
}

fn requests(
    args: &TraceExportArgs,
    inputs: Vec<Input>,
    exported: &mut Exported,
    output: &Output,
) -> anyhow::Result<()> {
    let has_space = args.file.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    ensure!(!has_space && !args.file.is_empty(), "--file {:?}: fio's iolog takes no name with spaces", args.file);
    let mut files = Vec::new();
    for input in inputs {
        let mut bytes = Vec::new();
        Part::whole(input.storage).take(REQUESTS_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        ensure!(bytes.len() as u64 <= REQUESTS_BYTES_MAX, "{}: expected at most 1 GiB", input.name);
        files.push((input.name, bytes));
    }
    let trace: Trace = read_files(files, args.recording.device)?;
    exported.requests = trace.requests.len() as u64;
    exported.notes.clone_from(&trace.notes);
    if trace.requests.iter().any(|request| request.through) {
        exported.notes.push("writes with FUA became a write and a flush".into());
    }
    let text = match args.fio_iolog.as_deref() {
        Some("2") => fio_iolog(&trace, IologVersion::Second, &args.file),
        Some(_) => fio_iolog(&trace, IologVersion::Third, &args.file),
        None => csv(&trace),
    };
    if args.output == Path::new("-") && !output.is_json() {
        for note in &exported.notes {
            output.hint(note);
        }
    }
    written(args, |file| file.write_all(text.as_bytes()))
}

/// Writes the file completely or not at all, or to standard output.
fn written(args: &TraceExportArgs, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    if args.output == Path::new("-") {
        let mut stdout = io::stdout().lock();
        return Ok(write(&mut stdout).and_then(|()| stdout.flush())?);
    }
    let inputs: Vec<&Path> = args.recording.files.iter().map(|path| path.as_path()).collect();
    save::refuse_inputs(&args.output, &inputs)?;
    save::write_parts(&args.output, args.force, write)
}
