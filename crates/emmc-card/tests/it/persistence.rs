//! Every bit of EXT_CSD that SWITCH can write has the persistence of the field table on the virtual card.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_regs::Persistence::{self, *};
use emmc_regs::ext_csd::{Access, EXT_CSD_BYTES, Field, field_at, reg};
use emmc_units::{Instant, Nanos};

struct Host {
    card: Card,
    now: Instant,
}

/// What takes a card back to its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    Software,
    Hardware,
    Power,
}

impl Host {
    /// A card of which partition sizes count and whose reset pin works.
    fn new() -> Self {
        let profile = shipped::named("generic-8g").unwrap();
        let card = Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
        let mut host = Self { card, now: Instant::START };
        host.identify();
        host
    }

    /// The same, prepared for a write to `field`.
    fn ready_for(field: &Field) -> Self {
        let mut host = Self::new();
        if field.name != reg::RST_n_FUNCTION.name {
            host.write(reg::RST_n_FUNCTION.offset, 1);
        }
        if field.name != reg::ERASE_GROUP_DEF.name {
            host.write(reg::ERASE_GROUP_DEF.offset, 1);
        }
        host
    }

    fn command(&mut self, index: u8, argument: u32) {
        self.card.handle_command(index, argument, self.now);
        self.now = self.now + Nanos::from_secs(2);
        self.card.handle_timeout(self.now);
    }

    fn identify(&mut self) {
        for (index, argument) in [(0, 0), (1, 0x40ff_8080), (1, 0x40ff_8080), (2, 0), (3, 1 << 16), (7, 1 << 16)] {
            self.command(index, argument);
        }
        assert_eq!(self.card.state(self.now).map(|state| state.name()), Some("tran"));
    }

    fn byte(&self, byte: u16) -> u8 {
        self.card.registers().ext_csd[usize::from(byte)]
    }

    /// CMD6, write byte.
    fn write(&mut self, byte: u16, value: u8) {
        self.command(6, 3 << 24 | u32::from(byte) << 16 | u32::from(value) << 8);
    }

    /// CMD6, set or clear bits: the one that changes `mask`. Answers whether it did.
    fn toggle(&mut self, byte: u16, mask: u8) -> bool {
        let before = self.byte(byte);
        let access = if before & mask == 0 { 1 } else { 2 };
        self.command(6, access << 24 | u32::from(byte) << 16 | u32::from(mask) << 8);
        self.byte(byte) == before ^ mask
    }

    fn reset(&mut self, reset: Reset) {
        match reset {
            Reset::Software => {}
            Reset::Hardware => self.card.hardware_reset(self.now).unwrap(),
            Reset::Power => {
                self.card.power_off(self.now);
                self.now = self.now + Nanos::from_secs(1);
                self.now = self.card.power_on(self.now).unwrap();
            }
        }
        self.identify();
    }
}

/// Whether a value that was written is there after a reset, of settings that were not committed.
fn is_kept(persistence: Persistence, reset: Reset) -> Option<bool> {
    match persistence {
        NotSpecified => None,
        UntilReset => Some(false),
        UntilPowerCycle | OneTimeOnceCommitted => Some(reset == Reset::Software),
        Kept | OneTime => Some(true),
    }
}

/// Every bit as byte, mask and field.
fn bits() -> impl Iterator<Item = (u16, u8, &'static Field)> {
    let of_byte = |byte| (0..8).map(move |bit| (byte, 1 << bit, field_at(byte).unwrap()));
    (0..EXT_CSD_BYTES as u16).flat_map(of_byte)
}

fn persistence(field: &Field, byte: u16, mask: u8) -> Persistence {
    field.persistence_of_bit(byte - field.offset, mask.trailing_zeros() as u8)
}

fn access(field: &Field, byte: u16, mask: u8) -> Access {
    field.access_of_bit(byte - field.offset, mask.trailing_zeros() as u8)
}

/// Whether a host can neither write a bit nor see that it did.
fn is_out_of_reach(access: Access) -> bool {
    matches!(access, Access::R | Access::Reserved | Access::Vendor | Access::WEp)
}

#[test]
fn switch_writes_persist_as_the_table_says() {
    let mut written: Vec<&str> = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    let within_reach = bits().filter(|&(byte, mask, field)| !is_out_of_reach(access(field, byte, mask)));
    for (byte, mask, field) in within_reach {
        let persistence = persistence(field, byte, mask);
        for reset in [Reset::Software, Reset::Hardware, Reset::Power] {
            let mut host = Host::ready_for(field);
            if field.name == reg::RST_n_FUNCTION.name && reset == Reset::Hardware || !host.toggle(byte, mask) {
                continue;
            }
            let value = host.byte(byte) & mask;
            host.reset(reset);
            let kept = host.byte(byte) & mask == value;
            let expected = is_kept(persistence, reset);
            assert!(expected.is_none_or(|expected| expected == kept), "{field} {mask:#04x} {reset:?}: {persistence:?}");
            if persistence == OneTime || persistence == Kept {
                assert_eq!(host.toggle(byte, mask), persistence == Kept, "{field} {mask:#04x} changed back");
            }
            *counts.entry(persistence).or_insert(0) += 1;
            written.push(field.name);
        }
    }
    written.dedup();
    println!("bits and resets by persistence: {counts:?}, in {written:?}");
    // The registers with a writable single bit: the omitted ones need another part, or more than one bit.
    for name in [
        "PARTITION_CONFIG",
        "BOOT_WP",
        "USER_WP",
        "BOOT_CONFIG_PROT",
        "BKOPS_EN",
        "CACHE_CTRL",
        "HPI_MGMT",
        "ERASE_GROUP_DEF",
        "POWER_OFF_NOTIFICATION",
        "RST_n_FUNCTION",
        "FW_CONFIG",
        "WR_REL_SET",
        "ENH_SIZE_MULT",
        "GP_SIZE_MULT_4",
        "PARTITIONS_ATTRIBUTE",
        "PARTITION_SETTING_COMPLETED",
        "BOOT_BUS_CONDITIONS",
        "PERIODIC_WAKEUP",
        "EXCEPTION_EVENTS_CTRL",
        "HS_TIMING",
    ] {
        assert!(written.contains(&name), "no bit of {name} could be written: {written:?}");
    }
    for persistence in [UntilReset, UntilPowerCycle, Kept, OneTimeOnceCommitted, OneTime] {
        assert!(counts.contains_key(&persistence), "no bit that is {persistence:?} was written: {counts:?}");
    }
}

#[test]
fn a_read_only_bit_does_not_change() {
    let mut host = Host::ready_for(reg::EXT_CSD_REV);
    for (byte, mask, field) in bits().filter(|&(byte, ..)| byte < 192) {
        if matches!(access(field, byte, mask), Access::R | Access::Reserved | Access::Vendor) {
            assert!(!host.toggle(byte, mask), "{field} {mask:#04x} of byte {byte}");
        }
    }
}

#[test]
fn committed_settings_are_permanent() {
    let mut committed: Vec<&str> = Vec::new();
    let settings =
        bits().filter(|&(byte, mask, field)| persistence(field, byte, mask) == Persistence::OneTimeOnceCommitted);
    for (byte, mask, field) in settings {
        let mut host = Host::ready_for(field);
        if !host.toggle(byte, mask) || !host.toggle(reg::PARTITION_SETTING_COMPLETED.offset, 1) {
            continue;
        }
        let value = host.byte(byte) & mask;
        host.reset(Reset::Power);
        assert_eq!(host.byte(byte) & mask, value, "{field} {mask:#04x}");
        assert!(!host.toggle(byte, mask), "{field} {mask:#04x} changed back");
        committed.push(field.name);
    }
    committed.dedup();
    for name in ["GP_SIZE_MULT_1", "GP_SIZE_MULT_4", "PARTITIONS_ATTRIBUTE", "WR_REL_SET"] {
        assert!(committed.contains(&name), "no bit of {name} was committed: {committed:?}");
    }
}
