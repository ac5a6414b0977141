//! Write permission of each bit of EXT_CSD, how often, and its reset: the access classes of the one field table.
//!
//! Absent on purpose: the effect of a byte (`switch` and the features).

use emmc_regs::ext_csd::{Access, EXT_CSD_BYTES, Field, field_at};

/// Resets that bits can survive or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// A power cycle, or RST_n.
    Power,
    /// CMD0.
    Software,
}

/// Why a write to a byte is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The byte is not writable by the standard or in this part.
    ReadOnly,
    /// Reserved bits would be set.
    Reserved,
    /// A one-time group of bits is already programmed.
    Burnt,
    /// A group of bits that can be written once per power cycle is already written.
    SetThisCycle,
}

/// Write history for the classes that count.
#[derive(Clone, Debug)]
pub(crate) struct AccessRules {
    /// Reset values of volatile bits.
    factory: [u8; EXT_CSD_BYTES],
    /// One-time bits that are programmed.
    burnt: [u8; EXT_CSD_BYTES],
    /// Once-per-power-cycle bits that were set.
    set_this_cycle: [u8; EXT_CSD_BYTES],
}

/// A group of bits of one byte that is written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    mask: u8,
    access: Access,
}

impl AccessRules {
    /// Rules for a part with this factory register.
    pub(crate) fn new(factory: [u8; EXT_CSD_BYTES]) -> Self {
        Self { factory, burnt: [0; EXT_CSD_BYTES], set_this_cycle: [0; EXT_CSD_BYTES] }
    }

    /// Whether byte `index` may change from `old` to `new` on a part of revision `rev`.
    ///
    /// Errors: the first violated rule.
    pub(crate) fn check(&self, index: u8, old: u8, new: u8, rev: u8) -> Result<(), Denied> {
        let field = writable(index, rev).ok_or(Denied::ReadOnly)?;
        let mut named = 0;
        for group in groups(field, index) {
            named |= group.mask;
            if (old ^ new) & group.mask != 0 {
                self.check_group(index, group)?;
            }
        }
        if new & !named != old & !named { Err(Denied::Reserved) } else { Ok(()) }
    }

    fn check_group(&self, index: u8, group: Group) -> Result<(), Denied> {
        let at = usize::from(index);
        match group.access {
            Access::W1 if self.burnt[at] & group.mask != 0 => Err(Denied::Burnt),
            Access::RWCp if self.set_this_cycle[at] & group.mask != 0 => Err(Denied::SetThisCycle),
            Access::W1 | Access::RWE | Access::RWCp | Access::RWEp | Access::WEp => Ok(()),
            Access::R | Access::Reserved | Access::Vendor => Err(Denied::ReadOnly),
        }
    }

    /// Records that byte `index` changed from `old` to `new`.
    pub(crate) fn note(&mut self, index: u8, old: u8, new: u8) {
        let Some(field) = field_at(index.into()) else { return };
        for group in groups(field, index).filter(|group| (old ^ new) & group.mask != 0) {
            match group.access {
                Access::W1 => self.burnt[usize::from(index)] |= group.mask,
                Access::RWCp => self.set_this_cycle[usize::from(index)] |= group.mask,
                _ => {}
            }
        }
    }

    /// The value of byte `index` that a host reads: registers of class W/E_P are not readable.
    pub(crate) fn readable(index: u8, value: u8) -> u8 {
        let hides = |field: &Field| field.access.contains(&Access::WEp);
        if field_at(index.into()).is_some_and(hides) { 0 } else { value }
    }

    /// Resets every bit that the reset clears to its factory value.
    pub(crate) fn reset(&mut self, register: &mut [u8; EXT_CSD_BYTES], reset: Reset) {
        for index in 0..=191u8 {
            let at = usize::from(index);
            let Some(field) = field_at(index.into()) else { continue };
            for group in groups(field, index) {
                let clears = match group.access {
                    Access::RWEp | Access::WEp => true,
                    Access::RWCp => reset == Reset::Power,
                    _ => false,
                };
                if clears {
                    register[at] = register[at] & !group.mask | self.factory[at] & group.mask;
                }
            }
        }
        if reset == Reset::Power {
            self.set_this_cycle = [0; EXT_CSD_BYTES];
        }
    }

    /// One-time bits that are programmed.
    pub(crate) fn burnt(&self) -> &[u8; EXT_CSD_BYTES] {
        &self.burnt
    }

    /// Restores them.
    pub(crate) fn set_burnt(&mut self, burnt: [u8; EXT_CSD_BYTES]) {
        self.burnt = burnt;
    }

    /// Reverts one-time bits of a byte and their value: settings that were never committed.
    pub(crate) fn unburn(&mut self, register: &mut [u8; EXT_CSD_BYTES], index: u8) {
        self.burnt[usize::from(index)] = 0;
        register[usize::from(index)] = self.factory[usize::from(index)];
    }
}

/// The field of a byte that CMD6 can write on a part of this revision.
pub(crate) fn writable(index: u8, rev: u8) -> Option<&'static Field> {
    // CMD6 reaches the modes segment only: bytes 192 and up are properties.
    let field = field_at(index.into()).filter(|_| index < 192)?;
    let never = |access: &Access| matches!(access, Access::R | Access::Reserved | Access::Vendor);
    (field.since_rev <= rev && !field.access.iter().all(never)).then_some(field)
}

/// The groups of bits of one byte of a field that are written together.
fn groups(field: &'static Field, index: u8) -> impl Iterator<Item = Group> {
    let access = field.access[0];
    let whole = field.bits.is_empty().then_some(Group { mask: 0xff, access });
    let named = field.bits_of_byte(u16::from(index) - field.offset);
    whole.into_iter().chain(named.map(move |(mask, bits)| Group { mask, access: bits.access.unwrap_or(access) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> AccessRules {
        let mut factory = [0; EXT_CSD_BYTES];
        factory[179] = 0x08;
        AccessRules::new(factory)
    }

    #[test]
    fn every_class_has_its_rule() {
        let mut rules = rules();
        let check = |rules: &AccessRules, index, old, new| rules.check(index, old, new, 8);
        // Read-only, reserved, vendor's, properties.
        for index in [0, 26, 64, 135, 160, 192, 212, 255] {
            assert_eq!(check(&rules, index, 0, 1), Err(Denied::ReadOnly), "{index}");
        }
        // One-time: RST_n_FUNCTION.
        assert_eq!(check(&rules, 162, 0, 1), Ok(()));
        rules.note(162, 0, 1);
        assert_eq!(check(&rules, 162, 1, 1), Ok(()), "writing what is there burns nothing");
        assert_eq!(check(&rules, 162, 1, 2), Err(Denied::Burnt));
        // Once per power cycle: BOOT_CONFIG_PROT bit 0, beside a one-time bit 4.
        rules.note(178, 0, 1);
        assert_eq!(check(&rules, 178, 1, 0), Err(Denied::SetThisCycle));
        assert_eq!(check(&rules, 178, 1, 0x11), Ok(()));
        // Any number of times: CACHE_CTRL.
        rules.note(33, 0, 1);
        assert_eq!(check(&rules, 33, 1, 0), Ok(()));
        // Bits without a name.
        assert_eq!(check(&rules, 33, 0, 2), Err(Denied::Reserved));
        // A part too old for it.
        assert_eq!(rules.check(33, 0, 1, 5), Err(Denied::ReadOnly));
    }

    #[test]
    fn resets_clear_what_they_should() {
        let mut rules = rules();
        let mut register = [0; EXT_CSD_BYTES];
        // PARTITION_CONFIG: boot configuration stays, access does not; BOOT_CONFIG_PROT bit 0 is C_P, bit 4 one-time.
        (register[179], register[178], register[162], register[185]) = (0x4b, 0x11, 1, 1);
        rules.note(178, 0, 0x11);
        rules.reset(&mut register, Reset::Software);
        assert_eq!((register[179], register[178], register[162], register[185]), (0x48, 0x11, 1, 0));
        assert_eq!(rules.check(178, 0x11, 0x10, 8), Err(Denied::SetThisCycle));
        rules.reset(&mut register, Reset::Power);
        assert_eq!((register[178], register[162]), (0x10, 1));
        assert_eq!(rules.check(178, 0x10, 0x11, 8), Ok(()));
        assert_eq!(rules.check(178, 0x10, 0x00, 8), Err(Denied::Burnt));
    }

    #[test]
    fn elements_of_an_array_have_the_same_bits() {
        let rules = rules();
        for index in 37..52 {
            assert_eq!(rules.check(index, 0, 3, 8), Ok(()), "{index}");
        }
        // EXCEPTION_EVENTS_CTRL is one number of two bytes: only its low byte has bits.
        assert_eq!((rules.check(56, 0, 2, 8), rules.check(57, 0, 2, 8)), (Ok(()), Err(Denied::Reserved)));
    }

    #[test]
    fn actions_cannot_be_read_back() {
        assert_eq!((AccessRules::readable(32, 1), AccessRules::readable(33, 1)), (0, 1));
    }
}
