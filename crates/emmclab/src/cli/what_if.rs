//! The arguments of what is simulated under a load of days: `sim what-if`, `sim life`, `advise part`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use emmc_twin::what_if::Change;
use emmc_units::{Bytes, Size};

/// What is written day after day.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("written").args(["workload", "rate", "history"]).required(true).multiple(true))]
pub(crate) struct WorkloadArgs {
    /// A rate such as 2GB/day,random=70%,block=4KiB,data=25%, or the file of a recording (the forms of bench
    /// --suite replay), which is repeated
    #[arg(long, value_name = "RATE|FILE", value_hint = ValueHint::FilePath, conflicts_with = "history")]
    pub(crate) workload: Option<String>,
    /// What the programs write: 2GB/day, 500MB/hour, 10GiB/week; with a recording its volume
    #[arg(long, value_name = "SIZE/TIME", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// A history file with written_bytes, as of study and health: its rate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rate")]
    pub(crate) history: Option<PathBuf>,
    /// The share of a rate that is random overwrites; the rest is written sequentially [default: 100%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) random: Option<f64>,
    /// Size of a random overwrite [default: 4KiB]
    #[arg(long, value_name = "SIZE", value_parser = super::known::exact_size)]
    pub(crate) block: Option<Bytes>,
    /// The data that is overwritten, or its share of today's partition [default: 25%]
    #[arg(long, value_name = "SIZE|PERCENT")]
    pub(crate) data: Option<Size>,
    /// Requests of a recording beyond the end of the partition continue at its start
    #[arg(long)]
    pub(crate) wrap: bool,
    /// The filesystem of today; none: overwrites in place [default: none]
    #[arg(long, value_name = "NAME")]
    pub(crate) fs: Option<FsArg>,
    /// When deleted data is trimmed today [default: off; with a recording online, as recorded]
    #[arg(long, value_name = "WHEN")]
    pub(crate) discard: Option<DiscardArg>,
    /// Commit interval, flushes of the card's cache: seconds or never [default: 5]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) commit: Option<String>,
    /// Requests that the host keeps outstanding [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(crate) queue_depth: Option<u32>,
    /// Seed of the load
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// A filesystem that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FsArg {
    /// Overwrites in place
    None,
    Ext4,
    F2fs,
}

/// When deleted data is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiscardArg {
    /// Never
    Off,
    /// fstrim once a week
    Weekly,
    /// Mount option discard
    Online,
}

#[derive(Args, Debug)]
pub(crate) struct SimWhatIfArgs {
    #[command(flatten)]
    pub(crate) card: super::SimCardArgs,
    /// A change, or several together: pslc=all|SIZE|PERCENT, reliable=, cache=, cq=on|off, depth=COUNT,
    /// discard=off|weekly|online, fs=none|ext4|f2fs, commit=SECONDS|never, unpartitioned=SIZE|PERCENT,
    /// align=page|SIZE, log=card|ram|ram:SIZE, update=WEEKSw:SIZE, part=2x|PROFILE; each --change is compared
    /// with today
    #[arg(long = "change", value_name = "KEY=VALUE[,...]", required = true)]
    #[arg(value_parser = |text: &str| Change::parse(text))]
    pub(crate) changes: Vec<Change>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    #[cfg(feature = "html")]
    #[command(flatten)]
    pub(crate) save: super::SaveArgs,
}

/// `2GB/day` in bytes a day.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let expected = || format!("{text:?}: expected a size and a time, e.g. 2GB/day, 500MB/hour or 10GiB/week");
    let (size, time) = text.split_once('/').ok_or_else(expected)?;
    let days = match time.trim() {
        "s" | "second" => 1.0 / 86_400.0,
        "h" | "hour" => 1.0 / 24.0,
        "d" | "day" => 1.0,
        "week" => 7.0,
        "month" => 30.4375,
        "year" => 365.25,
        _ => return Err(expected()),
    };
    let size = size.trim();
    let digits = size.find(|letter: char| !letter.is_ascii_digit() && letter != '.').ok_or_else(expected)?;
    let number: f64 = size[..digits].parse().map_err(|_| expected())?;
    let unit = match size[digits..].trim() {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024.0f64.powi(2),
        "GiB" => 1024.0f64.powi(3),
        "TiB" => 1024.0f64.powi(4),
        _ => return Err(expected()),
    };
    let per_day = number * unit / days;
    match per_day {
        0.0 => Err(format!("{text:?}: nothing is written; expected a rate above 0")),
        rate if (1e4..=1e15).contains(&rate) => Ok(rate),
        _ => Err(format!("{text:?}: {per_day:.3e} bytes a day; expected 10 kB to 1000 TB a day")),
    }
}

/// `70%` or `70` as a share. `0.7` alone could be either.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let is_clear = |number: &f64| text.ends_with('%') || *number == 0.0 || *number > 1.0;
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok().filter(is_clear);
    let share = number.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0);
    share.ok_or_else(|| format!("{text:?}: expected 0% to 100%, with the sign"))
}

#[derive(Args, Debug)]
pub(crate) struct SimLifeArgs {
    #[command(flatten)]
    pub(crate) card: super::SimCardArgs,
    /// Changes to the card and its use, as of sim what-if
    #[arg(long, value_name = "KEY=VALUE[,...]", value_parser = |text: &str| Change::parse(text))]
    pub(crate) change: Option<Change>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// Seed of a new card: its weak blocks and its timing variation
    #[arg(long = "card-seed", value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed_of_card: u64,
}

#[derive(Args, Debug)]
pub(crate) struct AdviseLayoutArgs {
    /// The card's registers: a device, a saved file, or sim:PROFILE
    #[arg(value_parser = super::known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    #[arg(required_unless_present = "probe")]
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) more: super::MoreArgs,
    /// Output of `probe --json` for this card: measured units instead of stated ones
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) probe: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct AdvisePartArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// Only these parts: shipped profiles or profile files [default: all shipped ones]
    #[arg(long, value_name = "PROFILE", num_args = 1.., value_parser = super::known::profile())]
    #[arg(hide_possible_values = true)]
    pub(crate) among: Vec<String>,
    /// Years that a part must live
    #[arg(long, value_name = "YEARS", default_value_t = 5.0)]
    pub(crate) years: f64,
    /// The longest write or flush that is allowed, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) stall_ms: Option<f64>,
    /// Changes to every card and its use, as of sim what-if
    #[arg(long, value_name = "KEY=VALUE[,...]", value_parser = |text: &str| Change::parse(text))]
    pub(crate) change: Option<Change>,
}
