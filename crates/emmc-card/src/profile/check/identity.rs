use super::{Checked, Rules};
use crate::profile::registers::{au_code, year_code};
use crate::profile::{BusMode, SdIdentity};

impl Rules<'_> {
    pub(super) fn identity(&self) -> Checked {
        let (profile, identity) = (self.profile, &self.profile.identity);
        let letters = if self.is_sd() { 5 } else { 6 };
        let product = &identity.product;
        let fits = (1..=letters).contains(&product.len()) && is_printable(product) && !product.trim().is_empty();
        let rule = format!("must be 1 to {letters} printable ASCII characters (PNM)");
        self.require(fits, "identity.product", format_args!("{product:?}"), rule)?;
        self.range("identity.month", identity.month, 1..=12)?;
        self.range("identity.ext_csd_rev", identity.ext_csd_rev, 5..=9)?;
        let rule = "must be a year that the register can hold: SD 2000 to 2255; eMMC 2010 to 2025, with ext_csd_rev 9 2026 to 2038";
        self.require(year_code(profile.kind, identity).is_some(), "identity.year", identity.year, rule)?;
        self.firmware()?;
        match (&identity.sd, self.is_sd()) {
            (None, true) => Err(self.broken("identity.sd", "absent", "is required on an SD card")),
            (Some(_), false) => Err(self.broken("identity.sd", "present", "is for SD cards")),
            (Some(sd), true) => self.sd(sd),
            (None, false) => Ok(()),
        }
    }

    fn firmware(&self) -> Checked {
        let identity = &self.profile.identity;
        let firmware = &identity.firmware;
        let room = if self.is_sd() || identity.ext_csd_rev < 7 { 0 } else { 8 };
        let rule = match room {
            0 => "must be empty: FIRMWARE_VERSION came with EXT_CSD_REV 7, and SD has none",
            _ => "must be at most 8 printable ASCII characters",
        };
        let fits = firmware.len() <= room && is_printable(firmware);
        self.require(fits, "identity.firmware", format_args!("{firmware:?}"), rule)
    }

    fn sd(&self, sd: &SdIdentity) -> Checked {
        let oem = self.profile.identity.oem_id;
        let letters = oem.to_be_bytes().iter().all(u8::is_ascii_graphic);
        self.require(letters, "identity.oem_id", format_args!("{oem:#06x}"), "must be two ASCII letters on SD")?;
        let class = matches!(sd.speed_class, 2 | 4 | 6 | 10);
        self.require(class, "identity.sd.speed_class", sd.speed_class, "must be 2, 4, 6 or 10")?;
        let grade = matches!(sd.uhs_grade, 0 | 1 | 3);
        self.require(grade, "identity.sd.uhs_grade", sd.uhs_grade, "must be 0, 1 or 3")?;
        let uhs = sd.uhs_grade == 0 || self.profile.controller.bus_max >= BusMode::Sdr50;
        let rule = "must be 0 without a UHS bus mode in controller.bus_max";
        self.require(uhs, "identity.sd.uhs_grade", sd.uhs_grade, rule)?;
        self.range("identity.sd.app_class", sd.app_class, 0..=2)?;
        let rule = "must be 16 KiB to 4 MiB doubling, or 8, 12, 16, 24, 32 or 64 MiB (AU_SIZE)";
        self.require(au_code(sd.au_bytes).is_some(), "identity.sd.au_bytes", sd.au_bytes, rule)
    }
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}
