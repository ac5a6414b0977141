//! Reads the keys of one JSON object; errors name the place and the rule of the first wrong one.

use emmc_units::{Bytes, Size};
use serde_json::{Map, Value};

use super::{Amount, JobError};

/// Sectors that one command can ask for (CMD23).
const REQUEST_SECTORS_MAX: u64 = 65535;
/// The largest amount; more than a part of 64 GB with 10000 erases takes. Unit: bytes.
const AMOUNT_BYTES_MAX: u64 = 1 << 50;
/// The largest amount in capacities.
const CAPACITIES_MAX: f64 = 1e6;

/// The keys of an object, taken one by one.
#[derive(Debug)]
pub(super) struct Fields {
    place: String,
    values: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Fields {
    pub(super) fn new(place: impl Into<String>, value: Value) -> Result<Self, JobError> {
        let place = place.into();
        match value {
            Value::Object(values) => Ok(Self { place, values, known: Vec::new() }),
            other => Err(rule(&place, "it", &other, "must be an object in braces")),
        }
    }

    /// From now on, errors say that they lie here.
    pub(super) fn place(&mut self, place: String) {
        self.place = place;
    }

    pub(super) fn error(&self, field: &str, found: &Value, what: &str) -> JobError {
        rule(&self.place, field, found, what)
    }

    fn take(&mut self, field: &'static str) -> Option<Value> {
        self.known.push(field);
        self.values.remove(field)
    }

    /// What must be there.
    pub(super) fn required<T>(&self, field: &'static str, value: Option<T>, what: &str) -> Result<T, JobError> {
        let missing = || JobError::Rule {
            place: self.place.clone(),
            field: field.into(),
            found: "nothing".into(),
            rule: what.into(),
        };
        value.ok_or_else(missing)
    }

    fn read<T>(
        &mut self,
        field: &'static str,
        what: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, JobError> {
        let Some(value) = self.take(field) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| self.error(field, &value, what))
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<Option<String>, JobError> {
        self.read(field, "must be a text in quotes", |value| value.as_str().map(Into::into))
    }

    pub(super) fn flag(&mut self, field: &'static str) -> Result<Option<bool>, JobError> {
        self.read(field, "must be true or false", Value::as_bool)
    }

    pub(super) fn whole(&mut self, field: &'static str, least: u64, most: u64) -> Result<Option<u64>, JobError> {
        let what = format!("must be a whole number from {least} to {most}");
        self.read(field, &what, |value| value.as_u64().filter(|number| (least..=most).contains(number)))
    }

    /// A number between two others, both allowed.
    pub(super) fn number(&mut self, field: &'static str, least: f64, most: f64) -> Result<Option<f64>, JobError> {
        let what = format!("must be a number from {least} to {most}");
        self.read(field, &what, |value| value.as_f64().filter(|number| (least..=most).contains(number)))
    }

    /// A size in bytes or sectors, no share.
    pub(super) fn bytes(&mut self, field: &'static str) -> Result<Option<u64>, JobError> {
        let Some(value) = self.take(field) else { return Ok(None) };
        let wrong = |what: &str| self.error(field, &value, what);
        match size(&value).map_err(|what| wrong(&what))? {
            Size::Exact(Bytes(bytes)) if bytes > 0 && bytes % 512 == 0 => Ok(Some(bytes)),
            _ => Err(wrong("must be whole sectors of 512 bytes, e.g. 4KiB, 8s, 512MiB")),
        }
    }

    /// The size of a request.
    pub(super) fn block(&mut self, field: &'static str) -> Result<Option<u32>, JobError> {
        let found = self.values.get(field).cloned().unwrap_or_default();
        match self.bytes(field)? {
            Some(bytes) if bytes > REQUEST_SECTORS_MAX * 512 => {
                Err(self.error(field, &found, "must be at most 65535s, what one command can carry"))
            }
            bytes => Ok(bytes.map(|bytes| bytes as u32)),
        }
    }

    /// Bytes, multiples of the capacity, or the whole life.
    pub(super) fn amount(&mut self, field: &'static str) -> Result<Option<Amount>, JobError> {
        let text = self.values.get(field).and_then(Value::as_str).unwrap_or_default().to_string();
        if text == "until worn out" {
            self.take(field);
            return Ok(Some(Amount::UntilWornOut));
        }
        let Some(times) = text.strip_suffix('x') else {
            let bytes = self.bytes(field)?;
            if bytes.is_some_and(|bytes| bytes > AMOUNT_BYTES_MAX) {
                return Err(self.error(
                    field,
                    &text.into(),
                    "must be at most 1024 TiB; \"until worn out\" has no bound",
                ));
            }
            return Ok(bytes.map(Amount::Bytes));
        };
        self.take(field);
        let plain = times.chars().all(|c| c.is_ascii_digit() || c == '.');
        match times.parse::<f64>() {
            Ok(times) if plain && times > 0.0 && times <= CAPACITIES_MAX => Ok(Some(Amount::Capacities(times))),
            _ => {
                let what = "must be a multiple of the capacity above 0x, at most 1000000x, e.g. 2.5x";
                Err(self.error(field, &text.into(), what))
            }
        }
    }

    /// A pair of sizes or shares: beginning and end.
    pub(super) fn range(&mut self, field: &'static str) -> Result<Option<(Size, Size)>, JobError> {
        let Some(value) = self.take(field) else { return Ok(None) };
        let wrong = |what: &str| self.error(field, &value, what);
        let Some([from, to]) = value.as_array().map(Vec::as_slice) else {
            return Err(wrong("must be a beginning and an end, e.g. [\"0%\", \"50%\"] or [\"0B\", \"1GiB\"]"));
        };
        let (from, to) = (size(from).map_err(|what| wrong(&what))?, size(to).map_err(|what| wrong(&what))?);
        if [from, to].iter().any(|end| matches!(end, Size::Exact(Bytes(bytes)) if bytes % 512 != 0)) {
            return Err(wrong("must be whole sectors of 512 bytes"));
        }
        Ok(Some((from, to)))
    }

    pub(super) fn list(&mut self, field: &'static str) -> Result<Vec<Value>, JobError> {
        match self.take(field) {
            Some(Value::Array(list)) if !list.is_empty() => Ok(list),
            other => Err(self.error(field, &other.unwrap_or_default(), "must be a list of at least one phase")),
        }
    }

    /// Checks that no key is left.
    ///
    /// Errors: an unknown key.
    pub(super) fn finish(self) -> Result<(), JobError> {
        let Some((field, value)) = self.values.iter().next() else { return Ok(()) };
        Err(self.error(field, value, &format!("but the keys here are {}", self.known.join(", "))))
    }
}

fn size(value: &Value) -> Result<Size, String> {
    let text = value.as_str().ok_or("must be a size in quotes, e.g. \"4KiB\"")?;
    text.parse().map_err(|error: emmc_units::SizeError| format!("but {error}"))
}

fn rule(place: &str, field: &str, found: &Value, rule: &str) -> JobError {
    let found = if found.is_null() { "nothing".into() } else { found.to_string() };
    // What a hostile file holds is not repeated at length.
    let found = if found.chars().count() > 60 { found.chars().take(60).chain("...".chars()).collect() } else { found };
    JobError::Rule { place: place.into(), field: field.into(), found, rule: rule.into() }
}
