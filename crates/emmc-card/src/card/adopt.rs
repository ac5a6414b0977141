//! A card with the registers of another one: for rehearsals.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

use super::Card;
use super::access::AccessRules;
use super::partition;

impl Card {
    /// Takes EXT_CSD of another card whose areas have the same sizes, as it is between two power cycles. A partitioning
    /// that is already committed there counts as this card's natural layout, and stays closed.
    pub fn adopt_ext_csd(&mut self, ext_csd: &[u8; EXT_CSD_BYTES]) {
        self.device.registers_mut().ext_csd = *ext_csd;
        let mut factory = *ext_csd;
        if partition::is_committed(ext_csd) {
            self.features.is_partitioned = true;
        } else {
            // A power cycle clears what is not committed; WR_REL_SET has its own value from the factory.
            for index in partition::settings().filter(|index| u16::from(*index) != reg::WR_REL_SET.offset) {
                factory[usize::from(index)] = 0;
            }
        }
        self.rules = AccessRules::new(factory);
        let unset = [0; EXT_CSD_BYTES];
        for (index, (old, new)) in (0..=u8::MAX).zip(unset.into_iter().zip(*ext_csd)) {
            // One-time settings of the partitioning that are not committed can still be written.
            if partition::is_committed(ext_csd) || !partition::settings().any(|setting| setting == index) {
                self.rules.note(index, old, new);
            }
        }
    }
}
