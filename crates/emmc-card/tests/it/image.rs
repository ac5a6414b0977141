//! A card is restored from its image and the later records: contents, sequence, wear, registers, protection.

use std::sync::{Arc, Mutex};

use emmc_card::card::{Card, Part};
use emmc_card::device::{Area, DeviceOptions, WriteFlags};
use emmc_card::ftl::TrimKind;
use emmc_card::nand::{Payload, StoredContent};
use emmc_card::profile::{Profile, shipped};
use emmc_units::{Instant, Nanos, Rng};

/// Slots that outlive the card, like those of a file. They are never freed: tests are short.
#[derive(Clone, Debug, Default)]
struct Shared {
    slots: Arc<Mutex<Vec<&'static [u8]>>>,
}

impl Payload for Shared {
    fn put(&mut self, slot: u32, bytes: &[u8]) {
        let mut slots = self.slots.lock().unwrap();
        let slot = slot as usize;
        if slots.len() <= slot {
            slots.resize(slot + 1, &[]);
        }
        slots[slot] = Box::leak(Box::from(bytes));
    }

    fn get(&self, slot: u32) -> &[u8] {
        self.slots.lock().unwrap()[slot as usize]
    }

    fn release(&mut self, slot: u32) {
        self.slots.lock().unwrap()[slot as usize] = &[];
    }
}

/// A few megabytes of a shipped part: the same layers and policies, fewer and smaller blocks.
fn profile(name: &str) -> Profile {
    let mut profile = shipped::named(name).unwrap();
    let (nand, ftl, areas) = (&mut profile.nand, &mut profile.ftl, &mut profile.areas);
    let factor = ftl.unit_bytes.div_ceil(1024);
    (ftl.unit_bytes, nand.page_bytes) = (ftl.unit_bytes / factor, nand.page_bytes / factor);
    let lanes = nand.dies * nand.planes;
    nand.pages_per_block = lanes * nand.cell.bits() * if lanes > 2 { 4 } else { 8 };
    (nand.spare_blocks, nand.factory_bad_blocks, nand.over_provisioning, nand.blocks) = (8, 1, 1.2, None);
    areas.user_bytes = (12 * u64::from(nand.pages_per_block * nand.page_bytes)).next_multiple_of(1 << 20);
    (areas.erase_group_bytes, areas.wp_group_bytes, areas.enhanced_groups_max) = (512 << 10, 512 << 10, 0);
    (areas.boot_bytes, areas.rpmb_bytes) = (areas.boot_bytes.min(128 << 10), areas.rpmb_bytes.min(128 << 10));
    (ftl.gc_low_blocks, ftl.gc_high_blocks, ftl.wear.static_gap) = (3, 5, 5);
    if let Some(cache) = &mut ftl.slc_cache {
        (cache.blocks, cache.low_blocks, cache.bypass_bytes) = (6, 2, 8 << 10);
    }
    if let Some(cache) = &mut ftl.mapping_cache {
        (cache.pages, cache.units_per_page) = (4, 32);
    }
    if let Some(segment) = &mut ftl.segment {
        (segment.open_aus, segment.random_logs, segment.random_log_bytes) = (3, 2, 2 << 10);
    }
    profile.registers.clear();
    profile
}

/// A card, its image, its records and the host's knowledge of it.
struct Rig {
    profile: Profile,
    card: Card,
    image: Vec<u8>,
    records: Vec<Vec<u8>>,
    payload: Shared,
    now: Instant,
    /// The byte that each sector must be full of.
    expected: Vec<u8>,
}

impl Rig {
    fn new(name: &str) -> Self {
        let profile = profile(name);
        let card = Card::new(profile.clone(), DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
        let sectors = card.device().sectors(Area::User) as usize;
        let payload = Shared::default();
        let image = card.to_image(Instant::START);
        let (card, now) = Card::from_image(profile.clone(), &image, &[], Some(Box::new(payload.clone()))).unwrap();
        let mut rig = Self { profile, card, image, records: Vec::new(), payload, now, expected: vec![0; sectors] };
        rig.begin();
        rig
    }

    fn begin(&mut self) {
        self.now = self.card.power_on(self.now).unwrap();
        self.card.log_changes(self.now);
        self.image = self.card.to_image(self.now);
        self.records.clear();
    }

    fn take(&mut self) {
        let mut record = Vec::new();
        if self.card.take_changes(&mut record, true, self.now) {
            self.records.push(record);
        }
        self.card.changes_are_kept();
    }

    /// The process dies: unrecorded changes are lost.
    fn die(&mut self) {
        let records = changes(&self.records);
        let payload = Box::new(self.payload.clone());
        let (card, now) = Card::from_image(self.profile.clone(), &self.image, &records, Some(payload)).unwrap();
        assert_eq!(wear(&card), wear(&self.card));
        assert_eq!(data_ages(&card), data_ages(&self.card));
        (self.card, self.now) = (card, now);
        self.begin();
        self.card.device().audit().unwrap();
        self.check();
    }

    fn check(&mut self) {
        let mut bytes = vec![0; self.expected.len() * 512];
        let sectors = self.expected.len() as u32;
        self.card.device_mut().read(Area::User, 0, sectors, Some(&mut bytes), self.now).unwrap();
        for (lba, (sector, expected)) in bytes.chunks_exact(512).zip(&self.expected).enumerate() {
            assert!(sector.iter().all(|byte| byte == expected), "sector {lba}: {} for {expected}", sector[0]);
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        let count = 1 + rng.below(16) as usize;
        let lba = rng.below((self.expected.len() - count) as u64) as usize;
        self.card.device_mut().nand_mut().passed(self.now);
        let device = self.card.device_mut();
        let done = if rng.below(8) == 0 {
            self.expected[lba..lba + count].fill(0);
            device.trim(Area::User, lba as u64, count as u64, TrimKind::Trim, self.now).unwrap()
        } else {
            let byte = rng.below(256) as u8;
            self.expected[lba..lba + count].fill(byte);
            let flags = WriteFlags { reliable: true, force: true };
            let data = vec![byte; count * 512];
            device.write(Area::User, lba as u64, count as u32, flags, Some(&data), self.now).unwrap()
        };
        self.now = done.done;
        self.take();
    }
}

fn changes(records: &[Vec<u8>]) -> Vec<Part<'_>> {
    records.iter().map(|record| Part::Changes(record)).collect()
}

fn wear(card: &Card) -> Vec<u32> {
    card.device().nand().blocks().iter().map(|block| block.erase_count).collect()
}

/// When the data of each block that has some was programmed.
fn data_ages(card: &Card) -> Vec<(usize, Instant)> {
    let nand = card.device().nand();
    let blocks = nand.blocks().iter().enumerate().filter(|(_, block)| block.next_page > 0);
    blocks.map(|(number, _)| (number, nand.programmed_at(number as u32))).collect()
}

#[test]
fn recorded_state_is_restored() {
    for name in ["generic-8g", "sandisk-20au", "intenso-class4-4g", "apalis-imx8qm-16g", "generic-128g"] {
        let mut rng = Rng::new(7);
        let mut rig = Rig::new(name);
        for round in 0..12 {
            for _ in 0..400 {
                rig.step(&mut rng);
            }
            match round % 3 {
                0 => rig.die(),
                1 => {
                    // A power cut without operations in progress does no damage, and is recorded itself.
                    rig.card.power_off(rig.now);
                    rig.take();
                    rig.die();
                }
                _ => rig.check(),
            }
        }
    }
}

/// The state is taken in pieces while the card works, as a checkpoint beside requests does.
#[test]
fn an_outline_and_pieces_among_the_records_are_the_card() {
    for name in ["generic-8g", "sandisk-20au", "intenso-class4-4g", "apalis-imx8qm-16g", "generic-128g"] {
        let mut rng = Rng::new(8);
        let mut rig = Rig::new(name);
        (0..600).for_each(|_| rig.step(&mut rng));
        let outline = rig.card.to_outline(rig.now);
        rig.records.clear();
        let blocks = rig.card.blocks_to_store();
        let (mut pieces, mut next) = (Vec::new(), 0);
        while next < blocks {
            let end = blocks.min(next + 1 + rng.below(3) as u32);
            pieces.push((rig.records.len(), rig.card.blocks_to_piece(next..end)));
            next = end;
            (0..rng.below(40)).for_each(|_| rig.step(&mut rng));
        }
        (0..200).for_each(|_| rig.step(&mut rng));
        let mut sequence: Vec<Part<'_>> = Vec::new();
        let mut later = pieces.iter().peekable();
        for (at, record) in rig.records.iter().enumerate() {
            while let Some((_, piece)) = later.next_if(|(taken, _)| *taken <= at) {
                sequence.push(Part::Blocks(piece));
            }
            sequence.push(Part::Changes(record));
        }
        sequence.extend(later.map(|(_, piece)| Part::Blocks(piece)));
        let load = |parts: &[Part<'_>]| {
            Card::from_image(rig.profile.clone(), &outline, parts, Some(Box::new(rig.payload.clone())))
        };
        let without = sequence.iter().skip(1).copied().collect::<Vec<_>>();
        let error = load(&without).unwrap_err().to_string();
        assert!(error.contains("missing"), "{name}: {error}");
        let (card, now) = load(&sequence).unwrap();
        assert_eq!(wear(&card), wear(&rig.card), "{name}");
        assert_eq!(data_ages(&card), data_ages(&rig.card), "{name}");
        (rig.card, rig.now) = (card, now);
        rig.begin();
        rig.card.device().audit().unwrap();
        rig.check();
    }
}

/// Of a map of which only a part is in memory: after loading, reads cost what they cost after a power cycle.
#[test]
fn a_loaded_card_has_its_mapping_pages_in_flash() {
    let mut rng = Rng::new(5);
    let mut rig = Rig::new("odroid-128g");
    for _ in 0..3000 {
        rig.step(&mut rng);
    }
    rig.card.power_off(rig.now);
    rig.now = rig.card.power_on(rig.now).unwrap();
    rig.take();
    let reads: Vec<u64> = (0..200).map(|_| rng.below(rig.expected.len() as u64 / 8) * 8).collect();
    let cost = |card: &mut Card, mut now: Instant| {
        let (begun, misses) = (now, card.device().stats().map_misses);
        for &lba in &reads {
            now = card.device_mut().read(Area::User, lba, 8, Some(&mut [0; 4096]), now).unwrap().done;
        }
        (now.since(begun), card.device().stats().map_misses - misses)
    };
    let at = rig.now + Nanos::from_secs(60);
    let (cycled, misses) = cost(&mut rig.card, at);
    rig.die();
    // Its check has read everything: long after.
    let at = rig.now + Nanos::from_secs(60);
    let (loaded, misses_loaded) = cost(&mut rig.card, at);
    assert!(misses > 100, "{misses}");
    let ratio = |one: f64, other: f64| (0.97..1.03).contains(&(one / other));
    assert!(ratio(loaded.0 as f64, cycled.0 as f64), "{loaded:?} {cycled:?}");
    assert!(ratio(misses_loaded as f64, misses as f64), "{misses_loaded} {misses}");
}

#[test]
fn operations_undone_by_a_cut_are_recorded() {
    let mut rng = Rng::new(3);
    let mut rig = Rig::new("generic-8g");
    for _ in 0..40 {
        for _ in 0..30 {
            rig.step(&mut rng);
        }
        // In progress at the power loss, so old or new.
        let (lba, byte) = (8 * rng.below(100), rng.below(256) as u8);
        let flags = WriteFlags { reliable: true, force: true };
        let (device, now) = (rig.card.device_mut(), rig.now);
        let done = device.write(Area::User, lba, 8, flags, Some(&[byte; 4096]), now).unwrap().done;
        rig.take();
        rig.now = now + Nanos(rng.below(done.since(now).0));
        rig.card.power_off(rig.now);
        rig.take();
        // The surviving card and the one restored from its records must have the same.
        let records = changes(&rig.records);
        let payload = Box::new(rig.payload.clone());
        let (mut twin, at) = Card::from_image(rig.profile.clone(), &rig.image, &records, Some(payload)).unwrap();
        let mut of_twin = [0; 4096];
        let ready = twin.power_on(at).unwrap();
        twin.device_mut().read(Area::User, lba, 8, Some(&mut of_twin), ready).unwrap();
        let old = rig.expected[lba as usize];
        assert!(
            of_twin.chunks(512).zip(&rig.expected[lba as usize..]).all(|(sector, old)| sector[0] == *old)
                || of_twin == [byte; 4096],
            "neither {old} nor {byte}"
        );
        rig.now = rig.card.power_on(rig.now).unwrap();
        // An unstable page may be readable for one and not for the other: it is written again.
        rig.expected[lba as usize..][..8].fill(byte);
        let flags = WriteFlags { reliable: true, force: true };
        let now = rig.now;
        rig.now = rig.card.device_mut().write(Area::User, lba, 8, flags, Some(&[byte; 4096]), now).unwrap().done;
        rig.take();
        rig.check();
    }
}

#[test]
fn damaged_images_and_records_are_refused() {
    let mut rig = Rig::new("generic-8g");
    let mut rng = Rng::new(1);
    for _ in 0..50 {
        rig.step(&mut rng);
    }
    let load = |image: &[u8], records: &[&[u8]]| {
        let records: Vec<Part<'_>> = records.iter().copied().map(Part::Changes).collect();
        Card::from_image(rig.profile.clone(), image, &records, Some(Box::new(rig.payload.clone()))).map(|_| ())
    };
    assert!(load(&rig.image, &[&rig.records[0]]).is_ok());
    assert!(load(b"something else", &[]).unwrap_err().to_string().contains("emmclab card 2"));
    assert!(load(&rig.image[..rig.image.len() / 2], &[]).is_err());
    assert!(load(&rig.image, &[&rig.records[0][..11]]).is_err());
    let mut wrong = rig.records[0].clone();
    wrong[12] = 0x7f;
    assert!(load(&rig.image, &[&wrong]).is_err());
    let without = Card::from_image(rig.profile.clone(), &rig.image, &[], None).unwrap_err();
    assert!(without.to_string().contains("contents"), "{without}");
}
