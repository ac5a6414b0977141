//! A host as a file: its own time for a request, for a virtual card behind it.
//!
//! Two costs for each controller, with command queueing and without: that of a read and that of a write. Absent on
//! purpose: the page cache, the journal, and the card.

use std::fmt::Write as _;

use emmc_units::Nanos;
use serde::{Deserialize, Serialize};

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostDescription {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// The sources of the figures.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Cores that work for the card's requests.
    pub cores: u32,
    /// With command queueing in hardware; absent: its controller has none.
    #[serde(default)]
    pub cqe: Option<RequestCosts>,
    /// Without.
    pub no_cqe: RequestCosts,
}

/// The host's time for direct I/O through one kind of controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestCosts {
    /// Of a read.
    pub read: RequestCost,
    /// Of a write.
    pub write: RequestCost,
}

/// The host's time for a request. Unit: microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestCost {
    /// The program's own work between two requests.
    pub call_us: f64,
    /// From the request until the controller has it, of a request without data.
    pub before_us: f64,
    /// What each KiB adds to that.
    #[serde(default)]
    pub before_us_per_kib: f64,
    /// From the card's end of a request until the program has the result, of a request without data.
    pub after_us: f64,
    /// What each KiB adds to that.
    #[serde(default)]
    pub after_us_per_kib: f64,
    /// Work of the core after the controller has the request, while the card works: it costs time only if the card is
    /// quicker.
    #[serde(default)]
    pub overlap_us: f64,
    /// All of a request without data on one core, `call_us` and `overlap_us` included, while others are outstanding:
    /// they are submitted and completed in another way than a lone one.
    pub busy_us: f64,
    /// Between the card's end of a request and the start of the next one that waits; 0 where hardware starts it.
    #[serde(default)]
    pub gap_us: f64,
}

/// Text as a string of TOML; control characters become spaces.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Why a description is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// The text is not TOML, or a field has the wrong name or type.
    #[error("{}{what}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// Where, if known; the first is 1.
        line: Option<usize>,
        /// What is wrong.
        what: String,
    },
    /// A value violates a rule.
    #[error("{field} = {found}: {rule}")]
    Rule {
        /// The field, with its section.
        field: String,
        /// What it holds.
        found: String,
        /// What it must be.
        rule: &'static str,
    },
}

/// The hosts that ship, by name: a generic Linux with a fast, a usual and a slow processor. Source: each file's own
/// command; the test of `lab calibrate` makes one of them again.
pub const HOSTS: [(&str, &str); 3] = [
    ("lab-1ns", include_str!("description/lab-1ns.toml")),
    ("lab-4ns", include_str!("description/lab-4ns.toml")),
    ("lab-16ns", include_str!("description/lab-16ns.toml")),
];

/// The host that ships with this name.
pub fn host(name: &str) -> Option<HostDescription> {
    let (_, text) = HOSTS.iter().find(|(known, _)| *known == name)?;
    HostDescription::from_toml(text).ok()
}

/// The most cores: more than any board has, so that a slip is seen.
const CORES_MAX: u32 = 1024;
/// The longest time. Unit: microseconds.
const TIME_US_MAX: f64 = 1e9;

impl HostDescription {
    /// Reads a description and checks every rule.
    ///
    /// Errors: one, naming the place and the rule.
    pub fn from_toml(text: &str) -> Result<Self, DescriptionError> {
        let description: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count());
            let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            DescriptionError::Syntax { line: line.map(|line| line + 1), what }
        })?;
        description.check()?;
        Ok(description)
    }

    /// The same as a file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "name = {}\ndescription = {}", quoted(&self.name), quoted(&self.description));
        let _ = writeln!(text, "sources = [");
        for source in &self.sources {
            let _ = writeln!(text, "    {},", quoted(source));
        }
        let _ = writeln!(text, "]\ncores = {}", self.cores);
        for (name, cost) in self.costs() {
            let _ = writeln!(text, "\n[{name}]");
            for (field, us) in cost.fields() {
                let _ = writeln!(text, "{field} = {us:?}");
            }
        }
        text
    }

    /// The costs with a queue engine, or without.
    pub fn of(&self, queueing: bool) -> &RequestCosts {
        self.cqe.as_ref().filter(|_| queueing).unwrap_or(&self.no_cqe)
    }

    fn costs(&self) -> Vec<(&'static str, &RequestCost)> {
        let with = self.cqe.iter().flat_map(|costs| [("cqe.read", &costs.read), ("cqe.write", &costs.write)]);
        with.chain([("no_cqe.read", &self.no_cqe.read), ("no_cqe.write", &self.no_cqe.write)]).collect()
    }

    fn check(&self) -> Result<(), DescriptionError> {
        let broken = |field: String, found: String, rule| Err(DescriptionError::Rule { field, found, rule });
        if !(1..=CORES_MAX).contains(&self.cores) {
            return broken("cores".into(), self.cores.to_string(), "expected 1 to 1024");
        }
        for (section, cost) in self.costs() {
            let field = |name: &str| format!("{section}.{name}");
            for (name, us) in cost.fields() {
                if !(0.0..=TIME_US_MAX).contains(&us) {
                    return broken(field(name), us.to_string(), "expected 0 to 1000000000 us");
                }
            }
            // A sum of decimal fractions is not exact.
            if cost.busy_after_us() < -1e-6 {
                let rule = "expected at least call_us + before_us + overlap_us";
                return broken(field("busy_us"), cost.busy_us.to_string(), rule);
            }
            if section.starts_with("cqe") && cost.gap_us > 0.0 {
                return broken(field("gap_us"), cost.gap_us.to_string(), "expected 0: the engine starts the next one");
            }
        }
        Ok(())
    }
}

impl RequestCost {
    fn fields(&self) -> [(&'static str, f64); 8] {
        [
            ("call_us", self.call_us),
            ("before_us", self.before_us),
            ("before_us_per_kib", self.before_us_per_kib),
            ("after_us", self.after_us),
            ("after_us_per_kib", self.after_us_per_kib),
            ("overlap_us", self.overlap_us),
            ("busy_us", self.busy_us),
            ("gap_us", self.gap_us),
        ]
    }

    /// Between two requests.
    pub(crate) fn call(&self) -> Nanos {
        Nanos::from_micros_f64(self.call_us)
    }

    /// Before the card.
    pub(crate) fn before(&self, bytes: u64) -> Nanos {
        linear(self.before_us, self.before_us_per_kib, bytes)
    }

    /// After the card; `is_busy`: other requests are outstanding.
    pub(crate) fn after(&self, bytes: u64, is_busy: bool) -> Nanos {
        let base = if is_busy { self.busy_after_us() } else { self.after_us };
        linear(base, self.after_us_per_kib, bytes)
    }

    /// What is left of `busy_us` after the card.
    fn busy_after_us(&self) -> f64 {
        self.busy_us - self.call_us - self.before_us - self.overlap_us
    }

    /// While the card works.
    pub(crate) fn overlap(&self) -> Nanos {
        Nanos::from_micros_f64(self.overlap_us)
    }

    /// Between two transfers.
    pub(crate) fn gap(&self) -> Nanos {
        Nanos::from_micros_f64(self.gap_us)
    }
}

fn linear(base_us: f64, us_per_kib: f64, bytes: u64) -> Nanos {
    Nanos::from_micros_f64(us_per_kib.mul_add(bytes as f64 / 1024.0, base_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> HostDescription {
        let cost = |gap_us| RequestCost {
            call_us: 16.5,
            before_us: 65.75,
            before_us_per_kib: 0.5625,
            after_us: 12.0,
            after_us_per_kib: 0.0,
            overlap_us: 10.0,
            busy_us: 107.0,
            gap_us,
        };
        let costs = |gap_us| RequestCosts { read: cost(gap_us), write: cost(gap_us) };
        HostDescription {
            name: "mine".into(),
            description: "a \"host\"".into(),
            sources: vec!["measured".into()],
            cores: 1,
            cqe: Some(costs(0.0)),
            no_cqe: costs(32.25),
        }
    }

    #[test]
    fn each_shipped_host_is_read() {
        for (name, text) in HOSTS {
            let host = host(name).unwrap_or_else(|| panic!("{name}: {:?}", HostDescription::from_toml(text)));
            assert_eq!((host.name.as_str(), host.to_toml().as_str()), (name, text));
        }
        assert_eq!(host("lab"), None);
    }

    #[test]
    fn a_file_is_the_description() {
        let described = described();
        assert_eq!(HostDescription::from_toml(&described.to_toml()), Ok(described.clone()));
        let without = HostDescription { cqe: None, ..described };
        assert_eq!(HostDescription::from_toml(&without.to_toml()), Ok(without.clone()));
        assert_eq!(without.of(true), &without.no_cqe);
    }

    #[test]
    fn times_are_linear_in_the_size() {
        let cost = described().no_cqe.read;
        assert_eq!((cost.before(4096), cost.after(4096, false)), (Nanos(68_000), Nanos(12_000)));
        assert_eq!(cost.after(4096, true), Nanos(14_750));
    }

    #[test]
    fn what_is_wrong_is_one_line_with_its_place() {
        let good = described().to_toml();
        for (from, to, part) in [
            ("cores = 1", "cores = 0", "cores = 0: expected 1 to 1024"),
            ("cores = 1", "cores = \"one\"", "line 6: invalid type"),
            ("busy_us = 107.0", "busy_us = 92.0", "cqe.read.busy_us = 92: expected at least call_us + before_us"),
            ("after_us = 12.0", "after_us = -1.0", "cqe.read.after_us = -1: expected 0 to"),
            ("after_us = 12.0", "after_us = nan", "cqe.read.after_us = NaN: expected 0 to"),
            ("after_us = 12.0", "after_ms = 12.0", "unknown field `after_ms`"),
            ("gap_us = 0.0", "gap_us = 1.0", "cqe.read.gap_us = 1: expected 0"),
            ("[no_cqe.read]", "[no_cqe.reads]", "unknown field `reads`"),
            ("[no_cqe.read]", "[no_cqe.read", "line "),
            ("name = \"mine\"", "", "missing field `name`"),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let message = HostDescription::from_toml(&text).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains('\n'), "{to}: {message}");
        }
    }
}
