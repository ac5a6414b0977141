//! The host's requests to the card's RPMB: what both sides say of the same frames, and cuts of power within a write.

use emmc_card::device::DeviceOptions;
use emmc_card::nand::{FaultPlan, StoredContent};
use emmc_card::profile::shipped;
use emmc_port::Consent;
use emmc_port::rpmb::{RpmbError, RpmbKey, RpmbShape, counter, program_key, protection, read, set_protection, write};
use emmc_regs::crc::sealed;
use emmc_regs::csd::mmc;
use emmc_regs::ext_csd::{ExtCsd, reg};
use emmc_regs::rpmb::{ConfigByte, RpmbResult, SecureWriteProtection};

use super::*;

const NONCE: [u8; 16] = *b"a number once.  ";
const LOST: Consent = Consent::CONTENT_LOST;

fn key() -> RpmbKey {
    RpmbKey::from_file(b"AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH").unwrap()
}

fn card() -> CommandTarget {
    let mut profile = shipped::named("generic-8g").unwrap();
    profile.areas.user_bytes = 32 << 20;
    (profile.areas.wp_group_bytes, profile.areas.enhanced_groups_max) = (1 << 20, 8);
    (profile.areas.boot_bytes, profile.areas.rpmb_bytes) = (128 << 10, 128 << 10);
    // 8 KiB are two programs.
    profile.nand.page_bytes = 4096;
    (profile.nand.pages_per_block, profile.nand.over_provisioning) = (16, 0.5);
    // EN_RPMB_REL_WR.
    profile.registers.insert("WR_REL_PARAM".into(), 0x14);
    profile.registers.insert("SECURE_WP_INFO".into(), 1);
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 3 }).unwrap();
    CommandTarget::new(card, Instant::START).unwrap()
}

fn with_key() -> CommandTarget {
    let mut card = card();
    program_key(&mut card, &key(), Consent::permanent("1", 1).unwrap()).unwrap();
    card
}

fn result(error: RpmbError) -> RpmbResult {
    let RpmbError::Result(result) = error else { panic!("{error}") };
    result
}

#[test]
fn host_and_card_agree_on_every_request() {
    let mut card = card();
    assert_eq!(result(counter(&mut card, None, NONCE).unwrap_err()), RpmbResult::NO_KEY);
    assert_eq!(result(read(&mut card, None, [0, 1], NONCE).unwrap_err()), RpmbResult::NO_KEY);
    assert_eq!(result(write(&mut card, &key(), 0, (0, &[1; 256]), LOST).unwrap_err()), RpmbResult::NO_KEY);
    let mut card = with_key();
    let again = program_key(&mut card, &key(), Consent::permanent("1", 1).unwrap());
    assert_eq!(result(again.unwrap_err()), RpmbResult::WRITE_FAILURE);
    let shape = RpmbShape::of(&ExtCsd::from_bytes(card.card().device().registers().ext_csd)).unwrap();
    assert_eq!((shape.blocks, shape.pairs, shape.large), (512, true, true));
    // Every size of a write.
    for (number, (address, blocks)) in [(7u16, 1u8), (8, 2), (32, 32)].into_iter().enumerate() {
        let data: Vec<u8> = (0..blocks).flat_map(|block| [block + 1; 256]).collect();
        let before = number as u32;
        assert_eq!(write(&mut card, &key(), before, (address, &data), LOST), Ok(before + 1));
        assert_eq!(counter(&mut card, Some(&key()), NONCE), Ok(before + 1));
        assert_eq!(read(&mut card, Some(&key()), [address, blocks.into()], NONCE).unwrap(), data);
        assert_eq!(read(&mut card, None, [address, blocks.into()], NONCE).unwrap(), data);
    }
    // What the card refuses.
    let refused = |card: &mut CommandTarget, before, address, data: &[u8]| {
        result(write(card, &key(), before, (address, data), LOST).unwrap_err())
    };
    assert_eq!(refused(&mut card, 2, 0, &[1; 256]), RpmbResult::COUNTER_FAILURE);
    assert_eq!(refused(&mut card, 3, 512, &[1; 256]), RpmbResult::ADDRESS_FAILURE);
    assert_eq!(refused(&mut card, 3, 0, &[1; 768]), RpmbResult::GENERAL_FAILURE);
    assert_eq!(result(read(&mut card, None, [511, 2], NONCE).unwrap_err()), RpmbResult::ADDRESS_FAILURE);
    let other = RpmbKey::from_file(&[1; 32]).unwrap();
    let forged = write(&mut card, &other, 3, (0, &[1; 256]), LOST).unwrap_err();
    assert_eq!(result(forged), RpmbResult::AUTHENTICATION_FAILURE);
    assert_eq!(counter(&mut card, Some(&other), NONCE), Err(RpmbError::Mac));
    assert_eq!(read(&mut card, Some(&key()), [0, 7], NONCE).unwrap(), [0; 7 * 256]);
    // The area that is accessed is the user's again.
    assert_eq!(card.card().device().registers().ext_csd[reg::PARTITION_CONFIG] & 7, 0);
    card.power_cycle().unwrap();
    assert_eq!(counter(&mut card, Some(&key()), NONCE), Ok(3));
}

/// Four writes of 8 KiB; the power is cut at every step of the flash within the second. The host finds the counter and
/// whole writes, and goes on from there.
#[test]
fn a_write_goes_on_after_a_cut_at_every_step() {
    let data = |number: u16| vec![number as u8 + 1; 32 * 256];
    let (mut cuts, mut found) = (0, std::collections::BTreeSet::new());
    for step in 1.. {
        let mut target = with_key();
        write(&mut target, &key(), 0, (0, &data(0)), LOST).unwrap();
        let (mut card, now) = target.into_card();
        let at = card.device().nand().steps() + step;
        card.device_mut().nand_mut().arm(FaultPlan { step: at, seed: step });
        let mut target = CommandTarget::new(card, now).unwrap();
        let written = write(&mut target, &key(), 1, (32, &data(1)), LOST);
        if written.is_ok() {
            break;
        }
        cuts += 1;
        assert!(written.unwrap_err().is_unknown(), "step {step}");
        target.power_cycle().unwrap();
        let done = counter(&mut target, Some(&key()), NONCE).unwrap();
        found.insert(done);
        let content = read(&mut target, Some(&key()), [32, 32], NONCE).unwrap();
        let expected = if done == 2 { data(1) } else { vec![0; 32 * 256] };
        assert!(content == expected && (1..=2).contains(&done), "step {step}: counter {done}");
        for (before, number) in (done..).zip(1..4) {
            let address = 32 * number;
            write(&mut target, &key(), before, (address, &data(number)), LOST).unwrap();
        }
        for number in 0..4 {
            assert_eq!(read(&mut target, Some(&key()), [32 * number, 32], NONCE).unwrap(), data(number), "step {step}");
        }
    }
    assert!(cuts > 1, "{cuts} cuts; counters {found:?}");
}

/// What a host may try while secure write protection holds; whether the card did it.
fn changes(card: &mut CommandTarget) -> [bool; 5] {
    let (card, now) = card.parts();
    let mut done = |opcode, argument| {
        let answer = command(card, now, opcode, argument).and_then(|reply| check(opcode, reply.response));
        answer.and_then(|()| status(card, now, opcode)).is_ok()
    };
    let write = |field: &emmc_regs::ext_csd::Field, value: u32| 3 << 24 | u32::from(field.offset) << 16 | value << 8;
    // US_PWR_WP_DIS, so that CMD28 protects until CMD29; B_PWR_WP_EN.
    let switched = [write(reg::USER_WP, 0x08), write(reg::BOOT_WP, 0x01)].map(|argument| done(6, argument));
    let groups = [done(28, 0), done(29, 0)];
    let mut csd = card.device().registers().csd;
    let toggled = u32::from(!mmc::TMP_WRITE_PROTECT.is_set(&csd));
    mmc::TMP_WRITE_PROTECT.set(&mut csd, toggled.into());
    let reply = command(card, now, 27, 0).unwrap();
    check(27, reply.response).unwrap();
    card.handle_data(&sealed(csd), *now);
    *now = *now + emmc_units::Nanos::from_millis(50);
    card.handle_timeout(*now);
    let programmed = status(card, now, 27).is_ok();
    assert_eq!(programmed, u32::from(mmc::TMP_WRITE_PROTECT.is_set(&card.device().registers().csd)) == toggled);
    [switched[0], switched[1], groups[0], groups[1], programmed]
}

#[test]
fn secure_write_protection_holds_what_the_registers_allow() {
    let mut card = with_key();
    let set = |card: &mut CommandTarget, before, byte, value| set_protection(card, &key(), before, byte, value);
    let [enable, config] = [ConfigByte::SecureWpModeEnable, ConfigByte::SecureWpModeConfig];
    let is_on = |card: &CommandTarget| card.card().device().registers().ext_csd[reg::SECURE_WP_INFO] & 2 != 0;
    assert_eq!(protection(&mut card, Some(&key()), NONCE), Ok(SecureWriteProtection::default()));
    assert_eq!(changes(&mut card), [true; 5], "off");
    assert!(changes(&mut card)[4], "back");
    // Boot areas are protected until the next power cycle, as the mode begins.
    set(&mut card, 0, enable, true).unwrap();
    assert!(is_on(&card));
    assert_eq!(changes(&mut card), [false; 5], "on");
    let boot = |card: &CommandTarget| card.card().device().registers().ext_csd[reg::BOOT_WP_STATUS];
    assert_eq!(boot(&card), 0b0101);
    card.power_cycle().unwrap();
    assert_eq!((boot(&card), is_on(&card)), (0b0101, true), "boot areas stay protected over a power cycle");
    assert_eq!(changes(&mut card), [false; 5], "on, after a power cycle");
    // Another key, an old counter.
    let other = RpmbKey::from_file(&[1; 32]).unwrap();
    let forged = set_protection(&mut card, &other, 1, config, true).unwrap_err();
    assert_eq!(result(forged), RpmbResult::AUTHENTICATION_FAILURE);
    assert_eq!(result(set(&mut card, 0, config, true).unwrap_err()), RpmbResult::COUNTER_FAILURE);
    assert_eq!(protection(&mut card, Some(&other), NONCE), Err(RpmbError::Mac));
    set(&mut card, 1, config, true).unwrap();
    let allowed = SecureWriteProtection { is_on: true, allows_changes: true };
    assert_eq!(protection(&mut card, Some(&key()), NONCE), Ok(allowed));
    assert_eq!(changes(&mut card), [true; 5], "allowed");
    assert!(changes(&mut card)[4], "back");
    card.power_cycle().unwrap();
    assert_eq!(changes(&mut card), [false; 5], "the permission ends with power");
    assert_eq!(boot(&card), 0, "the protection ended with power while changes were allowed");
    set(&mut card, 2, enable, false).unwrap();
    assert_eq!(changes(&mut card), [true; 5], "off again");
    assert_eq!((is_on(&card), counter(&mut card, Some(&key()), NONCE)), (false, Ok(3)));
}
