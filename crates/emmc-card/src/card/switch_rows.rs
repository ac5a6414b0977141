//! Rules of the registers that CMD6 writes, beyond their access class: one row for each register or shared rule.
//!
//! A row has the bytes, the condition for a change, and the effect on the card. A register without a row is stored
//! only. A new register costs a row here and, where it has one, its feature's rule. Absent on purpose: write permission
//! of bits (`access`), which values are defined (`switch`), the rules themselves.

use emmc_regs::ext_csd::{Field, reg};
use emmc_units::{Instant, Nanos};

use super::interrupt::Busy;
use super::partition::{self, Refused};
use super::{
    Area, Card, background, boot, cache_control, context, ffu, interrupt, power_notify, production, queue,
    write_protect,
};
use crate::device::StorageError;
use crate::profile::Layout;

/// What a switch takes that only changes a register.
///
/// Assumed: traces of parts show tens of microseconds; GENERIC_CMD6_TIME bounds it.
pub(super) const PLAIN: Nanos = Nanos::from_micros(50);
/// What a change of the accessed area takes.
///
/// Assumed: some hundred microseconds; PARTITION_SWITCH_TIME bounds it.
const AREA_SWITCH: Nanos = Nanos::from_micros(200);
/// What installing firmware takes. Assumed: OPERATION_CODES_TIMEOUT bounds it.
const INSTALL: Nanos = Nanos::from_millis(50);

/// A byte that is to change, or has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    /// Which byte.
    pub(super) index: u8,
    /// What it was.
    pub(super) old: u8,
    /// What it becomes.
    pub(super) new: u8,
}

/// One line of the table.
pub(super) struct SwitchRow {
    /// The bytes it is about.
    fields: &'static [&'static Field],
    /// The condition. Errors: it does not hold, and nothing has changed.
    pub(super) check: fn(&Card, Write) -> Result<(), Refused>,
    /// What the card does once the byte is kept; answers when that is done. Errors: worn out, power lost.
    pub(super) effect: fn(&mut Card, Write, Instant) -> Result<Instant, StorageError>,
}

/// A row without condition and effect.
const fn row(fields: &'static [&'static Field]) -> SwitchRow {
    SwitchRow { fields, check: |_, _| Ok(()), effect: |_, _, now| Ok(now + PLAIN) }
}

impl SwitchRow {
    const fn check(mut self, check: fn(&Card, Write) -> Result<(), Refused>) -> Self {
        self.check = check;
        self
    }

    const fn effect(mut self, effect: fn(&mut Card, Write, Instant) -> Result<Instant, StorageError>) -> Self {
        self.effect = effect;
        self
    }
}

/// The row of a byte; absent: the byte is just kept.
pub(super) fn row_of(index: u8) -> Option<&'static SwitchRow> {
    ROWS.iter().find(|row| row.fields.iter().any(|field| field.bytes().contains(&index.into())))
}

static ROWS: [SwitchRow; 26] = [
    row(&[reg::CMDQ_MODE_EN]).check(|card, write| queue::check_mode(card.kept(), write.new & 1 == 1, None)).effect(
        |card, write, now| {
            if write.new & 1 == 0 {
                card.clear_queue();
            }
            Ok(now + PLAIN)
        },
    ),
    row(&[reg::PRODUCT_STATE_AWARENESS_ENABLEMENT])
        .check(|card, write| production::check_enablement(card.kept(), write.new)),
    row(&[reg::PRE_LOADING_DATA_SIZE])
        .check(|card, write| production::check_pre_loading(card.kept(), write.index, write.new)),
    row(&[reg::PRODUCTION_STATE_AWARENESS]).check(|card, write| production::check_state(card.kept(), write.new)),
    row(&[reg::MODE_OPERATION_CODES]).check(|card, write| ffu::check_operation(card.kept(), write.new)).effect(
        |card, write, now| {
            let register = &mut card.device.registers_mut().ext_csd;
            card.features.firmware.operate(register, write.new);
            Ok(now + INSTALL)
        },
    ),
    row(&[reg::MODE_CONFIG]).check(|card, write| ffu::check_mode(card.kept(), write.new)),
    row(&[reg::BARRIER_CTRL]).check(|card, write| cache_control::check_barrier(card.kept(), write.new)),
    row(&[reg::FLUSH_CACHE]).check(|card, write| cache_control::check_flush(card.kept(), write.new)).effect(
        |card, write, now| {
            card.features.next_busy = Busy::Flush;
            Ok(cache_control::flush(&mut card.device, write.new, now)?.max(now + PLAIN))
        },
    ),
    row(&[reg::CACHE_CTRL]).check(|card, write| cache_control::check_cache(card.kept(), write.new)).effect(
        |card, write, now| {
            card.features.next_busy = Busy::Flush;
            Ok(cache_control::switch(&mut card.device, write.new, now)?.max(now + PLAIN))
        },
    ),
    row(&[reg::POWER_OFF_NOTIFICATION]).check(|card, write| power_notify::check(card.kept(), write.new)).effect(
        |card, write, now| {
            if power_notify::is_interruptible(write.new) {
                card.features.next_busy = Busy::PowerOff;
            }
            Ok(power_notify::carry_out(&mut card.device, write.new, now)?.max(now + PLAIN))
        },
    ),
    row(&[reg::CONTEXT_CONF]).check(|card, write| context::check(card.kept(), write.index, write.new)),
    // Dynamic capacity is not offered.
    row(&[reg::CLASS_6_CTRL]).check(|_, write| Refused::unless(write.new == 0)),
    row(&[reg::USE_NATIVE_SECTOR])
        .check(|card, write| Refused::unless(write.new != 1 || card.ext_csd_byte(reg::NATIVE_SECTOR_SIZE) == 1)),
    row(&[reg::SEC_BAD_BLK_MGMNT])
        .check(|card, _| Refused::unless(card.ext_csd_byte(reg::SEC_FEATURE_SUPPORT) & 4 != 0)),
    row(&partition::SETTINGS).check(|card, write| partition::check_setting(card.kept(), write.index, write.new)),
    row(&[reg::PARTITION_SETTING_COMPLETED]).check(|card, write| {
        partition::check_completed(card.kept(), write.new)?;
        check_layout(card, write.new)
    }),
    row(&[reg::HPI_MGMT]).check(|card, write| interrupt::check(card.kept(), write.new)),
    row(&[reg::BKOPS_EN]).check(|card, write| background::check_enable(card.kept(), write.new)),
    row(&[reg::BKOPS_START]).check(|card, _| background::check_start(card.kept())).effect(|card, _, now| {
        card.features.next_busy = Busy::Background;
        card.features.background.start(now);
        Ok(now)
    }),
    row(&[reg::SANITIZE_START])
        .check(|card, _| Refused::unless(card.ext_csd_byte(reg::SEC_FEATURE_SUPPORT) >> 6 & 1 == 1))
        .effect(|card, _, now| {
            card.features.next_busy = Busy::Sanitize;
            card.device.purge(now)
        }),
    row(&[reg::USER_WP]).check(|card, write| {
        Refused::unless(!card.holds_write_protection())?;
        write_protect::check_user_wp(write.old, write.new)
    }),
    row(&[reg::BOOT_WP])
        .check(|card, write| {
            Refused::unless(!card.holds_write_protection())?;
            write_protect::write_boot_wp(&mut { *card.kept() }, write.new)
        })
        .effect(|card, write, now| {
            // The rule was checked; this sets BOOT_WP_STATUS.
            let _ = write_protect::write_boot_wp(&mut card.device.registers_mut().ext_csd, write.new);
            Ok(now + PLAIN)
        }),
    row(&[reg::BOOT_BUS_CONDITIONS]).check(|card, write| boot::check_bus_conditions(card.kept(), write.new)),
    row(&[reg::PARTITION_CONFIG])
        .check(|card, write| {
            boot::check_partition_config(card.kept(), write.new)?;
            queue::check_mode(card.kept(), card.is_queueing(), Some(write.new))?;
            Refused::unless(card.device.sectors(Area::selected(write.new)) > 0)
        })
        .effect(|_, write, now| Ok(now + if (write.old ^ write.new) & 7 != 0 { AREA_SWITCH } else { PLAIN })),
    row(&[reg::BUS_WIDTH])
        .check(|card, write| Refused::unless(card.interface.with_width(write.new, card.abilities()).is_some()))
        .effect(|card, write, now| {
            card.interface = card.interface.with_width(write.new, card.abilities()).unwrap_or(card.interface);
            card.apply_interface();
            Ok(now + PLAIN)
        }),
    row(&[reg::HS_TIMING])
        .check(|card, write| Refused::unless(card.interface.with_timing(write.new, card.abilities()).is_some()))
        .effect(|card, write, now| {
            card.interface = card.interface.with_timing(write.new, card.abilities()).unwrap_or(card.interface);
            card.apply_interface();
            Ok(now + PLAIN)
        }),
];

/// The flash must be able to hold the committed layout.
fn check_layout(card: &Card, completed: u8) -> Result<(), Refused> {
    let mut ext_csd = *card.kept();
    ext_csd[reg::PARTITION_SETTING_COMPLETED] = completed;
    let Some(wanted) = partition::committed(&ext_csd) else { return Ok(()) };
    Layout::new(card.device.profile(), &wanted, 0).map(|_| ()).map_err(|_| Refused)
}

#[cfg(test)]
mod tests {
    use super::super::access::writable;
    use super::*;

    #[test]
    fn every_row_has_writable_bytes_and_no_byte_has_two_rows() {
        for index in 0..=u8::MAX {
            let of = |row: &&SwitchRow| row.fields.iter().any(|field| field.bytes().contains(&index.into()));
            let rows = ROWS.iter().filter(of).count();
            assert!(rows <= usize::from(writable(index, 8).is_some()), "byte {index} has {rows} rows");
        }
    }

    #[test]
    fn registers_without_a_row_are_stored_only() {
        let mut kept: Vec<&str> = (0..=u8::MAX)
            .filter_map(|index| writable(index, 8).filter(|_| row_of(index).is_none()))
            .map(|field| field.name)
            .collect();
        kept.dedup();
        let expected = [
            "SECURE_REMOVAL_TYPE",
            "EXCEPTION_EVENTS_CTRL",
            "PERIODIC_WAKEUP",
            "TCASE_SUPPORT",
            "RST_n_FUNCTION",
            "FW_CONFIG",
            "ERASE_GROUP_DEF",
            "BOOT_CONFIG_PROT",
            "POWER_CLASS",
            "CMD_SET",
        ];
        assert_eq!(kept, expected);
    }
}
