//! What the user wants of a card's configuration, beside hardware partitions, and the bits that say so.

use emmc_regs::ext_csd::{Field, reg};
use emmc_units::{Bytes, SECTOR_BYTES};

use super::groups::Protection;
use super::setting::{Assignment, Wanted};

/// The bus mode in which a card boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootMode {
    /// Single data rate, backward compatible timing.
    Sdr,
    /// Single data rate, high speed.
    HighSpeed,
    /// Double data rate.
    Ddr,
}

/// A range of the user area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WpRange {
    /// Where it starts.
    pub start: Bytes,
    /// How large it is.
    pub size: Bytes,
}

/// A change of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// What the card boots from, and how: PARTITION_CONFIG, BOOT_BUS_CONDITIONS. Absent: as it is.
    Boot {
        /// 0 nothing, 1 boot1, 2 boot2, 7 the user area.
        from: Option<u8>,
        /// Whether the card announces its boot data.
        ack: Option<bool>,
        /// Data lines: 1, 4 or 8.
        width: Option<u8>,
        /// The bus mode.
        mode: Option<BootMode>,
        /// Whether the mode stays after boot.
        keep: Option<bool>,
    },
    /// Background operations: BKOPS_EN.
    Bkops {
        /// By the card itself.
        auto: Option<bool>,
        /// By the host's command; on is one-time.
        manual: bool,
    },
    /// The volatile cache: CACHE_CTRL.
    Cache(bool),
    /// The reset pin: RST_n_FUNCTION, one-time either way.
    HwReset(bool),
    /// Write protection of boot areas: BOOT_WP.
    WpBoot {
        /// Boot area 0 or 1; absent: both.
        area: Option<u8>,
        /// Power-on or permanent.
        protection: Protection,
    },
    /// Write protection of groups of the user area: USER_WP, CMD28, CMD29.
    WpUser {
        /// The groups.
        range: WpRange,
        /// The protection afterwards.
        protection: Protection,
    },
    /// How secure removal is done: SECURE_REMOVAL_TYPE, one-time.
    SecureRemoval(u8),
    /// Leaves the emulation of 512-byte sectors: USE_NATIVE_SECTOR, one-time.
    NativeSectors,
    /// Production state awareness.
    ProductionState {
        /// The state; absent: as it is.
        state: Option<u8>,
        /// Manual or automatic mode; absent: as it is.
        enable: Option<(bool, bool)>,
    },
    /// Any setting that the field table has.
    Set(Vec<Assignment>),
}

impl Request {
    /// The kind of change.
    pub(super) const fn change(&self) -> &'static str {
        match self {
            Self::Boot { .. } => "boot",
            Self::Bkops { .. } => "bkops",
            Self::Cache(_) => "cache",
            Self::HwReset(_) => "hwreset",
            Self::WpBoot { .. } | Self::WpUser { .. } => "wp",
            Self::SecureRemoval(_) => "secure-removal",
            Self::NativeSectors => "native-sectors",
            Self::ProductionState { .. } => "production-state",
            Self::Set(_) => "set",
        }
    }

    /// The request as command line arguments.
    pub(super) fn arguments(&self) -> Vec<String> {
        let on_off = |on: bool| if on { "on" } else { "off" };
        match self {
            Self::Boot { from, ack, width, mode, keep } => {
                let from = from.map(|from| match from {
                    1 => "--from boot1".into(),
                    2 => "--from boot2".into(),
                    7 => "--from user".into(),
                    _ => "--from none".into(),
                });
                let mode = mode.map(|mode| match mode {
                    BootMode::Sdr => "--mode sdr".into(),
                    BootMode::HighSpeed => "--mode hs".into(),
                    BootMode::Ddr => "--mode ddr".into(),
                });
                let ack = ack.map(|ack| format!("--ack {}", on_off(ack)));
                let width = width.map(|width| format!("--width {width}"));
                let keep = keep.map(|keep| format!("--keep {}", on_off(keep)));
                [from, ack, width, mode, keep].into_iter().flatten().collect()
            }
            Self::Bkops { auto, manual } => {
                let auto = auto.map(|auto| format!("--auto {}", on_off(auto)));
                auto.into_iter().chain(manual.then(|| "--manual".into())).collect()
            }
            Self::Cache(on) => vec![on_off(*on).into()],
            Self::HwReset(on) => vec![if *on { "enable" } else { "disable" }.into()],
            Self::WpBoot { area, protection } => {
                let area = area.map_or("both".into(), |area| format!("boot{}", area + 1));
                vec![format!("--boot {area}"), format!("--as {}", protection.word())]
            }
            Self::WpUser { range, protection } => {
                let sectors = |bytes: Bytes| format!("{}s", bytes.0 / SECTOR_BYTES);
                let range = format!("--user {}:{}", sectors(range.start), sectors(range.size));
                vec![range, format!("--as {}", protection.word())]
            }
            Self::SecureRemoval(kind) => vec![kind.to_string()],
            Self::NativeSectors => Vec::new(),
            Self::ProductionState { state, enable } => {
                let state = state.map(|state| format!("--state {state}"));
                let enable = enable.map(|enable| match enable {
                    (true, _) => "--enable manual".into(),
                    (_, true) => "--enable auto".into(),
                    _ => "--enable none".into(),
                });
                state.into_iter().chain(enable).collect()
            }
            Self::Set(assignments) => assignments.iter().map(ToString::to_string).collect(),
        }
    }

    /// The bits that say so, in the order in which they are written.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let mut list = List::default();
        match self {
            Self::Boot { from, ack, width, mode, keep } => {
                list.add(reg::PARTITION_CONFIG, "BOOT_PARTITION_ENABLE", *from, "what the card boots from");
                list.add(reg::PARTITION_CONFIG, "BOOT_ACK", ack.map(u8::from), "boot acknowledge");
                let lines = width.map(|width| match (width, mode) {
                    (8, _) => 2,
                    (4, Some(BootMode::Ddr)) => 0,
                    (4, _) => 1,
                    _ => 0,
                });
                list.add(reg::BOOT_BUS_CONDITIONS, "BOOT_BUS_WIDTH", lines, "data lines during boot");
                let mode = mode.map(|mode| mode as u8);
                list.add(reg::BOOT_BUS_CONDITIONS, "BOOT_MODE", mode, "bus mode during boot");
                let keep = keep.map(u8::from);
                list.add(reg::BOOT_BUS_CONDITIONS, "RESET_BOOT_BUS_CONDITIONS", keep, "bus mode after boot");
            }
            Self::Bkops { auto, manual } => {
                list.add(reg::BKOPS_EN, "AUTO_EN", auto.map(u8::from), "background operations by the card itself");
                list.add(reg::BKOPS_EN, "MANUAL_EN", manual.then_some(1), "background operations by command");
            }
            Self::Cache(on) => list.add(reg::CACHE_CTRL, "CACHE_EN", Some(u8::from(*on)), "the volatile cache"),
            Self::HwReset(on) => {
                list.add(reg::RST_n_FUNCTION, "RST_n_ENABLE", Some(if *on { 1 } else { 2 }), "the reset pin");
            }
            Self::WpBoot { area, protection } => list.boot_wp(*area, *protection),
            Self::WpUser { protection, .. } => {
                list.add(reg::ERASE_GROUP_DEF, "ENABLE", Some(1), "groups of the high-capacity size");
                list.last_passes();
                list.user_wp(*protection);
            }
            Self::SecureRemoval(kind) => {
                let name = "CONFIGURE_SECURE_REMOVAL_TYPE";
                list.add(reg::SECURE_REMOVAL_TYPE, name, Some(*kind), "how secure removal is done");
            }
            Self::NativeSectors => list.whole(reg::USE_NATIVE_SECTOR, 1, "sectors of 4 KiB"),
            Self::ProductionState { state, enable } => {
                let field = reg::PRODUCT_STATE_AWARENESS_ENABLEMENT;
                let mode = enable.map(|(manual, auto)| (u8::from(manual), u8::from(auto)));
                list.add(field, "PROD_STATE_AWARENESS_EN", mode.map(|mode| mode.0), "the host announces soldering");
                list.add(field, "AUTO_EN", mode.map(|mode| mode.1), "the card finds soldering out");
                if let Some(state) = state {
                    list.whole(reg::PRODUCTION_STATE_AWARENESS, *state, "the production state");
                }
            }
            Self::Set(assignments) => list.0.extend(assignments.iter().flat_map(Assignment::wanted)),
        }
        list.0
    }

    /// What restores the bits that were needed during the change only.
    pub(super) fn wanted_after(&self) -> Vec<Wanted> {
        let mut list = List::default();
        if matches!(self, Self::WpUser { .. }) {
            list.user_wp(Protection::Temporary);
        }
        list.0
    }
}

#[derive(Default)]
struct List(Vec<Wanted>);

impl List {
    fn add(&mut self, field: &'static Field, name: &str, value: Option<u8>, purpose: &'static str) {
        self.0.extend(value.and_then(|value| Wanted::bits(field, name, value, purpose)));
    }

    fn whole(&mut self, field: &'static Field, value: u8, purpose: &'static str) {
        self.0.push(Wanted { offset: field.offset, mask: 0xff, value, passing: false, purpose });
    }

    fn last_passes(&mut self) {
        if let Some(last) = self.0.pop() {
            self.0.push(last.passing());
        }
    }

    /// What CMD28 makes of a group.
    fn user_wp(&mut self, protection: Protection) {
        let purpose = "the kind of protection that CMD28 gives";
        let value = protection.user_wp();
        let offset = reg::USER_WP.offset;
        self.0.push(Wanted { offset, mask: 5, value, passing: true, purpose });
    }

    /// One write of the byte: the bits of both kinds are set together.
    fn boot_wp(&mut self, area: Option<u8>, protection: Protection) {
        let is_permanent = protection == Protection::Permanent;
        let (enable, select) =
            if is_permanent { ("B_PERM_WP_EN", "B_PERM_WP_SEC_SEL") } else { ("B_PWR_WP_EN", "B_PWR_WP_SEC_SEL") };
        let purpose = "write protection of the boot areas";
        if let Some(area) = area {
            self.add(reg::BOOT_WP, "B_SEC_WP_SEL", Some(1), purpose);
            self.add(reg::BOOT_WP, select, Some(area), purpose);
        }
        self.add(reg::BOOT_WP, enable, Some(1), purpose);
    }
}
