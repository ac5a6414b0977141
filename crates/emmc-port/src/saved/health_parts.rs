//! PRE_EOL_INFO and the life times of one text: all from one print, or the text is refused.
//!
//! Two joined texts may mix the registers of two cards. So one of the prints must have every value of the others.
//! Absent on purpose: the disk's name as a proof, because most machines have an mmcblk0; and makers' reports, which are
//! shown beside the registers.

use emmc_regs::ext_csd::reg;

use super::text::Text;
use crate::{CardData, SourceError};

/// PRE_EOL_INFO, life time A, life time B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HealthPart([Option<u8>; 3]);

impl HealthPart {
    /// What a form has read.
    pub(super) fn of(data: &CardData) -> Self {
        let hex = |text: &str| u8::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
        let attribute = |name: &str| data.sysfs.get(name).map(String::as_str);
        let life = attribute("life_time").and_then(|value| value.split_once(' '));
        let byte = |field| data.ext_csd.as_ref().and_then(|ext_csd| ext_csd.byte(field));
        Self([
            byte(reg::PRE_EOL_INFO.offset).or_else(|| attribute("pre_eol_info").and_then(hex)),
            byte(reg::DEVICE_LIFE_TIME_EST_TYP_A.offset).or_else(|| life.and_then(|(a, _)| hex(a))),
            byte(reg::DEVICE_LIFE_TIME_EST_TYP_B.offset).or_else(|| life.and_then(|(_, b)| hex(b))),
        ])
    }

    /// Whether one of the two gives everything that the other gives, with the same values.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(own, other)| own.is_none() || *own == other)
    }

    /// The registers and their values, for a message.
    pub(super) fn words(&self) -> String {
        let names = ["PRE_EOL_INFO", "DEVICE_LIFE_TIME_EST_TYP_A", "DEVICE_LIFE_TIME_EST_TYP_B"];
        let known = names.iter().zip(self.0).filter_map(|(name, value)| Some(format!("{name} {:#04x}", value?)));
        known.collect::<Vec<_>>().join(", ")
    }
}

/// The prints of one tool in a text, in order.
#[derive(Default)]
pub(super) struct Prints {
    /// Each with the tool's dialect, the line of its first health register, and its values.
    prints: Vec<(&'static str, u64, HealthPart)>,
    /// Registers that the current print has given.
    given: Vec<u16>,
    /// Whether the next health register begins another print.
    begins: bool,
}

impl Prints {
    /// A line gives a register of one byte or more; `dialect` where it is one of health.
    pub(super) fn take(&mut self, line: u64, offset: u16, health: Option<(&'static str, u8)>) {
        // No tool prints a register twice: another print begins.
        if self.given.contains(&offset) {
            self.given.clear();
            self.begins = true;
        }
        self.given.push(offset);
        let Some((dialect, value)) = health else { return };
        let fields = [reg::PRE_EOL_INFO, reg::DEVICE_LIFE_TIME_EST_TYP_A, reg::DEVICE_LIFE_TIME_EST_TYP_B];
        let Some(index) = fields.iter().position(|field| field.offset == offset) else { return };
        if self.begins || self.prints.last().is_none_or(|print| print.0 != dialect) {
            self.prints.push((dialect, line, HealthPart::default()));
            self.begins = false;
        }
        if let Some(place) = self.prints.last_mut().and_then(|print| print.2.0.get_mut(index)) {
            *place = Some(value);
        }
    }

    /// Errors: two prints give different registers of health, so that each may be of another card.
    pub(super) fn check(&self, text: &Text) -> Result<(), SourceError> {
        let Some(most) = self.prints.iter().max_by_key(|print| print.2.0.iter().flatten().count()) else {
            return Ok(());
        };
        match self.prints.iter().find(|print| !print.2.is_within(&most.2)) {
            Some(other) => {
                let (first, second) = if most.1 < other.1 { (most, other) } else { (other, most) };
                let expected = format!(
                    "one print with all registers of health, as {} from line {} on; save each card apart",
                    first.2.words(),
                    first.1
                );
                Err(text.malformed(second.1, expected, second.2.words()))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::saved::read;

    const LIFE: &str = "eMMC Life Time Estimation A [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A]: 0x01\n\
                        eMMC Life Time Estimation B [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_B]: 0x01\n";
    const EOL: &str = "eMMC Pre EOL information [EXT_CSD_PRE_EOL_INFO]: 0x01\n";

    fn message(log: &str) -> String {
        read("log", log.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn health_of_two_forms_is_refused_unless_one_gives_it_all() {
        let sysfs = "life_time: 0x01 0x01\npre_eol_info: 0x01\n";
        assert!(read("log", format!("{LIFE}{EOL}\n{sysfs}").as_bytes()).is_ok());
        assert!(read("log", format!("{LIFE}\n{sysfs}").as_bytes()).is_ok());
        let expected = "another part of log: not the same card as one part of log: expected one form with all registers \
                        of health, as DEVICE_LIFE_TIME_EST_TYP_A 0x01, DEVICE_LIFE_TIME_EST_TYP_B 0x01 before; save \
                        each card apart, found PRE_EOL_INFO 0x01";
        assert_eq!(message(&format!("{LIFE}\npre_eol_info: 0x01\n")), expected);
        let worn = message(&format!("{LIFE}{EOL}\nlife_time: 0x0b 0x01\npre_eol_info: 0x01\n"));
        assert!(
            worn.ends_with("found PRE_EOL_INFO 0x01, DEVICE_LIFE_TIME_EST_TYP_A 0x0b, DEVICE_LIFE_TIME_EST_TYP_B 0x01")
        );
    }

    #[test]
    fn health_of_two_prints_is_refused_unless_one_gives_it_all() {
        assert!(read("log", format!("{LIFE}{EOL}{LIFE}").as_bytes()).is_ok());
        let second = LIFE.lines().nth(1).unwrap();
        let expected = "log: at line 3: expected one print with all registers of health, as DEVICE_LIFE_TIME_EST_TYP_A \
                        0x01, DEVICE_LIFE_TIME_EST_TYP_B 0x01 from line 1 on; save each card apart, found PRE_EOL_INFO \
                        0x01, DEVICE_LIFE_TIME_EST_TYP_B 0x01";
        assert_eq!(message(&format!("{LIFE}{second}\n{EOL}")), expected);
        // The ChromiumOS fork prints other words.
        let fork = "Pre EOL information [PRE_EOL_INFO: 0x01]\n";
        assert!(message(&format!("{LIFE}{fork}")).starts_with("log: at line 3: expected one print with all registers"));
    }

    #[test]
    fn an_unknown_line_of_health_removes_all_health() {
        let health = |log: &str| read("log", log.as_bytes()).unwrap().ext_csd.and_then(|ext_csd| ext_csd.byte(268));
        assert_eq!(health(&format!("{LIFE}{EOL}")), Some(1));
        for broken in ["eMMC Pre EOL infoST_TYP_B]: 0x01", "eMMC Pre EOL inf Life Time Estimation B [EXT_CSD_DEVICE"] {
            assert_eq!(health(&format!("Card Type [CARD_TYPE: 0x57]\n{LIFE}{broken}\n{EOL}")), None, "{broken}");
        }
    }

    #[test]
    fn a_health_value_is_a_whole_word() {
        for broken in ["0x0B", "0x98,0x03", "0x0bc"] {
            let log = LIFE.replace("_A]: 0x01", &format!("_A]: {broken}"));
            let expected = "log: at line 1: expected 2 digits after 0x for DEVICE_LIFE_TIME_EST_TYP_A";
            assert!(message(&log).starts_with(expected), "{broken}");
        }
        let fork = "Device life time estimation type A [DEVICE_LIFE_TIME_EST_TYP_A: 0x02]0x01\n";
        assert!(message(fork).contains("expected 2 digits after 0x"), "{}", message(fork));
    }
}
