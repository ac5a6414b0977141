//! Profiles: descriptions of parts, from which virtual cards are made.
//!
//! A profile is a TOML file; `shipped` lists those of emmclab. Every number has its unit in its name. Absent on
//! purpose: the part's later history (wear, data, registers), which is the card's state.

mod capacity;
mod check;
mod controller;
mod ftl;
mod identity;
mod nand;
mod registers;
pub mod shipped;
mod syntax;

use emmc_regs::CardKind;
use serde::{Deserialize, Serialize};

pub use capacity::{Extent, Layout, LayoutError, Partitioning, RegionRole, TRIM_LOG_BLOCKS};
pub use controller::{BusMode, Controller};
pub use ftl::{
    FtlConfig, GcPace, GcPolicy, LOW_BLOCKS_MIN, Mapping, MappingCache, Refresh, Segment, SegmentOrder, SlcCache,
    WearLevelling,
};
pub use identity::{Areas, Identity, SdIdentity};
pub use nand::{Ageing, CellConfig, Failures, NandConfig};
pub use registers::RegisterImage;

/// A complete part: its NAND, translation layer and controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name on the command line, e.g. `generic-8g`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// The sources of the parameters: measurements, data sheets, or assumed and why.
    #[serde(default)]
    pub sources: Vec<String>,
    /// eMMC or SD.
    pub kind: CardKind,
    /// What the registers say of maker, product and revision.
    pub identity: Identity,
    /// How much of it the host sees, and where.
    pub areas: Areas,
    /// The flash.
    pub nand: NandConfig,
    /// The translation layer.
    pub ftl: FtlConfig,
    /// The controller and the bus.
    pub controller: Controller,
    /// The host on which the published figures were measured, where they include its time.
    #[serde(default)]
    pub host: Option<MeasuringHost>,
    /// EXT_CSD fields that differ from the implied values of the profile: the field's name and its raw value.
    #[serde(default)]
    pub registers: std::collections::BTreeMap<String, u64>,
}

/// The host's share of a measured request: not part of the card. A benchmark without a board adds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuringHost {
    /// Its own time of a read, one request at a time.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub read_us: f64,
    /// Its own time of a write.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub write_us: f64,
    /// What each KiB adds to both, of the first MiB of a call: the kernel maps the rest while the card works.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub us_per_kib: f64,
    /// The largest command of its driver: `max_req_size` in the kernel.
    ///
    /// Unit: KiB.
    #[serde(default = "command_kib")]
    pub command_kib: u32,
}

impl Default for MeasuringHost {
    fn default() -> Self {
        Self { read_us: 0.0, write_us: 0.0, us_per_kib: 0.0, command_kib: command_kib() }
    }
}

/// That of sdhci.c. The same limit by dw_mmc.c with descriptors of 32 bits is 1024.
fn command_kib() -> u32 {
    512
}

/// Why a profile is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is not TOML, or a field has the wrong name or type.
    #[error("profile: {0}")]
    Syntax(String),
    /// A value violates a rule.
    #[error("profile {profile}: {field} = {found}: {rule}")]
    Rule {
        /// The profile's name.
        profile: String,
        /// The field, with its section, e.g. `nand.page_bytes`.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it must be.
        rule: String,
    },
    /// No such shipped profile.
    #[error("no profile {name:?}; {hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest names, or how to list them.
        hint: String,
    },
}

impl Profile {
    /// Reads a profile and checks every rule.
    ///
    /// Errors: one, naming the field and the rule.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::Syntax(syntax::one_line(text, &error)))?;
        profile.check()?;
        Ok(profile)
    }
}
