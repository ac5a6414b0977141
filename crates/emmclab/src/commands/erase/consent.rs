//! Consent to an erase: shows what would be lost, and asks as every command that destroys content.

use std::fmt::Write as _;

use emmc_analysis::erase::Offer;
use emmc_linux::usage::Occupied;
use emmc_port::Consent;
use emmc_report::visible;
use emmc_units::Bytes;

use super::job::Job;
use super::report::time;
use crate::cli::{BenchArgs, EraseArgs};
use crate::commands::bench::consent::Question;
use crate::save::Refused;

/// Asks.
///
/// Errors: [`Refused`]: the user did not confirm.
pub(super) fn ask(
    found: &Occupied,
    is_device: bool,
    job: &Job,
    offers: &[Offer],
    (args, is_quiet): (&EraseArgs, bool),
) -> Result<Consent, Refused> {
    let Occupied { name, model, size_bytes, contents, .. } = found;
    // The text is printed line by line: a name must not add lines.
    let mut told = format!("{}: {}", visible(&args.target), Bytes(*size_bytes).rounded());
    if let Some(model) = model {
        let _ = write!(told, ", {}", visible(model));
    }
    for kind in &job.kinds {
        let Some(offer) = offers.iter().find(|offer| offer.kind == *kind) else { continue };
        let limit = offer.time_ms_max.map_or(String::new(), |ms| format!("; at most {} by its registers", time(ms)));
        let _ = write!(told, "\n  {}{limit}", kind.name());
    }
    if job.kinds.iter().any(|kind| kind.has_range()) {
        // A resumed job begins there with its first kind only.
        let begin = if job.kinds.iter().filter(|kind| kind.has_range()).count() > 1 { 0 } else { job.from };
        for [from, to] in &job.ranges {
            let _ = write!(told, "\n  the content of bytes {} to {to} of {} is lost", begin.max(*from), visible(name));
        }
    } else {
        let _ = write!(told, "\n  what was deleted can no longer be recovered; what is mapped stays");
    }
    if !contents.is_empty() && job.bytes() < *size_bytes {
        let _ = write!(told, "\n  the whole of it holds:");
    }
    for line in contents {
        let _ = write!(told, "\n    {}", visible(line));
    }
    let without = "its content would be lost: --destroy allows that";
    let question = Question { told, without, called: &args.target, name, is_device, is_quiet };
    let EraseArgs { destroy, yes_i_mean, .. } = args;
    question.ask(&BenchArgs { destroy: *destroy, yes_i_mean: yes_i_mean.clone(), ..BenchArgs::default() })?;
    Ok(Consent::CONTENT_LOST)
}
