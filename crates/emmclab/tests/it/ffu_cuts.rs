//! Power cuts of a firmware update before and after every command: the card runs the old firmware or the new one, never
//! the new one where the result says that nothing was installed, and the same update again completes it.

use emmc_card::card::{Card, firmware_image};
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_port::ffu::{Ended, FfuCommand, FfuMode, FfuPort, FfuState, Order, Update, carry_out};
use emmc_port::{Approved, ApprovedErase, CommandPort, Consent, PortError};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd};
use emmc_sim::CommandTarget;
use emmc_units::Instant;

use crate::support::virtual_cards::profile;

const MODES: [FfuMode; 5] = [FfuMode::Chunks, FfuMode::Stay, FfuMode::Open, FfuMode::Blocks, FfuMode::BlocksStay];

fn card(has_operations: bool) -> CommandTarget {
    let mut profile = profile();
    profile.registers.insert("FFU_FEATURES".into(), u64::from(has_operations));
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
    CommandTarget::new(card, Instant::START).unwrap()
}

fn image() -> Vec<u8> {
    firmware_image(*b"EMMCLAB2", &[7; 1700])
}

fn state(card: &mut CommandTarget) -> FfuState {
    FfuState::of(&ExtCsd::from_bytes(card.ext_csd().unwrap()))
}

fn run(port: &mut dyn FfuPort, mode: FfuMode) -> Update {
    let consent = Consent::permanent("1", 1).unwrap();
    carry_out(port, &image(), &Order { mode, chunk_bytes: 1024, consent }, &mut |_| true)
}

/// A card whose power is lost before, or after, the command of this number.
struct CutPort<'a> {
    card: &'a mut CommandTarget,
    left: u32,
    is_after: bool,
}

impl CutPort<'_> {
    fn lost<T>() -> Result<T, PortError> {
        Err(PortError::Lost { opcode: 6, reason: "power is lost".into() })
    }
}

impl CommandPort for CutPort<'_> {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        if self.left == 0 { Self::lost() } else { self.card.ext_csd() }
    }

    fn protection(&mut self, address: u32) -> Result<u64, PortError> {
        self.card.protection(address)
    }

    fn send(&mut self, command: Approved) -> Result<(), PortError> {
        self.card.send(command)
    }

    fn erase(&mut self, command: ApprovedErase) -> Result<(), PortError> {
        self.card.erase(command)
    }
}

impl FfuPort for CutPort<'_> {
    fn update(&mut self, command: &FfuCommand<'_>) -> Result<(), PortError> {
        for step in command.steps() {
            if self.left == 0 {
                return Self::lost();
            }
            self.left -= 1;
            let (card, is_cut) = (&mut *self.card, self.left == 0);
            if !is_cut || self.is_after {
                card.firmware_step(step)?;
            }
            if is_cut {
                return Self::lost();
            }
        }
        Ok(())
    }
}

#[test]
fn a_cut_before_and_after_every_command_leaves_a_card_that_is_told_and_updated() {
    let (mut cuts, mut new) = (0, 0);
    for (mode, has_operations) in MODES.iter().flat_map(|mode| [(*mode, true), (*mode, false)]) {
        for (number, is_after) in (1..).flat_map(|number| [(number, false), (number, true)]) {
            let mut card = card(has_operations);
            let done = run(&mut CutPort { card: &mut card, left: number, is_after }, mode);
            let say =
                format!("{mode:?}, operation codes {has_operations}, command {number}, after {is_after}: {done:?}");
            let is_cut = matches!(done.ended, Ended::Lost(_));
            card.power_cycle().unwrap();
            let after = state(&mut card);
            assert_eq!(after.mode, Some(0), "{say}");
            let is_new = match after.firmware.unwrap() {
                version if version == *b"EMMCLAB1" => false,
                version if version == *b"EMMCLAB2" => true,
                version => panic!("{say}: {version:?}"),
            };
            if !is_cut {
                let expected = if has_operations { Ended::Installed } else { Ended::PowerCycleDue };
                assert!(done.ended == expected && is_new, "{say}");
                break;
            }
            // Before INSTALL the old firmware runs; without it a card installs all of an image and nothing less. The
            // last answer may be lost.
            if has_operations {
                assert!(!is_new || done.is_install_sent, "{say}");
            } else {
                assert!(!is_new || done.sent_bytes + 1024 >= image().len(), "{say}");
            }
            let again = run(&mut card, mode);
            let expected = if has_operations { Ended::Installed } else { Ended::PowerCycleDue };
            assert_eq!(again.ended, expected, "{say}: {again:?}");
            card.power_cycle().unwrap();
            let after = state(&mut card);
            assert_eq!((after.firmware, after.status), (Some(*b"EMMCLAB2"), Some(0)), "{say}");
            cuts += 1;
            new += u32::from(is_new);
        }
    }
    println!("{cuts} cuts, {new} with the new firmware after them");
    assert!(cuts > 100 && new > 0 && new < cuts, "{cuts} {new}");
}

#[test]
fn an_update_takes_no_step_of_the_flash_that_a_cut_could_meet() {
    let mut card = card(true);
    let before = card.card().device().nand().steps();
    assert_eq!(run(&mut card, FfuMode::Chunks).ended, Ended::Installed);
    assert_eq!(card.card().device().nand().steps(), before);
}
