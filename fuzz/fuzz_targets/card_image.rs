#![no_main]
//! Images of a card and records after them, of any content: a card or an error, never a panic, nor much memory.

use std::sync::OnceLock;

use emmc_card::card::{Card, Part};
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_units::Instant;
use libfuzzer_sys::fuzz_target;

/// A card of a few megabytes, and its image.
fn small() -> &'static (Profile, Vec<u8>) {
    static SMALL: OnceLock<(Profile, Vec<u8>)> = OnceLock::new();
    SMALL.get_or_init(|| {
        let mut profile = shipped::named("generic-8g").expect("it is shipped");
        profile.areas.user_bytes = 16 << 20;
        (profile.areas.wp_group_bytes, profile.areas.enhanced_groups_max) = (1 << 20, 2);
        (profile.areas.boot_bytes, profile.areas.rpmb_bytes) = (128 << 10, 128 << 10);
        (profile.nand.pages_per_block, profile.nand.over_provisioning) = (16, 0.5);
        let card = Card::new(profile.clone(), DeviceOptions { keep: StoredContent::Orders, seed: 1 }).expect("a card");
        let image = card.to_image(Instant::START);
        (profile, image)
    })
}

fuzz_target!(|data: &[u8]| {
    let (profile, image) = small();
    let Some((&choice, rest)) = data.split_first() else { return };
    let loaded = match choice % 5 {
        // An image with a valid magic.
        0 => Card::from_image(profile.clone(), &[b"emmclab card 2\n", rest].concat(), &[], None),
        // The right image with a few modified bytes.
        1 => {
            let mut image = image.clone();
            for change in rest.chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % image.len();
                image[at] = change[2];
            }
            Card::from_image(profile.clone(), &image, &[], None)
        }
        // The right image, then a random record.
        2 => Card::from_image(profile.clone(), image, &[Part::Changes(rest)], None),
        // The right image, then a piece.
        3 => Card::from_image(profile.clone(), image, &[Part::Blocks(rest)], None),
        // The right image, then a record with the right frame.
        _ => {
            let mut record = vec![0; 8];
            record.extend((rest.len() as u32).to_le_bytes());
            record.extend(rest);
            Card::from_image(profile.clone(), image, &[Part::Changes(&record)], None)
        }
    };
    if let Ok((card, now)) = loaded {
        // Accepted input can be serialised, and read again.
        let again = card.to_image(now);
        assert!(Card::from_image(profile.clone(), &again, &[], None).is_ok());
    }
});
