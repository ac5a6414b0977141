use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, reg};

use super::*;
use crate::ApprovedErase;

fn consent() -> Consent {
    Consent::permanent("1", 1).unwrap()
}

fn registers() -> [u8; EXT_CSD_BYTES] {
    let mut bytes = [0; EXT_CSD_BYTES];
    (bytes[reg::EXT_CSD_REV], bytes[reg::SUPPORTED_MODES], bytes[reg::FFU_FEATURES]) = (8, 1, 1);
    bytes[reg::FFU_ARG.range()].copy_from_slice(&0xfffa_fff0u32.to_le_bytes());
    bytes[reg::FIRMWARE_VERSION.range()].copy_from_slice(b"OLD\0\0\0\0\0");
    bytes
}

fn state(bytes: [u8; EXT_CSD_BYTES]) -> FfuState {
    FfuState::of(&ExtCsd::from_bytes(bytes))
}

/// What a step is: the command and its argument.
fn words(command: &FfuCommand<'_>) -> Vec<(u8, u32)> {
    let argument = |step: &FfuStep<'_>| match *step {
        FfuStep::Switch(approved) => approved.argument(),
        FfuStep::Count(count) => count.into(),
        FfuStep::Write { address, .. } => address,
        FfuStep::Stop => 0,
    };
    command.steps().iter().map(|step| (step.opcode(), argument(step))).collect()
}

#[test]
fn each_mode_sends_the_commands_of_mmc_utils() {
    const ENTER: (u8, u32) = (6, 0x031e_0100);
    const LEAVE: (u8, u32) = (6, 0x031e_0000);
    let data = [0; 1024];
    for (mode, bytes, expected) in [
        (FfuMode::Chunks, 1024, &[ENTER, (23, 2), (25, 9), LEAVE][..]),
        (FfuMode::Stay, 1024, &[(23, 2), (25, 9)]),
        (FfuMode::Open, 1024, &[(25, 9), (12, 0)]),
        (FfuMode::Blocks, 512, &[ENTER, (24, 9), LEAVE]),
        (FfuMode::BlocksStay, 512, &[(24, 9)]),
    ] {
        let command = FfuCommand::download(mode, 9, &data[..bytes], consent()).unwrap();
        assert_eq!(words(&command), expected, "{mode:?}");
    }
    assert_eq!(words(&FfuCommand::enter(consent()).unwrap()), [ENTER]);
    assert_eq!(words(&FfuCommand::leave()), [LEAVE]);
    let install = FfuCommand::install(7, consent()).unwrap();
    assert_eq!((words(&install), install.timeout_ms()), (vec![ENTER, (6, 0x031d_0100)], 7));
}

#[test]
fn nothing_is_sent_without_consent_to_what_cannot_be_reverted() {
    for consent in [Consent::REVERSIBLE, Consent::CONTENT_LOST] {
        assert!(FfuCommand::enter(consent).is_err());
        assert!(FfuCommand::install(0, consent).is_err());
        for mode in [FfuMode::Chunks, FfuMode::Stay, FfuMode::Open, FfuMode::Blocks, FfuMode::BlocksStay] {
            assert!(FfuCommand::download(mode, 0, &[0; 512], consent).is_err(), "{mode:?}");
        }
        let mut card = Script { registers: registers(), sent: Vec::new(), fails_at: None, counts: |sent| sent };
        let order = Order { mode: FfuMode::Stay, chunk_bytes: 512, consent };
        let done = carry_out(&mut card, &[0; 512], &order, &mut |_| true);
        assert!(matches!(done.ended, Ended::Refused(_)) && card.sent.is_empty(), "{done:?}");
    }
}

#[test]
fn registers_say_what_a_card_has() {
    let mut bytes = registers();
    bytes[reg::OPERATION_CODES_TIMEOUT] = 0x0e;
    let found = state(bytes);
    assert_eq!((found.supported, found.disabled, found.operation_codes), (Some(true), Some(false), Some(true)));
    assert_eq!((found.argument, found.timeout_us, found.install_ms()), (Some(0xfffa_fff0), Some(1_638_400), 1639));
    for (raw, time) in [(0, None), (1, Some(200)), (0x17, Some(100 << 0x17)), (0x18, None)] {
        bytes[reg::OPERATION_CODES_TIMEOUT] = raw;
        assert_eq!(state(bytes).timeout_us, time, "{raw}");
    }
    bytes[reg::OPERATION_CODES_TIMEOUT] = 0;
    assert_eq!(state(bytes).install_ms(), 60_000);
    // Before 5.0 the bytes are reserved.
    bytes[reg::EXT_CSD_REV] = 6;
    assert_eq!((state(bytes).supported, state(bytes).argument), (Some(false), None));
    assert_eq!(FfuState::of(&ExtCsd::unknown()).supported, None);
    for (version, text) in [
        (*b"EMMCLAB1", "EMMCLAB1"),
        (*b"0700\0\0\0\0", "0700"),
        (*b"AB      ", "AB"),
        ([0; 8], "0x0000000000000000"),
        ([7, 0, 0, 0, 0, 0, 0, 1], "0x0700000000000001"),
    ] {
        assert_eq!(version_text(&version), text);
    }
}

#[test]
fn sectors_are_counted_in_either_unit() {
    let mut bytes = registers();
    let mut count = |count: u32, size: u8, image: usize| {
        bytes[reg::NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED.range()].copy_from_slice(&count.to_le_bytes());
        bytes[reg::DATA_SECTOR_SIZE] = size;
        state(bytes).counts(image)
    };
    assert_eq!([count(8, 0, 4096), count(1, 0, 4096), count(9, 0, 4096)], [true, false, false]);
    assert_eq!([count(8, 1, 4096), count(1, 1, 4096), count(2, 1, 4096)], [true, true, false]);
}

/// A card that counts as told, and fails at a command.
struct Script {
    registers: [u8; EXT_CSD_BYTES],
    sent: Vec<(u8, u32)>,
    fails_at: Option<(usize, PortError)>,
    counts: fn(u32) -> u32,
}

impl CommandPort for Script {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        Ok(self.registers)
    }

    fn protection(&mut self, _: u32) -> Result<u64, PortError> {
        unreachable!()
    }

    fn send(&mut self, _: Approved) -> Result<(), PortError> {
        unreachable!()
    }

    fn erase(&mut self, _: ApprovedErase) -> Result<(), PortError> {
        unreachable!()
    }
}

impl FfuPort for Script {
    fn update(&mut self, command: &FfuCommand<'_>) -> Result<(), PortError> {
        for step in command.steps() {
            if let Some((_, error)) = self.fails_at.clone().filter(|(at, _)| *at == self.sent.len()) {
                self.sent.push((0, 0));
                return Err(error);
            }
            self.sent.push(words(&FfuCommand { steps: vec![*step], timeout_ms: 0 })[0]);
            match self.sent.last() {
                Some((6, 0x031e_0100)) => self.registers[reg::MODE_CONFIG] = 1,
                Some((6, _)) => self.registers[reg::MODE_CONFIG] = 0,
                _ => {}
            }
            if let FfuStep::Write { data, .. } = step {
                let field = reg::NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED;
                let sent = state(self.registers).programmed.unwrap() + (data.len() / 512) as u32;
                let count = (self.counts)(sent);
                self.registers[field.range()].copy_from_slice(&count.to_le_bytes());
            }
        }
        Ok(())
    }
}

fn run(card: &mut Script, mode: FfuMode) -> Update {
    let order = Order { mode, chunk_bytes: 1024, consent: consent() };
    carry_out(card, &[0; 2048], &order, &mut |_| true)
}

#[test]
fn the_mode_is_left_after_an_error_at_every_command() {
    for mode in [FfuMode::Chunks, FfuMode::Stay, FfuMode::Open, FfuMode::Blocks, FfuMode::BlocksStay] {
        let new = |fails_at| Script { registers: registers(), sent: Vec::new(), fails_at, counts: |sent| sent };
        let mut whole = new(None);
        assert_eq!(run(&mut whole, mode).ended, Ended::Installed, "{mode:?}");
        for at in 0..whole.sent.len() {
            for is_lost in [false, true] {
                let error = match is_lost {
                    true => PortError::Lost { opcode: 6, reason: "a test".into() },
                    false => PortError::Refused { opcode: 6, status: "SWITCH_ERROR".into() },
                };
                let mut card = new(Some((at, error)));
                let done = run(&mut card, mode);
                let say = format!("{mode:?}, error at command {at}: {done:?}");
                assert!(matches!(done.ended, Ended::Lost(_)) == is_lost && done.ended != Ended::Installed, "{say}");
                assert_eq!((done.state.unwrap().mode, card.sent.last()), (Some(0), Some(&(6, 0x031e_0000))), "{say}");
                // One attempt, and the way out.
                let way = if mode == FfuMode::Open { &[(12, 0), (6, 0x031e_0000)][..] } else { &[(6, 0x031e_0000)] };
                assert_eq!(&card.sent[at + 1..], way, "{say}");
            }
        }
    }
}

#[test]
fn a_count_that_is_not_that_of_the_image_is_a_surprise_and_nothing_is_installed() {
    for (counts, phrase) in [
        ((|_| 0) as fn(u32) -> u32, "no sector"),
        (|sent| sent + 1, "counts 3 sectors"),
        (|sent| sent.min(3), "counts 3 sectors as programmed, and 2048 bytes"),
    ] {
        let mut card = Script { registers: registers(), sent: Vec::new(), fails_at: None, counts };
        let done = run(&mut card, FfuMode::Chunks);
        assert!(matches!(&done.ended, Ended::Surprise(what) if what.contains(phrase)), "{done:?}");
        assert!(!done.is_install_sent && !card.sent.contains(&(6, 0x031d_0100)));
    }
}

#[test]
fn a_card_that_was_left_in_the_mode_leaves_it_first_and_a_makers_mode_is_not_touched() {
    let mut card = Script { registers: registers(), sent: Vec::new(), fails_at: None, counts: |sent| sent };
    card.registers[reg::MODE_CONFIG] = 1;
    assert_eq!(run(&mut card, FfuMode::Chunks).ended, Ended::Installed);
    assert_eq!(card.sent[0], (6, 0x031e_0000));
    let mut card = Script { registers: registers(), sent: Vec::new(), fails_at: None, counts: |sent| sent };
    card.registers[reg::MODE_CONFIG] = 0x10;
    assert!(matches!(run(&mut card, FfuMode::Chunks).ended, Ended::Surprise(_)) && card.sent.is_empty());
}

#[test]
fn an_installation_that_the_card_calls_failed_is_refused() {
    let mut card = Script { registers: registers(), sent: Vec::new(), fails_at: None, counts: |sent| sent };
    card.registers[reg::FFU_STATUS] = 0x11;
    let done = run(&mut card, FfuMode::Chunks);
    assert_eq!(done.ended, Ended::Refused("FFU_STATUS is 0x11: install error".into()));
    assert!(done.is_install_sent);
}
