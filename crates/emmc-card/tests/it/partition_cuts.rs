//! A power cut during a committed partitioning: the card repeats and completes it at the next power-up.

use emmc_card::card::Card;
use emmc_card::device::{Area, DeviceOptions};
use emmc_card::nand::FaultPlan;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_regs::command::Response;
use emmc_units::{Instant, Nanos};

fn profile() -> Profile {
    let mut profile = shipped::named("generic-8g").unwrap();
    profile.areas.user_bytes = 32 << 20;
    (profile.areas.wp_group_bytes, profile.areas.enhanced_groups_max) = (1 << 20, 8);
    (profile.areas.boot_bytes, profile.areas.rpmb_bytes) = (128 << 10, 128 << 10);
    (profile.nand.pages_per_block, profile.nand.over_provisioning) = (16, 0.5);
    profile
}

fn identify(card: &mut Card, mut now: Instant) -> Instant {
    for (index, argument) in [(0, 0), (1, 0x40ff_8080), (2, 0), (3, 0x1_0000), (7, 0x1_0000)] {
        now = now + Nanos::from_millis(100);
        let reply = card.handle_command(index, argument, now);
        assert!(index == 0 || reply.response != Response::None, "CMD{index}");
    }
    now
}

/// A card with data everywhere and two enhanced groups committed, without power.
fn committed() -> (Card, Instant) {
    let mut card = Card::new(profile(), DeviceOptions { keep: StoredContent::Data, seed: 3 }).unwrap();
    let mut now = identify(&mut card, Instant::START + Nanos::from_secs(1));
    let sectors = card.device().sectors(Area::User);
    let block = [0xd7; 512 * 256];
    for lba in (0..sectors).step_by(256) {
        let device = card.device_mut();
        now = device.write(Area::User, lba, 256, Default::default(), Some(&block), now).unwrap().done;
    }
    for (index, value) in [(175u32, 1u32), (140, 2), (156, 1), (155, 1)] {
        card.handle_command(6, 0x0300_0000 | index << 16 | value << 8, now);
        now = now + Nanos::from_millis(50);
    }
    card.power_off(now);
    (card, now + Nanos::from_millis(50))
}

#[test]
fn partitioning_survives_a_cut_at_every_step() {
    let (mut card, now) = committed();
    let before = card.device().nand().steps();
    card.power_on(now).unwrap();
    let steps = card.device().nand().steps() - before;
    assert!(steps > 100, "the whole flash is erased: {steps}");
    for cut in 1..=steps {
        let (mut card, mut now) = committed();
        let step = card.device().nand().steps() + cut;
        card.device_mut().nand_mut().arm(FaultPlan { step, seed: cut });
        assert!(card.power_on(now).is_err(), "cut {cut} of {steps}");
        assert_eq!(card.handle_command(0, 0, now).response, Response::None);
        card.power_off(now);
        now = now + Nanos::from_millis(50);
        now = card.power_on(now).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        card.device().audit().unwrap_or_else(|fault| panic!("cut {cut}: {fault}"));
        now = identify(&mut card, now);
        let sectors = card.device().sectors(Area::User);
        assert!(sectors < 65536, "the user area has shrunk");
        assert_eq!(card.registers().ext_csd[212..216], (sectors as u32).to_le_bytes());
        for lba in (0..sectors).step_by(251) {
            let mut sector = [1; 512];
            now = card.device_mut().read(Area::User, lba, 1, Some(&mut sector), now).unwrap().done;
            assert_eq!(sector, [0; 512], "cut {cut}: sector {lba} has data");
        }
    }
}
