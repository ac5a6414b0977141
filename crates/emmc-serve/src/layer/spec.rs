//! Layers as on the command line: `NAME` or `NAME:KEY=VALUE,KEY=VALUE`.

use std::io::Write;
use std::sync::Arc;

use emmc_card::device::Beyond;
use emmc_units::Nanos;

use super::{Delay, Dropped, Fake, Fault, Faults, Kind, Log, Volatile, Window, area_named};
use crate::block::Block;

/// Why a layer is refused.
#[derive(Debug, thiserror::Error)]
#[error("layer {layer:?}: {what}")]
pub struct LayerError {
    layer: String,
    what: String,
}

/// Puts a layer on top of `inner`.
///
/// Errors: no such layer, no such key, a bad value, a file that cannot be written.
pub fn parse(text: &str, inner: Arc<dyn Block>) -> Result<Arc<dyn Block>, LayerError> {
    let failed = |what: String| LayerError { layer: text.into(), what };
    let (name, keys) = text.split_once(':').unwrap_or((text, ""));
    let pairs: Result<Vec<(&str, &str)>, LayerError> = keys
        .split(',')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').ok_or_else(|| failed(format!("{pair:?}: expected KEY=VALUE"))))
        .collect();
    let pairs = pairs?;
    match name {
        "delay" => {
            let more: Result<Vec<_>, String> = pairs.iter().map(|&(key, value)| delay(key, value)).collect();
            Ok(Arc::new(Delay::new(inner, &more.map_err(failed)?.concat())))
        }
        "fault" => {
            let faults = Faults::new(inner);
            fault(&pairs).and_then(|fault| faults.inject(fault)).map_err(failed)?;
            Ok(Arc::new(faults))
        }
        "drop" => Ok(Arc::new(dropped(&pairs, inner).map_err(failed)?)),
        "volatile" => Ok(Arc::new(volatile(&pairs, inner).map_err(failed)?)),
        "fake" => Ok(Arc::new(fake(&pairs, inner).map_err(failed)?)),
        "log" => Ok(Arc::new(Log::new(inner, log(&pairs).map_err(failed)?))),
        _ => Err(failed("expected delay, fault, fake, drop, volatile or log".into())),
    }
}

/// Times by kind; `all` is every kind.
fn delay(key: &str, value: &str) -> Result<Vec<(Kind, Nanos)>, String> {
    let time = time(value)?;
    match Kind::named(key) {
        Some(kind) => Ok(vec![(kind, time)]),
        None if key == "all" => Ok(Kind::ALL.map(|kind| (kind, time)).to_vec()),
        None => Err(format!("{key:?}: expected read, write, zero, trim, flush or all")),
    }
}

/// `500us`, `5ms`, `2s`.
fn time(text: &str) -> Result<Nanos, String> {
    let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000u64)];
    let found = units.iter().find_map(|(suffix, nanos)| {
        let number: u64 = text.strip_suffix(suffix)?.parse().ok()?;
        number.checked_mul(*nanos).map(Nanos)
    });
    found.ok_or_else(|| format!("{text:?}: expected a time such as 500us, 5ms or 2s"))
}

fn fault(pairs: &[(&str, &str)]) -> Result<Fault, String> {
    let mut fault = Fault::default();
    for &(key, value) in pairs {
        let number = || value.parse::<u64>().map_err(|_| format!("{key}={value}: expected a whole number"));
        match key {
            "kind" => {
                let kind = Kind::named(value);
                fault.kind = Some(kind.ok_or_else(|| format!("{value:?}: expected read, write, zero, trim or flush"))?);
            }
            "area" => {
                area_named(value).ok_or_else(|| format!("{value:?}: expected user, boot0, boot1 or gp1 to gp4"))?;
                fault.area = Some(value.into());
            }
            "from" => fault.from = number()?,
            "to" => fault.to = Some(number()?),
            "after" => fault.after = number()?,
            "times" => fault.times = Some(number()?),
            _ => return Err(format!("{key:?}: expected kind, area, from, to, after or times")),
        }
    }
    Ok(fault)
}

fn fake(pairs: &[(&str, &str)], inner: Arc<dyn Block>) -> Result<Fake, String> {
    let (mut real, mut window, mut buffer, mut kind) = (None, None, 0, "wrap");
    for &(key, value) in pairs {
        let number = || value.parse::<u64>().map_err(|_| format!("{key}={value}: expected a whole number of bytes"));
        match key {
            "real" => real = Some(number()?),
            "window" => window = Some(number()?),
            "buffer" => buffer = number()?,
            "beyond" => kind = value,
            _ => return Err(format!("{key:?}: expected real, beyond, window or buffer")),
        }
    }
    let real = real.ok_or("expected real=BYTES, the capacity that is there")?;
    let beyond = match (kind, window) {
        ("wrap", None) => Beyond::Wrap,
        ("wrap", Some(window)) => Beyond::WrapAtEnd(window),
        (_, Some(_)) => return Err("window: only with beyond=wrap".into()),
        ("zeros", None) => Beyond::Nothing(0),
        ("ones", None) => Beyond::Nothing(0xff),
        _ => return Err(format!("beyond={kind}: expected wrap, zeros or ones")),
    };
    Fake::new(inner, real, beyond, buffer)
}

/// `from`, `to`, and one key more with its value, if it is given.
fn window(pairs: &[(&str, &str)], more: &str, inner: &dyn Block) -> Result<(Window, Option<u64>), String> {
    let (mut from, mut to, mut found) = (0, None, None);
    for &(key, value) in pairs {
        let number = value.parse::<u64>().map_err(|_| format!("{key}={value}: expected a whole number"));
        match key {
            "from" => from = number?,
            "to" => to = Some(number?),
            _ if key == more => found = Some(number?),
            _ => return Err(format!("{key:?}: expected from, to or {more}")),
        }
    }
    Ok((Window::new(inner, from, to)?, found))
}

fn dropped(pairs: &[(&str, &str)], inner: Arc<dyn Block>) -> Result<Dropped, String> {
    let (window, every) = window(pairs, "every", &*inner)?;
    Dropped::new(inner, window, every.unwrap_or(1))
}

fn volatile(pairs: &[(&str, &str)], inner: Arc<dyn Block>) -> Result<Volatile, String> {
    let (window, bytes) = window(pairs, "bytes", &*inner)?;
    Volatile::new(inner, window, bytes.ok_or("expected bytes=BYTES, the size of the cache")?)
}

fn log(pairs: &[(&str, &str)]) -> Result<Box<dyn Write + Send>, String> {
    match pairs {
        [] => Ok(Box::new(std::io::stderr())),
        [("file", path)] => {
            let file = crate::output::append(path.as_ref());
            Ok(Box::new(file.map_err(|error| format!("{path}: {error}"))?))
        }
        _ => Err("expected file=PATH, or nothing for standard error".into()),
    }
}
