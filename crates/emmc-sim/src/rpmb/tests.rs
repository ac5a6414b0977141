//! The host's requests to the card's RPMB: what both sides say of the same frames, and cuts of power within a write.

use emmc_card::device::DeviceOptions;
use emmc_card::nand::{FaultPlan, StoredContent};
use emmc_card::profile::shipped;
use emmc_port::Consent;
use emmc_port::rpmb::{RpmbError, RpmbKey, RpmbShape, counter, program_key, read, write};
use emmc_regs::ext_csd::ExtCsd;
use emmc_regs::rpmb::RpmbResult;

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
