//! Power cuts in writes to RPMB: counter and data are both old or both new.

use emmc_card::card::{Card, DataStatus};
use emmc_card::device::{Area, DeviceOptions};
use emmc_card::nand::{FaultPlan, StoredContent};
use emmc_card::profile::{Profile, shipped};
use emmc_regs::command::Response;
use emmc_units::{Instant, Nanos};
use hmac::{Hmac, Mac};
use sha2::Sha256;

const KEY: [u8; 32] = *b"It's a nice day for a key to be.";
const PROGRAM_KEY: u8 = 1;
const WRITE: u8 = 3;
/// 8 KiB, with EN_RPMB_REL_WR: more than a page.
const FRAMES: usize = 32;
const SECTORS: usize = FRAMES / 2;

fn profile() -> Profile {
    let mut profile = shipped::named("generic-8g").unwrap();
    profile.areas.user_bytes = 32 << 20;
    (profile.areas.wp_group_bytes, profile.areas.enhanced_groups_max) = (1 << 20, 8);
    (profile.areas.boot_bytes, profile.areas.rpmb_bytes) = (128 << 10, 128 << 10);
    // 8 KiB are two programs.
    profile.nand.page_bytes = 4096;
    (profile.nand.pages_per_block, profile.nand.over_provisioning) = (16, 0.5);
    profile.registers.insert("WR_REL_PARAM".into(), 0x14);
    profile
}

/// A card with a key, selected, with RPMB as the accessed area.
struct Rig {
    card: Card,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        let card = Card::new(profile(), DeviceOptions { keep: StoredContent::Data, seed: 3 }).unwrap();
        let mut rig = Self { card, now: Instant::START + Nanos::from_secs(1) };
        rig.select();
        let mut key = [0; 512];
        key[196..228].copy_from_slice(&KEY);
        key[511] = PROGRAM_KEY;
        rig.send(&[key]).unwrap();
        rig.now = rig.now + Nanos::from_millis(50);
        assert_eq!(rig.card.rpmb_counter(), Some(0));
        rig
    }

    fn select(&mut self) {
        let access = (6, 0x0300_0000 | 179 << 16 | 3 << 8);
        for (index, argument) in [(0, 0), (1, 0x40ff_8080), (2, 0), (3, 0x1_0000), (7, 0x1_0000), access] {
            self.now = self.now + Nanos::from_millis(100);
            let reply = self.card.handle_command(index, argument, self.now);
            assert!(index == 0 || reply.response != Response::None, "CMD{index}");
        }
        self.now = self.now + Nanos::from_millis(100);
    }

    /// Sends frames by CMD23 and CMD25. `Ok`: when the card is not busy any more; `Err`: power was lost.
    fn send(&mut self, frames: &[[u8; 512]]) -> Result<Instant, ()> {
        for (index, argument) in [(23, 0x8000_0000 | frames.len() as u32), (25, 0)] {
            self.now = self.now + Nanos(1000);
            let reply = self.card.handle_command(index, argument, self.now);
            assert!(matches!(reply.response, Response::R1(_)), "CMD{index}: {:?}", reply.response);
        }
        let mut end = None;
        for frame in frames {
            self.now = self.now + Nanos(10_000);
            match self.card.handle_data(frame, self.now) {
                DataStatus::Accepted { busy_until } => end = busy_until,
                other => panic!("{other:?}"),
            }
        }
        let is_on = self.card.device().nand().off_since().is_none();
        end.filter(|_| is_on).ok_or(())
    }

    fn write(&mut self, counter: u32, byte: u8) -> Result<Instant, ()> {
        let mut frames = [[0; 512]; FRAMES];
        let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).unwrap();
        for frame in &mut frames {
            frame[228..484].fill(byte);
            frame[500..504].copy_from_slice(&counter.to_be_bytes());
            frame[506..508].copy_from_slice(&(FRAMES as u16).to_be_bytes());
            frame[511] = WRITE;
            mac.update(&frame[228..]);
        }
        frames[FRAMES - 1][196..228].copy_from_slice(&mac.finalize().into_bytes());
        self.send(&frames)
    }

    /// The counter, and the byte of which all data is.
    fn holds(&mut self) -> (u32, u8) {
        let mut data = [0; SECTORS * 512];
        let device = self.card.device_mut();
        self.now = device.read(Area::Rpmb, 0, SECTORS as u32, Some(&mut data), self.now).unwrap().done;
        assert!(data.iter().all(|&byte| byte == data[0]), "old and new data");
        (self.card.rpmb_counter().unwrap(), data[0])
    }

    /// Power is off and comes back, after `cuts` more cuts, each `step` steps of the flash after it has come.
    fn power_cycle(&mut self, cuts: u32, step: u64) {
        self.card.power_off(self.now);
        for seed in 0..cuts {
            self.now = self.now + Nanos::from_millis(10);
            let step = self.card.device().nand().steps() + step;
            self.card.device_mut().nand_mut().arm(FaultPlan { step, seed: seed.into() });
            if self.card.power_on(self.now).is_err() {
                let cut = self.card.device().nand().off_since().unwrap();
                self.now = self.now.max(cut);
            }
            self.card.power_off(self.now);
        }
        self.now = self.now + Nanos::from_millis(10);
        self.card.device_mut().nand_mut().disarm();
        self.now = self.card.power_on(self.now).unwrap();
        self.card.device().audit().unwrap();
        self.card.device_mut().nand_mut().decay();
    }
}

/// After a cut in the second write: both are of the first or of the second, and the card goes on.
fn check(rig: &mut Rig, what: &str) -> (u32, u8) {
    let held = rig.holds();
    assert!(held == (1, 1) || held == (2, 2), "{what}: counter {}, data of {}", held.0, held.1);
    rig.select();
    rig.now = rig.write(held.0, 9).unwrap() + Nanos::from_millis(1);
    assert_eq!(rig.holds(), (held.0 + 1, 9), "{what}");
    held
}

#[test]
fn counter_and_data_of_rpmb_agree_after_a_cut_at_every_step() {
    let (mut begun, mut seen) = (0, std::collections::BTreeSet::new());
    for cut in 1.. {
        let mut rig = Rig::new();
        rig.now = rig.write(0, 1).unwrap() + Nanos::from_millis(1);
        let step = rig.card.device().nand().steps() + cut;
        rig.card.device_mut().nand_mut().arm(FaultPlan { step, seed: cut });
        let written = rig.write(1, 2);
        if written.is_ok() {
            break;
        }
        begun = cut;
        rig.now = rig.now.max(rig.card.device().nand().off_since().unwrap());
        rig.power_cycle(cut as u32 % 3, 1 + cut / 3);
        seen.insert(check(&mut rig, &format!("cut at step {cut}")));
    }
    assert!(begun >= 2, "8 KiB are more than one program: {begun}");
    assert!(seen.contains(&(2, 2)), "{seen:?}");
}

#[test]
fn counter_and_data_of_rpmb_agree_after_a_cut_at_any_time() {
    let mut seen = std::collections::BTreeSet::new();
    for part in 0..=32u64 {
        let mut rig = Rig::new();
        rig.now = rig.write(0, 1).unwrap() + Nanos::from_millis(1);
        let end = rig.write(1, 2).unwrap();
        let begin = rig.now;
        // The last one comes when the card is not busy any more.
        rig.now = begin + Nanos(end.since(begin).0 * part / 32);
        rig.power_cycle((part % 3) as u32, 1 + part / 3);
        let held = check(&mut rig, &format!("cut after {part}/32 of the busy time"));
        assert!(part < 32 || held == (2, 2), "it was acknowledged");
        seen.insert(held);
    }
    assert!(seen.contains(&(2, 2)), "{seen:?}");
}
