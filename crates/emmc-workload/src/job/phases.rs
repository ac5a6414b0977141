//! The kinds of phases and their keys.

use std::sync::Arc;

use emmc_regs::Area;
use emmc_units::{Bytes, Nanos, Size};
use serde_json::Value;

use super::fields::Fields;
use super::{Amount, DEPTH_MAX, Defaults, JobError, Load, Pattern, Phase, Replay, Target, Transfer, Trim, Work};
use crate::drive::order::Order;

/// Default request size of a fill and a trim.
const BULK_BLOCK: u32 = 512 << 10;

/// Seconds in a hundred years.
const IDLE_MAX: f64 = 3.2e9;

const KINDS: [&str; 13] = [
    "fill",
    "sequential",
    "random",
    "hot_cold",
    "zipf",
    "mixed",
    "sequential_read",
    "random_read",
    "trim",
    "idle",
    "flush",
    "power_cycle",
    "trace",
];

/// Reads a phase.
///
/// Errors: the first thing wrong.
pub(super) fn read(number: usize, value: Value, defaults: &Defaults, load: Load<'_>) -> Result<Phase, JobError> {
    let mut fields = Fields::new(format!("phase {number}: "), value)?;
    let named = fields.text("kind")?;
    let all = || format!("must be one of {}", KINDS.join(", "));
    let named = fields.required("kind", named, &all())?;
    let known = KINDS.into_iter().find(|known| *known == named);
    let kind = known.ok_or_else(|| fields.error("kind", &named.into(), &all()))?;
    fields.place(format!("phase {number} ({kind}): "));
    let seed = fields.whole("seed", 0, u64::MAX)?;
    let queue_depth = fields.whole("queue_depth", 1, DEPTH_MAX)?.map_or(defaults.queue_depth, |depth| depth as u32);
    let cache = fields.flag("cache")?.unwrap_or(defaults.cache);
    let work = work(kind, &mut fields, defaults, load)?;
    fields.finish()?;
    Ok(Phase { kind, seed, queue_depth, cache, work })
}

fn work(kind: &'static str, fields: &mut Fields, defaults: &Defaults, load: Load<'_>) -> Result<Work, JobError> {
    match kind {
        "trim" => trim(fields).map(Work::Trim),
        "idle" => {
            let seconds = fields.number("seconds", 0.0, IDLE_MAX)?;
            let seconds = fields.required("seconds", seconds, "must say how long")?;
            let background = fields.flag("background")?.unwrap_or(true);
            Ok(Work::Idle { time: Nanos::from_micros_f64(seconds * 1e6), background })
        }
        "flush" => Ok(Work::Flush),
        "power_cycle" => Ok(Work::PowerCycle { notify: fields.flag("notify")?.unwrap_or(true) }),
        "trace" => replay(fields, load).map(Work::Replay),
        _ => transfer(kind, fields, defaults).map(Work::Transfer),
    }
}

fn transfer(kind: &'static str, fields: &mut Fields, defaults: &Defaults) -> Result<Transfer, JobError> {
    let is_fill = kind == "fill";
    let block_bytes = fields.block("block")?.unwrap_or(if is_fill { BULK_BLOCK } else { defaults.block_bytes });
    let target = target(fields)?;
    let pattern = match kind {
        "sequential" | "sequential_read" => sequential(fields, block_bytes)?,
        "hot_cold" => {
            let (hot, write) = (fields.number("hot_share", 0.0, 1.0)?, fields.number("write_share", 0.0, 1.0)?);
            Pattern::Ordered(Order::HotCold {
                hot_share: fields.required("hot_share", hot, "must say which share of the space is hot")?,
                request_share: fields.required(
                    "write_share",
                    write,
                    "must say which share of the writes goes there",
                )?,
            })
        }
        "zipf" => {
            let s = fields.number("s", 0.001, 20.0)?;
            let s = fields.required("s", s, "must say the exponent, e.g. 0.99")?;
            Pattern::Ordered(Order::Zipf { s, scrambled: fields.flag("scrambled")?.unwrap_or(false) })
        }
        "mixed" => {
            let share = fields.number("trim_share", 0.0, 0.499)?;
            Pattern::Mixed { trim_share: fields.required("trim_share", share, "must say the share of trims")? }
        }
        "random" | "random_read" => Pattern::Ordered(Order::Random),
        _ => Pattern::Sequential { streams: 1, spacing: None, shuffled: false },
    };
    let read_share = match kind {
        "sequential_read" | "random_read" => 1.0,
        "random" | "hot_cold" | "zipf" => fields.number("read_share", 0.0, 1.0)?.unwrap_or(0.0),
        _ => 0.0,
    };
    let amount = if is_fill { Amount::RangeOnce } else { amount(fields)? };
    if amount == Amount::UntilWornOut && read_share > 0.99 {
        return Err(fields.error("amount", &"until worn out".into(), "but reading does not wear a card out"));
    }
    let writes = read_share < 1.0;
    let reliable = writes && fields.flag("reliable")?.unwrap_or(false);
    let force = writes && fields.flag("force")?.unwrap_or(false);
    Ok(Transfer { pattern, read_share, amount, block_bytes, target, reliable, force })
}

fn amount(fields: &mut Fields) -> Result<Amount, JobError> {
    let amount = fields.amount("amount")?;
    fields.required("amount", amount, "must say how much, e.g. 512MiB, 2.5x or \"until worn out\"")
}

fn sequential(fields: &mut Fields, block_bytes: u32) -> Result<Pattern, JobError> {
    let streams = fields.whole("streams", 1, 65536)?.unwrap_or(1) as u32;
    let spacing = fields.bytes("spacing")?;
    if let Some(bytes) = spacing.filter(|bytes| bytes % u64::from(block_bytes) != 0) {
        let rule = format!("must be a multiple of the block, {}", Bytes(u64::from(block_bytes)));
        return Err(fields.error("spacing", &Bytes(bytes).to_string().into(), &rule));
    }
    Ok(Pattern::Sequential { streams, spacing, shuffled: fields.flag("shuffled")?.unwrap_or(false) })
}

fn trim(fields: &mut Fields) -> Result<Trim, JobError> {
    let target = target(fields)?;
    let share = fields.number("share", 0.0, 1.0)?.unwrap_or(1.0);
    let block_bytes = fields.block("block")?.unwrap_or(if share < 1.0 { 4096 } else { BULK_BLOCK });
    Ok(Trim { target, share, block_bytes, discard: fields.flag("discard")?.unwrap_or(false) })
}

fn target(fields: &mut Fields) -> Result<Target, JobError> {
    let name = fields.text("area")?.unwrap_or_else(|| "user".into());
    let block_area = name.parse().ok().filter(|area| *area != Area::Rpmb);
    let area =
        block_area.ok_or_else(|| fields.error("area", &name.into(), "must be user, boot0, boot1 or gp1 to gp4"))?;
    let (from, to) = fields.range("range")?.unwrap_or((Size::Percent(0), Size::Max));
    Ok(Target { area, from, to })
}

fn replay(fields: &mut Fields, load: Load<'_>) -> Result<Replay, JobError> {
    let (file, records) = (fields.text("file")?, fields.text("records")?);
    let (field, name, bytes) = match (file, records) {
        (None, Some(records)) => ("records", "records".to_owned(), records.into_bytes()),
        (Some(file), None) => {
            let bytes =
                load(&file).map_err(|what| fields.error("file", &file.as_str().into(), &format!("but {what}")))?;
            ("file", file, bytes)
        }
        _ => {
            let one = "must be a trace, or else \"records\" must hold its lines";
            return Err(fields.error("file", &Value::Null, one));
        }
    };
    let trace = crate::trace::read(&name, &bytes);
    let trace = trace.map_err(|error| fields.error(field, &"a trace".into(), &format!("but {error}")))?;
    let (timed, wrap) = (fields.flag("timed")?.unwrap_or(true), fields.flag("wrap")?.unwrap_or(false));
    Ok(Replay { trace: Arc::new(trace), timed, wrap })
}
