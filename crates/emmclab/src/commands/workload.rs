//! What is written day after day, from arguments: a rate, a recording, a history.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use emmc_analysis::health::{HistoryPoint, parse_history};
use emmc_twin::what_if::{Change, Question, Setup, Written};
use emmc_units::{Bytes, Size};
use emmc_workload::duty::{Discard, FilesystemKind};

use crate::cli::what_if::{percent, rate};
use crate::cli::{DiscardArg, FsArg, WorkloadArgs};

/// The largest recording that is read. Unit: bytes.
const TRACE_BYTES_MAX: u64 = 1 << 30;
/// Data that is overwritten unless it is given. Unit: percent.
const DATA_PERCENT: u8 = 25;

/// Parts of a rate.
#[derive(Default)]
struct Spec {
    rate: Option<f64>,
    random: Option<f64>,
    block: Option<Bytes>,
    data: Option<Size>,
}

/// What is asked, without the card.
///
/// Errors: a file that cannot be read; options that do not belong together.
pub(crate) fn question(args: &WorkloadArgs) -> anyhow::Result<Question> {
    question_on(args, Size::Percent(DATA_PERCENT))
}

/// The same, with the data that is overwritten unless it is given.
///
/// Errors: as [`question`].
pub(crate) fn question_on(args: &WorkloadArgs, data: Size) -> anyhow::Result<Question> {
    let mut today = Setup::default();
    let mut spec = Spec { rate: args.rate, random: args.random, block: args.block, data: args.data };
    let mut recording = None;
    match &args.workload {
        Some(text) if is_rate(text) => {
            ensure!(args.rate.is_none(), "--workload {text}: a rate, and --rate too; expected one of them");
            read_rate(text, &mut spec)?;
        }
        Some(file) => recording = Some(file),
        None => {}
    }
    if let Some(path) = &args.history {
        spec.rate = Some(of_history(path)?);
    }
    today.filesystem = match args.fs {
        None | Some(FsArg::None) => None,
        Some(FsArg::Ext4) => Some(FilesystemKind::Ext4),
        Some(FsArg::F2fs) => Some(FilesystemKind::F2fs),
    };
    today.discard = match args.discard {
        None if recording.is_some() => Discard::Online,
        None | Some(DiscardArg::Off) => Discard::Never,
        Some(DiscardArg::Weekly) => Discard::Weekly,
        Some(DiscardArg::Online) => Discard::Online,
    };
    if let Some(commit) = &args.commit {
        let change =
            Change::parse(&format!("commit={commit}")).map_err(|error| anyhow!("--commit {commit}: {}", error.rule))?;
        change.apply(&mut today);
    }
    if let Some(depth) = args.queue_depth {
        ensure!((1..=256).contains(&depth), "--queue-depth {depth}: expected 1 to 256");
        today.depth = depth;
    }
    let written = match recording {
        Some(file) => {
            ensure!(
                args.random.is_none() && args.block.is_none() && args.data.is_none() && args.fs.is_none(),
                "{file}: a recording has its own requests; --random, --block, --data and --fs belong to a rate"
            );
            ensure!(args.commit.is_none(), "{file}: a recording has its own flushes; --commit belongs to a rate");
            let bytes = crate::input::read(Path::new(file), TRACE_BYTES_MAX).with_context(|| {
                format!("--workload {file}: neither a rate such as 2GB/day nor a file that can be read")
            })?;
            let trace = Arc::new(emmc_workload::trace::read(file, &bytes)?);
            Written::Recorded { trace, bytes_per_day: spec.rate, wrap: args.wrap }
        }
        None => {
            ensure!(!args.wrap, "--wrap belongs to a recording");
            let block = spec.block.unwrap_or(Bytes(4096)).0;
            ensure!(
                block % 512 == 0 && (512..=4 << 20).contains(&block),
                "--block {}: expected whole sectors of 512 bytes, at most 4 MiB",
                Bytes(block)
            );
            Written::Rate {
                bytes_per_day: spec.rate.context("no rate: --rate 2GB/day")?,
                random_share: spec.random.unwrap_or(1.0),
                block_bytes: block as u32,
                data: spec.data.unwrap_or(data),
            }
        }
    };
    Ok(Question { written, today, seed: args.seed })
}

/// Files that are read: none of them may be overwritten.
#[cfg(feature = "html")]
pub(crate) fn inputs(args: &WorkloadArgs) -> Vec<&Path> {
    let file = args.workload.as_deref().filter(|text| !is_rate(text)).map(Path::new);
    file.into_iter().chain(args.history.as_deref()).collect()
}

/// `2GB/day,...`: begins with a digit, and a file of that name would be surprising.
fn is_rate(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or(text);
    let ends = ["/s", "/second", "/h", "/hour", "/d", "/day", "/week", "/month", "/year"];
    first.starts_with(|letter: char| letter.is_ascii_digit()) && ends.iter().any(|end| first.ends_with(end))
}

fn read_rate(text: &str, spec: &mut Spec) -> anyhow::Result<()> {
    let mut keys = Vec::new();
    for (number, part) in text.split(',').map(str::trim).enumerate() {
        let wrong = |why: String| anyhow!("--workload {text}: {why}");
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        ensure!(!keys.contains(&key), "--workload {text}: {key} is given twice; expected once");
        keys.push(key);
        let is_option_too = match key {
            "random" => spec.random.is_some(),
            "block" => spec.block.is_some(),
            "data" => spec.data.is_some(),
            _ => false,
        };
        ensure!(!is_option_too, "--workload {text}: {key}=, and --{key} too; expected one of them");
        match key {
            _ if number == 0 => spec.rate = Some(rate(part).map_err(wrong)?),
            "random" => spec.random = Some(percent(value).map_err(wrong)?),
            "block" => {
                let block = value.parse().map_err(|error: emmc_units::SizeError| wrong(error.to_string()))?;
                let Size::Exact(bytes) = block else { bail!("--workload {text}: block={value}: expected a size") };
                spec.block = Some(bytes);
            }
            "data" => {
                let data = value.parse().map_err(|error: emmc_units::SizeError| wrong(error.to_string()))?;
                spec.data = Some(data);
            }
            _ => return Err(wrong(format!("{part:?}; expected random=, block= or data="))),
        }
    }
    Ok(())
}

/// What a history says is written each day. Unit: bytes.
fn of_history(path: &Path) -> anyhow::Result<f64> {
    let name = path.display().to_string();
    let text =
        String::from_utf8(crate::source::read_limited(&name)?).with_context(|| format!("{name}: is not UTF-8 text"))?;
    let points = parse_history(&name, &text)?;
    let mut known: Vec<(&HistoryPoint, u64)> =
        points.iter().filter_map(|point| Some((point, point.written_bytes?))).collect();
    known.sort_by_key(|(point, _)| point.time);
    let (Some((first, before)), Some((last, after))) = (known.first(), known.last()) else {
        bail!("{name}: no line has written_bytes; expected two or more");
    };
    let days = (last.time.as_second() - first.time.as_second()) as f64 / 86_400.0;
    ensure!(days > 0.0, "{name}: one time with written_bytes; expected two or more");
    ensure!(after > before, "{name}: written_bytes goes from {before} to {after}; expected a growing count");
    Ok((after - before) as f64 / days)
}
