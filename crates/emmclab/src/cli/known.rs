//! Names that completions and manual pages list for arguments that also accept other text.

use std::ffi::OsStr;
#[cfg(any(feature = "sim", feature = "bench"))]
use std::sync::LazyLock;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use emmc_units::{Bytes, Size, SizeError};

/// The names of something.
type Names = fn() -> &'static [(&'static str, &'static str)];

/// Parses like `P`; completions also offer the names.
#[derive(Clone)]
pub(crate) struct Known<P> {
    parser: P,
    names: Names,
}

impl<P: TypedValueParser> TypedValueParser for Known<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().iter().map(|(name, about)| match *about {
            "" => PossibleValue::new(*name),
            about => PossibleValue::new(*name).help(about),
        })))
    }
}

/// The areas of an eMMC that hold content of the host's, apart from RPMB.
#[cfg(feature = "clone")]
pub(crate) const AREAS: [&str; 7] = ["user", "boot0", "boot1", "gp1", "gp2", "gp3", "gp4"];

/// One of [`AREAS`].
#[cfg(feature = "clone")]
pub(crate) fn area() -> impl TypedValueParser<Value = emmc_regs::Area> {
    clap::builder::PossibleValuesParser::new(AREAS).try_map(|name| name.parse())
}

/// A size where nothing gives a largest one, so that a share of it means nothing.
pub(crate) fn exact_size(text: &str) -> Result<Bytes, String> {
    match text.parse().map_err(|error: SizeError| error.to_string())? {
        Size::Exact(bytes) => Ok(bytes),
        size => Err(format!("{size} of what is not known here; expected a number of bytes, e.g. 4MiB")),
    }
}

/// A time with its unit.
#[cfg(any(feature = "bench", feature = "serve", feature = "trace"))]
pub(crate) fn time(text: &str) -> Result<std::time::Duration, String> {
    let time = text.parse::<jiff::SignedDuration>().ok().and_then(|time| time.try_into().ok());
    time.ok_or_else(|| "expected a time with its unit, e.g. 10s or 500ms".into())
}

/// A time of at least a millisecond and at most a day: `10s`, `500ms` or `2min`.
#[cfg(any(feature = "bench", feature = "trace"))]
pub(crate) fn time_of_work(text: &str) -> Result<std::time::Duration, String> {
    use std::time::Duration;
    let time = time(text)?;
    let is_possible = (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&time);
    is_possible.then_some(time).ok_or_else(|| "expected 1ms to 1440min".into())
}

/// A frequency in Hz: `200MHz`, `400kHz`.
#[cfg(any(feature = "bench", feature = "serve"))]
pub(crate) fn frequency(text: &str) -> Result<u64, String> {
    let expected = || "expected a frequency with its unit, e.g. 150MHz or 400kHz".to_string();
    let lower = text.trim().to_ascii_lowercase();
    let (number, unit) = match (lower.strip_suffix("mhz"), lower.strip_suffix("khz"), lower.strip_suffix("hz")) {
        (Some(number), _, _) => (number, 1e6),
        (_, Some(number), _) => (number, 1e3),
        (_, _, Some(number)) => (number, 1.0),
        _ => return Err(expected()),
    };
    let hz = number.trim().parse::<f64>().ok().map(|number| number * unit);
    let hz = hz.filter(|hz| (1.0..=1e9).contains(hz)).ok_or_else(expected)?;
    Ok(hz.round() as u64)
}

/// A source: a saved file, a device, or a virtual card.
pub(crate) fn source() -> Known<impl TypedValueParser<Value = String>> {
    Known { parser: clap::builder::StringValueParser::new(), names: virtual_cards }
}

/// A target of a bench.
#[cfg(feature = "bench")]
pub(crate) fn target() -> Known<impl TypedValueParser<Value = std::ffi::OsString>> {
    Known { parser: clap::builder::OsStringValueParser::new(), names: virtual_cards }
}

/// The name of a profile, or its file.
#[cfg(feature = "sim")]
pub(crate) fn profile() -> Known<impl TypedValueParser<Value = String>> {
    Known { parser: clap::builder::StringValueParser::new(), names: profiles }
}

/// A ready job, or a job's file.
#[cfg(feature = "sim")]
pub(crate) fn job() -> Known<impl TypedValueParser<Value = std::path::PathBuf>> {
    Known { parser: clap::builder::PathBufValueParser::new(), names: jobs }
}

/// A saved result, or a published one.
#[cfg(feature = "bench")]
pub(crate) fn result() -> Known<impl TypedValueParser<Value = String>> {
    Known { parser: clap::builder::StringValueParser::new(), names: references }
}

/// A suite; nothing else is a suite.
#[cfg(feature = "bench")]
pub(crate) fn suite() -> impl TypedValueParser<Value = String> {
    let value = |suite: &&'static dyn emmc_workload::Suite| PossibleValue::new(suite.name()).help(suite.about());
    clap::builder::PossibleValuesParser::new(emmc_workload::suites().iter().map(value))
}

/// A board that a virtual card is attached to, or the file of a host.
#[cfg(all(feature = "bench", feature = "sim"))]
pub(crate) fn board() -> Known<impl TypedValueParser<Value = String>> {
    Known { parser: clap::builder::StringValueParser::new(), names: boards }
}

/// A board with published spans.
#[cfg(feature = "sim")]
pub(crate) fn platform() -> impl TypedValueParser<Value = String> {
    clap::builder::PossibleValuesParser::new(emmc_host::PLATFORMS.iter().map(|platform| platform.name))
}

#[cfg(all(feature = "bench", feature = "sim"))]
fn boards() -> &'static [(&'static str, &'static str)] {
    static NAMES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let boards = emmc_host::BOARDS.iter().map(|board| (board.name, board.title));
        boards.chain(emmc_host::HOSTS.map(|(name, _)| (name, "a host measured by lab calibrate"))).collect()
    });
    &NAMES
}

#[cfg(feature = "sim")]
fn profiles() -> &'static [(&'static str, &'static str)] {
    static NAMES: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| emmc_card::profile::shipped::names().map(|name| (name, "")).collect());
    &NAMES
}

#[cfg(feature = "sim")]
fn virtual_cards() -> &'static [(&'static str, &'static str)] {
    static NAMES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let name = |(profile, _): &(&str, _)| -> (&'static str, _) { (format!("sim:{profile}").leak(), "") };
        profiles().iter().map(name).collect()
    });
    &NAMES
}

#[cfg(not(feature = "sim"))]
fn virtual_cards() -> &'static [(&'static str, &'static str)] {
    &[]
}

#[cfg(feature = "sim")]
fn jobs() -> &'static [(&'static str, &'static str)] {
    static NAMES: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| emmc_workload::job::READY_JOBS.iter().map(|job| (job.name, job.about)).collect());
    &NAMES
}

#[cfg(feature = "bench")]
fn references() -> &'static [(&'static str, &'static str)] {
    static NAMES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let name = |set: emmc_workload::reference::Reference| -> (&'static str, &'static str) {
            (format!("{}{}", emmc_workload::reference::PREFIX, set.name).leak(), set.about.leak())
        };
        emmc_workload::reference::references().into_iter().map(name).collect()
    });
    &NAMES
}
