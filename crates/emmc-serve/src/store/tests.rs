//! A folder at every instant of a checkpoint: what was acknowledged is in it.

mod contents;
mod damage;

use std::collections::BTreeSet;

use emmc_card::device::{Area, DeviceOptions, WriteFlags};
use emmc_card::ftl::TrimKind;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_units::Rng;

use super::*;

const UNITS: usize = 2048;
const UNIT: usize = 4096;
/// Long enough that a checkpoint ends before the next one begins.
const JOURNAL_BYTES: u64 = 12_000;

/// A card of 64 MiB in a folder, and what its first 8 MiB hold: the byte that each unit is full of.
struct Rig {
    folder: tempfile::TempDir,
    store: Store,
    card: Card,
    now: Instant,
    expected: Vec<u8>,
    rng: Rng,
}

fn open(folder: &Path) -> (Store, Card, Instant) {
    let (mut store, mut card, off) = Store::open(folder, Purpose::Serve).unwrap();
    let now = card.power_on(off).unwrap();
    store.begin(&mut card, now).unwrap();
    store.journal_bytes_max = JOURNAL_BYTES;
    (store, card, now)
}

fn check(card: &mut Card, now: Instant, expected: &[u8], what: &str) {
    card.device().audit().unwrap();
    let mut bytes = vec![1; UNITS * UNIT];
    card.device_mut().read(Area::User, 0, (UNITS * UNIT / 512) as u32, Some(&mut bytes), now).unwrap();
    for (unit, (found, byte)) in bytes.chunks_exact(UNIT).zip(expected).enumerate() {
        assert!(found.iter().all(|found| found == byte), "{what}: unit {unit} holds {}, not {byte}", found[0]);
    }
}

/// The files of a folder under another name.
fn copy(folder: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    // First: it names the newest state so far.
    std::fs::copy(folder.join(LOCK_FILE), to.path().join(LOCK_FILE)).unwrap();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name() == LOCK_FILE {
            continue;
        }
        // The thread of a checkpoint may have renamed or removed it; a kill would find the same.
        let _ = std::fs::copy(entry.path(), to.path().join(entry.file_name()));
    }
    to
}

impl Rig {
    fn new(seed: u64) -> Self {
        let text = shipped::text("generic-8g").unwrap();
        let text = text
            .replace("user_bytes = 7818182656", "user_bytes = 67108864")
            .replace("pages_per_block = 256", "pages_per_block = 32")
            .replace("over_provisioning = 0.07", "over_provisioning = 0.3")
            .replace("enhanced_groups_max = 466", "enhanced_groups_max = 4");
        Self::of(&text, seed)
    }

    /// The same with a segment-mapped layer: whole segments are merged, and many units move with one write.
    fn segment_mapped(seed: u64) -> Self {
        let text = shipped::text("toshiba-7au").unwrap();
        let text = text
            .replace("user_bytes = 7784628224", "user_bytes = 67108864")
            .replace("group_bytes = 4194304", "group_bytes = 524288")
            .replace("pages_per_block = 128", "pages_per_block = 16")
            .replace("over_provisioning = 0.02", "over_provisioning = 0.3");
        Self::of(&text, seed)
    }

    fn of(text: &str, seed: u64) -> Self {
        let options = DeviceOptions { keep: StoredContent::Orders, seed: 1 };
        let card = Card::new(Profile::from_toml(text).unwrap(), options).unwrap();
        let folder = tempfile::tempdir().unwrap();
        Store::create(folder.path(), text, &card, Instant::START).unwrap();
        let (store, card, now) = open(folder.path());
        Self { folder, store, card, now, expected: vec![0; UNITS], rng: Rng::new(seed) }
    }

    /// A write or a trim, and its commit.
    fn step(&mut self) {
        let most = if self.rng.below(16) == 0 { 64 } else { 4 };
        let count = 1 + self.rng.below(most) as usize;
        let first = self.rng.below((UNITS - count) as u64) as usize;
        let (lba, sectors) = ((first * 8) as u64, (count * 8) as u32);
        self.card.device_mut().nand_mut().passed(self.now);
        let device = self.card.device_mut();
        let done = if self.rng.below(8) == 0 {
            self.expected[first..first + count].fill(0);
            device.trim(Area::User, lba, sectors.into(), TrimKind::Trim, self.now).unwrap();
            device.flush(self.now).unwrap()
        } else {
            let byte = 1 + self.rng.below(255) as u8;
            self.expected[first..first + count].fill(byte);
            let flags = WriteFlags { reliable: true, force: true };
            device.write(Area::User, lba, sectors, flags, Some(&vec![byte; count * UNIT]), self.now).unwrap()
        };
        self.now = done.done;
        self.store.commit(&mut self.card, false, self.now).unwrap();
    }

    /// What a server finds that is started on a copy of the folder, now and once more.
    fn check_folder(&self, what: &str) {
        self.check_copy(&copy(self.folder.path()), what);
    }

    fn check_copy(&self, copy: &tempfile::TempDir, what: &str) {
        let wear = |card: &Card| card.device().nand().blocks().iter().map(|it| it.erase_count).collect::<Vec<_>>();
        let (found, _) = Store::look(copy.path()).unwrap();
        assert!(wear(&found) == wear(&self.card), "{what}: other erase counts");
        for what in [what.to_string(), format!("{what}, second start")] {
            let (_store, mut card, now) = open(copy.path());
            check(&mut card, now, &self.expected, &what);
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn step_until(&mut self, is_there: impl Fn(&Self) -> bool) {
        for _ in 0..4000 {
            if is_there(self) {
                return;
            }
            self.step();
        }
        panic!("not reached: {:?}", self.store);
    }
}

#[test]
fn a_process_killed_after_any_commit_of_a_checkpoint_loses_nothing() {
    let mut rig = Rig::new(3);
    (0..200).for_each(|_| rig.step());
    let first = rig.store.header.generation;
    let mut seen = BTreeSet::new();
    let mut step = 0;
    while rig.store.header.generation < first + 2 || rig.store.tidies {
        rig.store.journal_bytes_max = JOURNAL_BYTES;
        rig.step();
        step += 1;
        let what = match &rig.store.checkpoint {
            Some(Checkpoint::Writing { .. }) => "writing",
            Some(Checkpoint::Placing(_)) => "placing",
            None if rig.store.next_journal.is_some() || rig.store.begins => "beginning",
            None if rig.store.tidies => "tidying",
            None => "none",
        };
        seen.insert(what);
        if what != "none" || step % 50 == 0 {
            rig.check_folder(&format!("step {step}, {what}"));
        }
    }
    assert_eq!(seen, BTreeSet::from(["beginning", "none", "placing", "tidying", "writing"]));
    let Rig { folder, store, mut card, now, expected, .. } = rig;
    store.finish(&mut card, now).unwrap();
    let files =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.collect();
    assert_eq!(files, BTreeSet::from(["card.data", "card.lock", "card.state", "profile.toml"].map(String::from)));
    let (_store, mut card, now) = open(folder.path());
    check(&mut card, now, &expected, "the end");
}

#[test]
fn a_process_killed_between_two_names_loses_nothing() {
    let mut rig = Rig::new(4);
    rig.step_until(|rig| rig.store.next_journal.is_some());
    rig.check_folder("the second journal is there, the first one goes on");
    rig.step_until(|rig| rig.store.begins);
    // Nothing was recorded since: the second journal is empty.
    let renamed = copy(rig.folder.path());
    let (journal, new) = (renamed.path().join(JOURNAL_FILE), renamed.path().join(NEW_JOURNAL_FILE));
    std::fs::rename(&journal, &new).unwrap();
    rig.check_copy(&copy(renamed.path()), "the second journal has no name yet");
    std::fs::rename(renamed.path().join(EARLIER_JOURNAL_FILE), &journal).unwrap();
    rig.check_copy(&renamed, "the first journal has its name still");
    rig.step_until(|rig| matches!(&rig.store.checkpoint, Some(Checkpoint::Writing { next, .. }) if *next > 40));
    let cut = copy(rig.folder.path());
    std::fs::write(cut.path().join(NEW_STATE_FILE), b"emmclab state 2\n and no more").unwrap();
    rig.check_copy(&cut, "a part of the state is written");
    let earlier = std::fs::read(rig.path(EARLIER_JOURNAL_FILE)).unwrap();
    rig.step_until(|rig| rig.store.checkpoint.is_none());
    assert!(!rig.path(EARLIER_JOURNAL_FILE).exists());
    let placed = copy(rig.folder.path());
    std::fs::write(placed.path().join(EARLIER_JOURNAL_FILE), earlier).unwrap();
    rig.check_copy(&placed, "the first journal is still there");
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_given_up_and_tried_again() {
    for obstacle in [NEW_STATE_FILE, EARLIER_JOURNAL_FILE] {
        let mut rig = Rig::new(5);
        let (first, path) = (rig.store.header.generation, rig.path(obstacle));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("in the way"), b"").unwrap();
        rig.step_until(|rig| rig.store.journal_bytes_max > JOURNAL_BYTES);
        for _ in 0..100 {
            rig.step();
        }
        assert!(rig.store.checkpoint.is_none() && rig.store.header.generation == first);
        std::fs::remove_dir_all(&path).unwrap();
        rig.check_folder("after a failure");
        rig.store.journal_bytes_max = 0;
        rig.step_until(|rig| rig.store.checkpoint.is_some());
        rig.check_folder("a second try begins");
        rig.store.journal_bytes_max = u64::MAX;
        rig.step_until(|rig| matches!(&rig.store.checkpoint, Some(Checkpoint::Writing { next, .. }) if *next > 40));
        rig.check_folder("in a second try");
        rig.step_until(|rig| rig.store.checkpoint.is_none());
        assert!(rig.store.header.generation > first);
        rig.check_folder("after a second try");
    }
}

#[test]
fn a_state_of_an_earlier_build_is_read() {
    let mut rig = Rig::new(7);
    (0..50).for_each(|_| rig.step());
    let image = rig.card.to_image(rig.now);
    let generation = rig.store.generation.to_le_bytes();
    let whole = [&b"emmclab state\n"[..], &generation, &journal::checksum(&image), &image].concat();
    let old = copy(rig.folder.path());
    for damage in [0, 13, 20, 25, whole.len() / 2] {
        std::fs::write(old.path().join(STATE_FILE), &whole[..damage]).unwrap();
        Store::look(old.path()).unwrap_err();
    }
    std::fs::write(old.path().join(STATE_FILE), whole).unwrap();
    std::fs::remove_file(old.path().join(JOURNAL_FILE)).unwrap();
    rig.check_copy(&old, "an image");
}

#[test]
fn an_idle_card_shortens_its_journal() {
    let mut rig = Rig::new(6);
    let first = rig.store.header.generation;
    (0..50).for_each(|_| rig.step());
    rig.store.rest(&mut rig.card, rig.now);
    assert!(rig.store.checkpoint.is_none(), "its journal is short");
    rig.store.journal_bytes_max = 0;
    rig.step();
    for _ in 0..100 {
        rig.store.rest(&mut rig.card, rig.now);
        std::thread::yield_now();
    }
    rig.step_until(|rig| rig.store.header.generation > first);
    rig.check_folder("after a rest");
}

#[test]
fn what_a_request_does_for_a_checkpoint_does_not_grow_with_the_card() {
    let mut rig = Rig::new(8);
    let empty = rig.card.to_outline(rig.now).len();
    (0..600).for_each(|_| rig.step());
    let full = rig.card.to_outline(rig.now).len();
    assert!(full < empty + 200, "the part that is written at once: {empty} bytes when empty, {full} when full");
    rig.step_until(|rig| rig.store.checkpoint.is_none());
    rig.store.journal_bytes_max = 0;
    rig.step_until(|rig| matches!(rig.store.checkpoint, Some(Checkpoint::Writing { .. })));
    rig.store.journal_bytes_max = u64::MAX;
    let per_block = rig.card.device().nand().geometry().units_per_block();
    let mut steps = 0;
    while let Some(Checkpoint::Writing { state, next }) = &rig.store.checkpoint {
        let (before, bytes) = (*next, state.size_bytes());
        rig.step();
        if let Some(Checkpoint::Writing { state, next }) = &rig.store.checkpoint {
            let (units, bytes) = ((next - before) * per_block, state.size_bytes() - bytes);
            assert!(units <= 1024 && bytes <= 16 << 10, "a step wrote {units} units as {bytes} bytes");
            steps += 1;
        }
    }
    assert!(steps >= rig.card.blocks_to_store() * per_block / 1024 - 1, "{steps} steps");
}
