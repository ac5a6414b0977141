//! One sample of a card's health and use: a line of NDJSON, or metrics.
//!
//! Registers travel as they are read, beside what is derived from them; `null` is unknown. Absent on purpose: the
//! hashes of identities (the caller has the fleet's salt), files, the clock.

mod metrics;
mod recorded;

use emmc_port::{Activity, CardData, HostTotals};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use serde::Serialize;

pub use metrics::metrics;
pub use recorded::{Recorded, last_of};

use crate::health::{self, HealthOptions, HistoryPoint, LinkErrorKind};
use crate::maker_health::VendorHealth;

/// The form of a line.
pub const SCHEMA: &str = "emmclab.sample/1";

/// Most bytes of a line, with its line feed: one that a pipe and a log of syslog take whole.
pub const LINE_BYTES_MAX: usize = 1024;

/// Longest text from a machine, e.g. the name of a board. Unit: bytes.
const TEXT_BYTES_MAX: usize = 48;

/// Who took a sample, and of which card.
#[derive(Clone, Debug, Default)]
pub struct SampleIdentity {
    /// The machine's in the fleet: a hash, or a name that the owner gave it.
    pub device_id: Option<String>,
    /// The card's in the fleet: a hash, because a CID has a serial number.
    pub cid_hash: Option<String>,
    /// The version of this program.
    pub emmclab: &'static str,
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// When it was taken, RFC 3339.
    pub time: String,
    /// The machine.
    pub device_id: Option<String>,
    /// Changes with each boot: counters of `host` and `errors` start again.
    pub boot_id: Option<String>,
    /// Since the boot. Unit: seconds.
    pub uptime_s: Option<u64>,
    /// The machine's model.
    pub board: Option<String>,
    /// The version of its software.
    pub release: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The version of this program.
    pub emmclab: &'static str,
    /// Where the registers come from.
    pub source: SampleSource,
    /// The card.
    pub card: SampledCard,
    /// DEVICE_LIFE_TIME_EST_TYP_A.
    pub life_a_raw: Option<u8>,
    /// DEVICE_LIFE_TIME_EST_TYP_B.
    pub life_b_raw: Option<u8>,
    /// PRE_EOL_INFO.
    pub pre_eol_raw: Option<u8>,
    /// The vendor's report, if it was asked for.
    pub vendor: Option<SampledVendor>,
    /// Requests since the boot.
    pub host: Option<SampledHost>,
    /// Errors on the link since the boot.
    pub errors: Option<SampledErrors>,
    /// The disk is read-only, or a filesystem on it after an error.
    pub read_only: Option<bool>,
    /// Errors that filesystems on the card have counted.
    pub io_errors: Option<u64>,
}

/// Where registers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SampleSource {
    /// EXT_CSD, read now.
    ExtCsd,
    /// sysfs: as old as the kernel's last probe of the card.
    Sysfs,
    /// The card has no such registers, or they are unknown.
    None,
}

/// The card of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledCard {
    /// `mmcblk0`.
    pub device: Option<String>,
    /// The same for the same card in the same fleet.
    pub cid_hash: Option<String>,
    /// eMMC or SD.
    pub kind: Option<CardKind>,
    /// CID.MID: `0x15`.
    pub manfid: Option<String>,
    /// CID.OID: `0x0100`.
    pub oemid: Option<String>,
    /// CID.PNM.
    pub product: Option<String>,
    /// CID.PRV: `0x02`.
    pub prv: Option<String>,
    /// FIRMWARE_VERSION, as sysfs prints it.
    pub fwrev: Option<String>,
    /// Manufacturing date: `2019-03`.
    pub mdt: Option<String>,
    /// The user area. Unit: bytes.
    pub bytes: Option<u64>,
}

/// What a vendor's report says of wear.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledVendor {
    /// Whose layout.
    pub family: String,
    /// Erase counts (`erase_average_mlc`), spare and bad blocks, life: those that fit into the line.
    #[serde(flatten)]
    pub values: serde_json::Map<String, serde_json::Value>,
}

/// Requests since the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledHost {
    /// Unit: bytes.
    pub read_bytes: u64,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// Unit: bytes.
    pub discarded_bytes: Option<u64>,
    /// Cache flushes.
    pub flushes: Option<u64>,
}

impl From<HostTotals> for SampledHost {
    fn from(totals: HostTotals) -> Self {
        let HostTotals { read_bytes, written_bytes, discarded_bytes, flushes } = totals;
        Self { read_bytes, written_bytes, discarded_bytes, flushes }
    }
}

/// Errors between host and card since the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledErrors {
    /// Commands or responses that arrived damaged.
    pub command_crc: u64,
    /// Data blocks that arrived damaged.
    pub data_crc: u64,
    /// Commands, data and requests that timed out.
    pub timeouts: u64,
    /// Errors of the command queue that it had to recover from.
    pub cqe_recoveries: u64,
}

impl Sample {
    /// The sample of a card that was read at the time that its first source says, on a machine.
    ///
    /// Errors: no source of the card says when it was read.
    pub fn of(
        card: &CardData,
        vendor: &[VendorHealth],
        device: Option<&str>,
        activity: &Activity,
        identity: SampleIdentity,
    ) -> Result<Self, health::HealthError> {
        let point = HistoryPoint::from_card(card)?;
        let machine = &activity.machine;
        let is_known = point.life_a.is_some() || point.life_b.is_some() || point.pre_eol.is_some();
        Ok(Self {
            schema: SCHEMA,
            time: point.time.to_string(),
            device_id: identity.device_id,
            boot_id: machine.boot_id.as_deref().map(short),
            uptime_s: machine.uptime_s,
            board: machine.board.as_deref().map(short),
            release: machine.release.as_deref().map(short),
            kernel: machine.kernel.as_deref().map(short),
            emmclab: identity.emmclab,
            source: match &card.ext_csd {
                Some(ext_csd) if ext_csd.is_complete() => SampleSource::ExtCsd,
                _ if is_known => SampleSource::Sysfs,
                _ => SampleSource::None,
            },
            card: sampled_card(card, device, identity.cid_hash),
            life_a_raw: point.life_a,
            life_b_raw: point.life_b,
            pre_eol_raw: point.pre_eol,
            vendor: vendor.first().map(sampled_vendor),
            host: activity.totals.map(SampledHost::from),
            errors: errors(card),
            read_only: activity.read_only,
            io_errors: activity.io_errors,
        })
    }

    /// The line, with its line feed; at most [`LINE_BYTES_MAX`] bytes: values of the vendor's report that do not fit
    /// are left out, the last ones first.
    pub fn line(&self) -> String {
        let mut sample = self.clone();
        loop {
            // Its keys are text and its numbers finite: it always serialises.
            let line = serde_json::to_string(&sample).unwrap_or_default() + "\n";
            let values = sample.vendor.as_mut().map(|vendor| &mut vendor.values);
            let last = values.as_ref().and_then(|values| values.keys().next_back().cloned());
            match (values, last) {
                (Some(values), Some(last)) if line.len() > LINE_BYTES_MAX => values.remove(&last),
                _ => return line,
            };
        }
    }
}

/// Text of at most [`TEXT_BYTES_MAX`] bytes.
fn short(text: &str) -> String {
    let printable = text.chars().filter(|&letter| !emmc_units::is_unprintable(letter));
    let mut bytes = 0;
    printable
        .take_while(|letter| {
            bytes += letter.len_utf8();
            bytes <= TEXT_BYTES_MAX
        })
        .collect()
}

fn sampled_card(card: &CardData, device: Option<&str>, cid_hash: Option<String>) -> SampledCard {
    let revision = card.ext_csd.as_ref().and_then(|ext_csd| ext_csd.byte(reg::EXT_CSD_REV));
    let identity = card.cid.zip(card.kind).map(|(cid, kind)| cid.decode(kind, revision));
    let disk = card.blocks.disks.iter().find(|disk| device.is_some_and(|device| device == disk.name));
    let sectors = card.ext_csd.as_ref().and_then(|ext_csd| ext_csd.raw(reg::SEC_COUNT));
    let mut sampled = SampledCard {
        device: device.map(short),
        cid_hash,
        kind: card.kind,
        fwrev: card.sysfs.get("fwrev").map(|text| short(text)),
        bytes: disk.and_then(|disk| disk.bytes).map(|bytes| bytes.0).or(sectors.map(|sectors| sectors * 512)),
        ..SampledCard::default()
    };
    if let Some(identity) = identity {
        sampled.manfid = Some(format!("0x{:02x}", identity.manufacturer_id));
        sampled.oemid = Some(format!("0x{:04x}", identity.oemid));
        sampled.product = Some(short(&identity.product_name));
        sampled.prv = Some(format!("0x{:02x}", identity.product_revision.0));
        // Without the register's revision a date may have two readings.
        if let [date] = identity.manufacture_date.candidates() {
            sampled.mdt = Some(format!("{}-{:02}", date.year, date.month));
        }
    }
    sampled
}

fn sampled_vendor(vendor: &VendorHealth) -> SampledVendor {
    let mut values = serde_json::Map::new();
    for wear in &vendor.areas {
        let area = wear.area.key();
        for (name, reading) in [("average", &wear.average), ("max", &wear.max), ("min", &wear.min)] {
            if let Some(number) = reading.as_ref().and_then(|reading| reading.value.as_f64()) {
                values.insert(format!("erase_{name}_{area}"), number.into());
            }
        }
    }
    for reading in [&vendor.spares, &vendor.bad_blocks, &vendor.life].into_iter().flatten() {
        if let Some(number) = reading.value.as_f64() {
            values.insert(reading.name.into(), number.into());
        }
    }
    SampledVendor { family: vendor.family.to_string(), values }
}

fn errors(card: &CardData) -> Option<SampledErrors> {
    use LinkErrorKind::{CommandCrc, CommandQueue, CommandTimeout, DataCrc, DataTimeout, RequestTimeout};
    let link = health::health(card, &HealthOptions::default()).host_link;
    let count = |kinds: &[LinkErrorKind]| link.count(kinds);
    Some(SampledErrors {
        command_crc: count(&[CommandCrc])?,
        data_crc: count(&[DataCrc])?,
        timeouts: count(&[CommandTimeout, DataTimeout, RequestTimeout])?,
        cqe_recoveries: count(&[CommandQueue])?,
    })
}

#[cfg(test)]
mod tests;
