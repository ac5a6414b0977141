//! The virtual card as a source of registers.

use emmc_port::{CardData, Format};
use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::ExtCsd;

use super::Device;

impl Device {
    /// Everything that a host could read from it, under the user's name for it.
    pub fn card_data(&self, name: &str) -> CardData {
        let registers = self.registers();
        let kind = self.profile.kind;
        let mut card = CardData::new(name, Format::Virtual);
        if let Some(origin) = card.origins.first_mut() {
            origin.notes.push(format!("a virtual card: profile {}, {}", self.profile.name, self.profile.description));
            origin.notes.extend(self.profile.sources.iter().cloned());
        }
        card.kind = Some(kind);
        card.cid = Some(Cid(registers.cid));
        card.csd = Some(registers.csd);
        card.ocr = Some(registers.ocr);
        match kind {
            CardKind::Emmc => card.ext_csd = Some(ExtCsd::from_bytes(registers.ext_csd)),
            CardKind::Sd => {
                card.scr = Some(registers.scr);
                card.ssr = Some(registers.ssr);
            }
        }
        card
    }
}
