//! The card of a setup, made as a host does it: partitioning and write reliability by CMD6 and a power cycle.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use emmc_units::{Bytes, Instant, Nanos, SECTOR_BYTES, Size};

use super::MakeCard;
use super::setup::{Capacity, Setup, enlarged};

/// Between two commands: longer than any of them takes.
const COMMAND_TIME: Nanos = Nanos::from_secs(2);

/// A card with its setup.
pub(super) struct Prepared {
    pub(super) card: Card,
    pub(super) now: Instant,
    /// The part of the user area with one bit a cell, from its start. Unit: bytes.
    pub(super) enhanced_bytes: u64,
    /// A change that changes nothing.
    pub(super) note: Option<String>,
}

/// Makes it.
///
/// Errors: what the card cannot do.
pub(super) fn prepare(make: MakeCard<'_>, setup: &Setup) -> Result<Prepared, String> {
    let (card, now) = match &setup.capacity {
        Capacity::Same => make()?,
        Capacity::Times(times) => {
            let (card, _) = make()?;
            new_card(enlarged(card.device().profile(), *times))?
        }
        Capacity::Shipped(profile) => new_card((**profile).clone())?,
    };
    let mut board = Board { card, now };
    if !setup.cache && board.profile().controller.cache_bytes == 0 {
        return Err("the card has no cache that a host can switch off".into());
    }
    let is_emmc = board.profile().kind == CardKind::Emmc;
    let groups = setup.pslc.map(|size| board.groups(size)).transpose()?;
    let reliable = setup.reliable.filter(|on| *on != (board.card.registers().ext_csd[reg::WR_REL_SET] & 1 == 1));
    if setup.reliable.is_some() && !is_emmc {
        return Err("an SD card has no WR_REL_SET".into());
    }
    let note = setup.reliable.filter(|_| reliable.is_none());
    let note = note.map(|on| format!("WR_REL_SET of the user area is {} already", if on { "set" } else { "clear" }));
    if groups.is_some() || reliable.is_some() {
        board.commit(groups, reliable)?;
    }
    let group = u64::from(board.profile().areas.wp_group_bytes);
    let enhanced_bytes = board.card.device().partitioning().enhanced_groups * group;
    Ok(Prepared { card: board.card, now: board.now, enhanced_bytes, note })
}

fn new_card(profile: Profile) -> Result<(Card, Instant), String> {
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 });
    Ok((card.map_err(|error| error.to_string())?, Instant::START))
}

struct Board {
    card: Card,
    now: Instant,
}

impl Board {
    fn profile(&self) -> &Profile {
        self.card.device().profile()
    }

    /// The groups to enhance.
    fn groups(&self, size: Size) -> Result<u64, String> {
        let areas = &self.profile().areas;
        let (most, group) = (u64::from(areas.enhanced_groups_max), u64::from(areas.wp_group_bytes));
        if self.profile().kind != CardKind::Emmc {
            return Err("an SD card has no enhanced area".into());
        }
        if most == 0 {
            return Err("the card has no enhanced area (MAX_ENH_SIZE_MULT is 0)".into());
        }
        let groups = match size {
            Size::Max => most,
            Size::Percent(percent) => (most * u64::from(percent)).div_ceil(100),
            Size::Exact(Bytes(bytes)) => bytes.div_ceil(group),
        };
        match groups {
            0 => Err("it is less than one write protection group".into()),
            groups if groups > most => {
                let [wanted, most] = [groups, most].map(|groups| Bytes(groups * group).rounded());
                Err(format!("{wanted} with one bit a cell; the card can have {most}"))
            }
            groups => Ok(groups),
        }
    }

    fn command(&mut self, index: u8, argument: u32) {
        self.card.handle_command(index, argument, self.now);
        self.now = self.now + COMMAND_TIME;
        self.card.handle_timeout(self.now);
    }

    fn identify(&mut self) {
        for (index, argument) in [(0, 0), (1, 0x40ff_8080), (1, 0x40ff_8080), (2, 0), (3, 1 << 16), (7, 1 << 16)] {
            self.command(index, argument);
        }
    }

    fn power_cycle(&mut self) -> Result<(), String> {
        self.card.power_off(self.now);
        self.now = self.card.power_on(self.now + COMMAND_TIME).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// CMD6, write byte.
    fn switch(&mut self, index: usize, value: u8) {
        self.command(6, 0x0300_0000 | (index as u32) << 16 | u32::from(value) << 8);
    }

    /// Writes the settings, commits them, and switches the power off and on.
    fn commit(&mut self, groups: Option<u64>, reliable: Option<bool>) -> Result<(), String> {
        let before = self.card.registers().ext_csd;
        if before[reg::PARTITION_SETTING_COMPLETED] & 1 == 1 {
            return Err("PARTITION_SETTING_COMPLETED is set: the card can be partitioned only once".into());
        }
        // A card from a folder has power below its commands only.
        self.power_cycle()?;
        self.identify();
        self.switch(reg::ERASE_GROUP_DEF.index(), 1);
        if let Some(groups) = groups {
            let start = reg::ENH_START_ADDR.range();
            start.for_each(|index| self.switch(index, 0));
            for (index, byte) in reg::ENH_SIZE_MULT.range().zip(groups.to_le_bytes()) {
                self.switch(index, byte);
            }
            self.switch(reg::PARTITIONS_ATTRIBUTE.index(), 1);
        }
        if let Some(on) = reliable {
            self.switch(reg::WR_REL_SET.index(), before[reg::WR_REL_SET] & !1 | u8::from(on));
        }
        self.switch(reg::PARTITION_SETTING_COMPLETED.index(), 1);
        self.power_cycle()?;
        if groups.is_some_and(|groups| self.card.device().partitioning().enhanced_groups != groups) {
            return Err("the card refused the enhanced area".into());
        }
        let is_on = self.card.registers().ext_csd[reg::WR_REL_SET] & 1 == 1;
        if reliable.is_some_and(|on| is_on != on) {
            return Err("the card refused WR_REL_SET: it cannot be written (WR_REL_PARAM, HS_CTRL_REL)".into());
        }
        Ok(())
    }
}

/// The user area. Unit: bytes.
pub(super) fn user_bytes(card: &Card) -> u64 {
    card.device().sectors(emmc_card::device::Area::User) * SECTOR_BYTES
}
