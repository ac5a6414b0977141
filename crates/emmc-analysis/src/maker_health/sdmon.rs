//! Runs of sdmon, identified by the printed signature and read by sdmon's keys.
//!
//! Whatever sdmon says, a signature that no family uses makes the numbers after it meaningless: it prints them all the
//! same, with `"success":true`.

use super::builder::Builder;
use super::meaning::{Group, Limit, SPARE_USED_PERCENT};
use super::model::{Value, VendorHealth};
use super::refusal::hex;
use super::sd_cards::{is_nand_maker, no_flash_id};
use super::sdmon_keys::{self, Key};
use super::sdmon_text::{Damage, Run, items, runs};
use super::{Family, Refusal};

/// The key by which sdmon names a vendor, the vendor's family, and its keys.
const VENDORS: [(&str, Family, &[Key]); 7] = [
    ("SanDisk", Family::SandiskSd, &sdmon_keys::SANDISK),
    ("Longsys", Family::LongsysSd, &sdmon_keys::LONGSYS),
    ("Innodisk", Family::InnodiskSd, &sdmon_keys::INNODISK),
    ("Adata", Family::AdataSd, &sdmon_keys::ADATA),
    ("Transcend", Family::TranscendSd, &sdmon_keys::TRANSCEND),
    ("Micron", Family::MicronSd, &sdmon_keys::MICRON),
    ("Swissbit", Family::SwissbitSd, &sdmon_keys::SWISSBIT),
];

/// Reads every run of sdmon in a text; runs that hold no health give the reason.
///
/// If one run is damaged, no run is read: the damaged one may be of the worn card.
pub fn parse_sdmon(bytes: &[u8]) -> Vec<Result<VendorHealth, Refusal>> {
    let text = String::from_utf8_lossy(bytes);
    let runs = match runs(&text) {
        Ok(runs) if runs.is_empty() => return vec![Err(Refusal::not_health("this is not sdmon output"))],
        Ok(runs) => runs,
        Err(Damage { line, found }) => return vec![Err(Refusal::Damaged { text: format!("line {line} has {found}") })],
    };
    let read: Vec<_> = runs.into_iter().map(read_run).collect();
    match read.iter().find(|run| matches!(run, Err(Refusal::Damaged { .. }))) {
        Some(damaged) => vec![damaged.clone()],
        None => read,
    }
}

fn read_run(mut run: Run) -> Result<VendorHealth, Refusal> {
    let vendor = VENDORS.iter().find(|(key, ..)| run.get(key).is_some());
    if matches!(vendor, Some((_, Family::SwissbitSd, _))) {
        // sdmon prints the system area's figures under the user area's names.
        for figure in ["max cycle cnt", "total cycle cnt", "average cycle cnt"] {
            run.rename_repeated(&format!("User area {figure}"), &format!("System area {figure}"));
        }
    }
    if let Some(key) = run.contradiction() {
        return Err(Refusal::Damaged { text: format!("{key:?} has two values") });
    }
    match run.get("success") {
        None | Some("true") => {}
        Some("false") => {
            return Err(Refusal::CommandFailed { text: failure(&run).unwrap_or("success is false".into()) });
        }
        Some(other) => return Err(Refusal::Damaged { text: format!("\"success\" is {other:?}") }),
    }
    if let Some((key, family, keys)) = vendor {
        return check_signature(&run, key, *family).and_then(|family| read_keys(&run, family, keys));
    }
    if let Some(flash_id) = run.get("flashId") {
        return check_two_step(&run, flash_id).and_then(|()| read_keys(&run, Family::TwoStepSd, &sdmon_keys::TWO_STEP));
    }
    if let Some(text) = failure(&run) {
        return Err(Refusal::CommandFailed { text });
    }
    match signatures(&run).next() {
        Some([0xff, 0xff]) => Err(Refusal::AllOnes),
        Some(signature) => Err(Refusal::UnknownSignature { found: hex(&signature) }),
        None => Err(Refusal::not_health("an sdmon run without a report")),
    }
}

/// What sdmon says of a command that failed.
fn failure(run: &Run) -> Option<String> {
    let failed: Vec<&str> = ["error", "error1", "error2"].into_iter().filter_map(|key| run.get(key)).collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}

/// Every signature that the run printed: one per method it tried.
fn signatures(run: &Run) -> impl Iterator<Item = [u8; 2]> {
    run.pairs().iter().filter(|(key, _)| key == "signature").filter_map(|(_, value)| {
        let mut bytes = value
            .split_whitespace()
            .map(|byte| byte.strip_prefix("0x").and_then(|digits| u8::from_str_radix(digits, 16).ok()));
        Some([bytes.next()??, bytes.next()??])
    })
}

/// The family that both the vendor's name and the signature stand for.
fn check_signature(run: &Run, key: &str, family: Family) -> Result<Family, Refusal> {
    let of_vendor =
        |found: &Family| *found == family || (family == Family::SandiskSd && *found == Family::WesternDigitalSd);
    let mut found = None;
    for signature in signatures(run) {
        match Family::from_signature(signature).filter(of_vendor) {
            Some(family) => return Ok(family),
            None => found = Some(hex(&signature)),
        }
    }
    let expected = family.signature().map(|signature| hex(&signature)).unwrap_or_default();
    let found = found.unwrap_or_else(|| format!("\"{key}\" without a signature"));
    Err(Refusal::WrongSignature { family, expected, found })
}

/// A two-step report has no signature: a NAND chip's ID stands where one would be.
fn check_two_step(run: &Run, flash_id: &str) -> Result<(), Refusal> {
    let id: Vec<u8> = items(flash_id)
        .filter_map(|item| item.strip_prefix("0x").and_then(|digits| u8::from_str_radix(digits, 16).ok()))
        .collect();
    let all = |byte: u8| !id.is_empty() && id.iter().all(|&found| found == byte);
    if all(0xff) {
        return Err(Refusal::AllOnes);
    }
    let zero = |key: &str| run.get(key).is_some_and(|value| value == "0" || value == "0.00" || value == "0.0");
    if all(0) && zero("powerUpCount") && zero("enduranceRemainLifePercent") {
        return Err(Refusal::AllZeros);
    }
    if !id.first().copied().is_some_and(is_nand_maker) {
        return Err(no_flash_id(&hex(&id)));
    }
    match run.get("error2") {
        Some(text) => Err(Refusal::CommandFailed { text: text.to_owned() }),
        None => Ok(()),
    }
}

fn read_keys(run: &Run, family: Family, keys: &[Key]) -> Result<VendorHealth, Refusal> {
    let version = run.get("version").map(|version| format!(" {version}")).unwrap_or_default();
    let mut builder = Builder::new(family, format!("sdmon{version}"));
    damaged_key(run, keys)?;
    for key in keys.iter().chain(&sdmon_keys::RUN) {
        if let Some((name, value)) = key.names.iter().find_map(|name| Some((*name, run.get(name)?))) {
            put(&mut builder, key, name, value)?;
        }
    }
    add_notes(&mut builder, run, family);
    let health = builder.finish();
    match health.readings().any(|(_, reading)| reading.name != "read_at") || !health.implausible.is_empty() {
        true => Ok(health),
        false => Err(Refusal::not_health("an sdmon run without a figure")),
    }
}

fn add_notes(builder: &mut Builder, run: &Run, family: Family) {
    if let Some(text) = run.get("error1") {
        builder.note(format!("the first of two commands failed ({text}): the report may be an older one"));
    }
    match family {
        Family::SandiskSd | Family::WesternDigitalSd if run.get("method").is_some() => {
            let fixed = "sdmon read powerOnTimes one byte off from January 2025 to March 2026";
            if let Some(reading) = builder.health().counters.iter_mut().find(|reading| reading.name == "power_cycles") {
                reading.confidence = super::Confidence::Uncertain;
                builder.note(fixed);
            }
        }
        Family::TranscendSd => builder.note(
            "sdmon prints no usable total of erases and no usable power cycles for Transcend, and reads erase counts \
             little-endian where Transcend's tool reads them big-endian",
        ),
        _ => {}
    }
}

/// Errors: a key that is one letter away from one that decides health, so that its figure would be missed.
fn damaged_key(run: &Run, keys: &[Key]) -> Result<(), Refusal> {
    let known = |name: &str| keys.iter().any(|key| key.names.contains(&name));
    let deciding = || keys.iter().filter(|key| decides_health(key)).flat_map(|key| key.names);
    let near = |name: &str| deciding().find(|known| one_letter_apart(known, name));
    let mut strange = run.pairs().iter().map(|(name, _)| name.as_str()).filter(|name| !known(name));
    match strange.find_map(|name| Some((name, near(name)?))) {
        Some((name, near)) => Err(Refusal::Damaged { text: format!("{name:?} is no key of sdmon; {near:?} is one") }),
        None => Ok(()),
    }
}

/// Whether a key's figure is judged.
fn decides_health(key: &Key) -> bool {
    matches!(key.meaning.group, Group::Life) || key.meaning.name == SPARE_USED_PERCENT.name
}

/// Whether two texts differ by one letter: lost, doubled or changed.
fn one_letter_apart(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (rest, other_rest) = (&one[same..], &other[same..]);
    let past = |rest: &[u8]| rest.get(1..).map(<[u8]>::to_vec);
    one != other
        && (past(rest).as_deref() == Some(other_rest)
            || past(other_rest).as_deref() == Some(rest)
            || (!rest.is_empty() && past(rest) == past(other_rest)))
}

/// Errors: what should be a figure of health is no number.
fn put(builder: &mut Builder, key: &Key, name: &str, value: &str) -> Result<(), Refusal> {
    let mut source = format!("sdmon, \"{name}\"");
    if key.times != 1 {
        source.push_str(&format!(", x {}", key.times));
    }
    if !key.remark.is_empty() {
        source.push_str(&format!(" ({})", key.remark));
    }
    if key.meaning.group == Group::Identity {
        if let Some(value) = text(value) {
            builder.put(&key.meaning, value, source, key.confidence);
        }
        return Ok(());
    }
    let number = number(value);
    let all_ones = |number: u64| [0xffff, 0xffff_ffff, u64::MAX, key.ones].contains(&number);
    let value = match number {
        None if decides_health(key) => return Err(Refusal::Damaged { text: format!("{name:?} is {value:?}") }),
        None => {
            builder.flag(&key.meaning, value, "a number", source);
            return Ok(());
        }
        Some(Number::Whole(number)) if key.meaning.limit != Limit::Percent && all_ones(number) => {
            let expected = "a count: all bits set means unset or overflowed";
            builder.flag(&key.meaning, number.to_string(), expected, source);
            return Ok(());
        }
        Some(Number::Whole(number)) if number > key.most.0 => {
            builder.flag(&key.meaning, number.to_string(), key.most.1, source);
            return Ok(());
        }
        Some(Number::Whole(number)) => {
            number.checked_mul(key.times).and_then(|number| i64::try_from(number).ok()).map(Value::Integer)
        }
        Some(Number::Fraction(number)) => Some(Value::Decimal(number * key.times as f64)),
    };
    match value {
        Some(value) => builder.put(&key.meaning, value, source, key.confidence),
        None => builder.flag(&key.meaning, "a number past 63 bits", "a count that fits 63 bits", source),
    }
    Ok(())
}

enum Number {
    Whole(u64),
    Fraction(f64),
}

/// What sdmon prints behind a number.
const UNITS: [&str; 7] = ["", "%", " MB", "TB", " bits", " Cycle", " Sector(512Byte)"];

/// The number of a value that is a number and a unit of sdmon; an array of four bytes is one, too.
fn number(value: &str) -> Option<Number> {
    let digit = |item: &str| match item.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => item.parse().ok(),
    };
    if value.contains(',') {
        let bytes: Option<Vec<u64>> = items(value).map(|item| digit(item).filter(|&byte| byte <= 0xff)).collect();
        let bytes = bytes.filter(|bytes| bytes.len() == 4)?;
        return Some(Number::Whole(bytes.iter().fold(0, |number, byte| number << 8 | byte)));
    }
    let value = value.trim();
    let hex = value.starts_with("0x");
    let end = value.find(|c: char| match hex {
        true => !c.is_ascii_hexdigit() && c != 'x',
        false => !c.is_ascii_digit() && c != '.',
    });
    let (digits, unit) = value.split_at_checked(end.unwrap_or(value.len()))?;
    let padded = !hex && digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if padded || !UNITS.contains(&unit) {
        return None;
    }
    digit(digits)
        .map(Number::Whole)
        .or_else(|| digits.parse().ok().filter(|n: &f64| n.is_finite()).map(Number::Fraction))
}

/// Text, a code as the number it is, or a list without its quotes; `None` if there is nothing but zeros or blanks.
fn text(value: &str) -> Option<Value> {
    if value.contains(',') {
        let list: Vec<&str> = items(value).collect();
        let empty = list.iter().all(|item| matches!(*item, "0x00" | "00" | "0"));
        return (!empty && !list.is_empty()).then(|| Value::Text(list.join(" ")));
    }
    let value = value.trim();
    if value.is_empty() || value.contains('\u{fffd}') {
        return None;
    }
    let code = value.strip_prefix("0x").map_or_else(
        || if value.len() <= 5 { value.parse().ok() } else { None },
        |digits| i64::from_str_radix(digits, 16).ok(),
    );
    Some(code.map_or_else(|| Value::Text(value.to_owned()), Value::Integer))
}

#[cfg(test)]
#[path = "sdmon_tests.rs"]
mod tests;
