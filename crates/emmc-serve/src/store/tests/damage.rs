//! Damaged, missing and older files: refused, and repaired.

use super::*;

/// The error of a folder whose files are changed.
fn refused(rig: &Rig, change: impl Fn(&Path)) -> String {
    let changed = copy(rig.folder.path());
    change(changed.path());
    let error = Store::open(changed.path(), Purpose::Serve).expect_err("it is refused").to_string();
    assert_eq!(Store::look(changed.path()).expect_err("it is refused").to_string(), error);
    error
}

#[test]
fn a_damaged_or_missing_journal_is_refused() {
    let mut rig = Rig::new(9);
    (0..60).for_each(|_| rig.step());
    let journal = std::fs::read(rig.path(JOURNAL_FILE)).unwrap();
    for at in [30, journal.len() / 2, journal.len() - 1] {
        let error = refused(&rig, |folder| {
            let mut wrong = journal.clone();
            wrong[at] ^= 0x10;
            std::fs::write(folder.join(JOURNAL_FILE), wrong).unwrap();
        });
        assert!(error.contains("a record with its checksum at byte") && error.contains("sim check"), "{error}");
    }
    let gone = |folder: &Path| std::fs::remove_file(folder.join(JOURNAL_FILE)).unwrap();
    assert!(refused(&rig, gone).contains("they are missing"));
    let of_another = |folder: &Path| {
        let mut wrong = journal.clone();
        wrong[16] ^= 1;
        std::fs::write(folder.join(JOURNAL_FILE), wrong).unwrap();
    };
    assert!(refused(&rig, of_another).contains("they are missing"));
    // What a kill leaves: a record that is cut off was not acknowledged.
    let cut = copy(rig.folder.path());
    std::fs::write(cut.path().join(JOURNAL_FILE), [&journal[..], &[9, 0, 0]].concat()).unwrap();
    rig.check_copy(&cut, "a cut record");
}

#[test]
fn an_older_state_is_refused() {
    let mut rig = Rig::new(10);
    (0..20).for_each(|_| rig.step());
    let old = copy(rig.folder.path());
    let Rig { folder, store, mut card, now, .. } = rig;
    store.finish(&mut card, now).unwrap();
    for file in [STATE_FILE, JOURNAL_FILE] {
        std::fs::copy(old.path().join(file), folder.path().join(file)).unwrap();
    }
    let error = Store::look(folder.path()).err().unwrap().to_string();
    assert!(error.contains("which was here before; found the older"), "{error}");
}

#[test]
fn no_flip_in_state_or_journal_is_taken_for_the_card() {
    let mut rig = Rig::new(11);
    rig.step_until(|rig| rig.store.begins);
    (0..5).for_each(|_| rig.step());
    let mut rng = Rng::new(12);
    for file in [STATE_FILE, JOURNAL_FILE, EARLIER_JOURNAL_FILE] {
        for _ in 0..60 {
            let bit = rng.next_u64();
            refused(&rig, |folder| {
                let mut bytes = std::fs::read(folder.join(file)).unwrap();
                let at = bit as usize % (8 * bytes.len());
                bytes[at / 8] ^= 1 << (at % 8);
                std::fs::write(folder.join(file), bytes).unwrap();
            });
        }
    }
}

#[test]
fn a_repaired_folder_is_a_card_again_and_loses_only_what_was_damaged() {
    let mut rig = Rig::new(13);
    (0..40).for_each(|_| rig.step());
    let whole = |folder: &Path| crate::store::check(folder).unwrap().iter().all(|found| !found.is_damage);
    assert!(whole(rig.folder.path()) && crate::store::repair(copy(rig.folder.path()).path()).unwrap().is_empty());
    // The last record is damaged: what it holds is lost, and only that.
    let before = rig.expected.clone();
    let length = std::fs::metadata(rig.path(JOURNAL_FILE)).unwrap().len() as usize;
    rig.step();
    let last = copy(rig.folder.path());
    let mut bytes = std::fs::read(last.path().join(JOURNAL_FILE)).unwrap();
    bytes[length + 20] ^= 1;
    std::fs::write(last.path().join(JOURNAL_FILE), bytes).unwrap();
    assert!(!whole(last.path()));
    let done = crate::store::repair(last.path()).unwrap();
    assert_eq!(done.len(), 1, "{done:?}");
    assert!(whole(last.path()) && last.path().join("card.journal.damaged").exists());
    let (store, mut card, now) = open(last.path());
    check(&mut card, now, &before, "repaired");
    store.finish(&mut card, now).unwrap();
    // A second repair does not overwrite what was set aside.
    std::fs::copy(rig.path(STATE_FILE), last.path().join(STATE_FILE)).unwrap();
    std::fs::write(last.path().join(LOCK_FILE), b"").unwrap();
    let mut bytes = std::fs::read(rig.path(JOURNAL_FILE)).unwrap();
    bytes[40] ^= 1;
    std::fs::write(last.path().join(JOURNAL_FILE), bytes).unwrap();
    crate::store::repair(last.path()).unwrap();
    assert!(last.path().join("card.journal.damaged.2").exists());
}

#[test]
fn a_repair_takes_a_state_without_its_records_and_an_older_one() {
    let mut rig = Rig::new(14);
    let before = rig.expected.clone();
    (0..40).for_each(|_| rig.step());
    let missing = copy(rig.folder.path());
    std::fs::remove_file(missing.path().join(JOURNAL_FILE)).unwrap();
    assert_eq!(crate::store::repair(missing.path()).unwrap().len(), 1);
    let (_store, mut card, now) = open(missing.path());
    check(&mut card, now, &before, "without records");
    let old = copy(rig.folder.path());
    std::fs::write(old.path().join(LOCK_FILE), format!("{:020}\n", u64::MAX)).unwrap();
    Store::look(old.path()).expect_err("it is older");
    assert_eq!(crate::store::repair(old.path()).unwrap().len(), 1);
    rig.check_copy(&old, "an older state");
}

/// A new state has its name, and the journal before is still there: nothing is to be done.
#[test]
fn a_whole_folder_is_not_repaired() {
    let mut rig = Rig::new(16);
    rig.step_until(|rig| rig.store.begins);
    let earlier = std::fs::read(rig.path(EARLIER_JOURNAL_FILE)).unwrap();
    rig.step_until(|rig| rig.store.checkpoint.is_some());
    rig.step_until(|rig| rig.store.checkpoint.is_none());
    (0..5).for_each(|_| rig.step());
    let placed = copy(rig.folder.path());
    std::fs::write(placed.path().join(EARLIER_JOURNAL_FILE), earlier).unwrap();
    assert!(crate::store::repair(placed.path()).unwrap().is_empty());
    rig.check_copy(&placed, "after a repair");
}

#[test]
fn an_earlier_journal_that_is_cut_is_refused_while_another_goes_on_from_it() {
    let mut rig = Rig::new(17);
    rig.step_until(|rig| rig.store.begins);
    let length = std::fs::metadata(rig.path(EARLIER_JOURNAL_FILE)).unwrap().len();
    let error = refused(&rig, |folder| {
        let file = File::options().write(true).open(folder.join(EARLIER_JOURNAL_FILE)).unwrap();
        file.set_len(length - 3).unwrap();
    });
    assert!(error.contains("goes on from there"), "{error}");
}

#[test]
fn a_damaged_journal_of_a_checkpoint_is_repaired() {
    let mut rig = Rig::new(15);
    rig.step_until(|rig| rig.store.begins);
    (0..5).for_each(|_| rig.step());
    for file in [JOURNAL_FILE, EARLIER_JOURNAL_FILE] {
        for at in [20, 60] {
            let damaged = copy(rig.folder.path());
            let mut bytes = std::fs::read(damaged.path().join(file)).unwrap();
            bytes[at] ^= 1;
            std::fs::write(damaged.path().join(file), bytes).unwrap();
            Store::look(damaged.path()).expect_err("it is damaged");
            let done = crate::store::repair(damaged.path()).unwrap();
            let (_store, mut card, now) = open(damaged.path());
            assert!(
                card.device_mut().read(Area::User, 0, 8, Some(&mut [0; 4096]), now).is_ok(),
                "{file} {at} {done:?}"
            );
            card.device().audit().unwrap();
        }
    }
}

#[test]
fn the_contents_of_another_card_or_another_time_are_refused() {
    let ended = |seed: u64, steps: usize| {
        let mut rig = Rig::new(seed);
        (0..20).for_each(|_| rig.step());
        let earlier = std::fs::read(rig.path(DATA_FILE)).unwrap();
        (20..steps).for_each(|_| rig.step());
        let Rig { folder, store, mut card, now, expected, .. } = rig;
        store.finish(&mut card, now).unwrap();
        (folder, earlier, expected)
    };
    let (folder, mut earlier, expected) = ended(21, 200);
    let (another, ..) = ended(22, 60);
    let again = |folder: &Path| {
        let (store, mut card, now) = open(folder);
        check(&mut card, now, &expected, "the same folder");
        store.finish(&mut card, now).unwrap();
    };
    again(folder.path());
    again(copy(folder.path()).path());
    let put = |data: &[u8]| {
        let wrong = copy(folder.path());
        std::fs::write(wrong.path().join(DATA_FILE), data).unwrap();
        let error = Store::look(wrong.path()).unwrap_err().to_string();
        assert!(error.contains("card.data: expected "), "{error}");
        wrong
    };
    let whole = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
    put(&std::fs::read(another.path().join(DATA_FILE)).unwrap());
    put(&vec![0; whole.len()]);
    // Of an earlier time: as long as needed, but for holes at the end.
    earlier.resize(whole.len().max(earlier.len()), 0);
    let wrong = put(&earlier);
    let done = crate::store::repair(wrong.path()).unwrap();
    assert!(done.len() == 1 && done[0].contains("taken as it is"), "{done:?}");
    assert!(crate::store::repair(wrong.path()).unwrap().is_empty());
    let damaged = crate::store::check(wrong.path()).unwrap();
    let damaged: Vec<&str> = damaged.iter().filter(|found| found.is_damage).map(|found| found.file).collect();
    assert_eq!(damaged, [DATA_FILE], "its units are errors of the card");
    assert!(!crate::store::repair_helps(wrong.path()));
}

/// Opening a pipe would wait for a writer.
#[test]
fn what_is_not_a_file_is_refused_at_once() {
    let rig = Rig::new(23);
    for file in [STATE_FILE, JOURNAL_FILE, DATA_FILE, PROFILE_FILE, LOCK_FILE] {
        let wrong = copy(rig.folder.path());
        let _ = std::fs::remove_file(wrong.path().join(file));
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, wrong.path().join(file), fifo, 0o600.into(), 0).unwrap();
        let refusals = [
            Store::open(wrong.path(), Purpose::Serve).err(),
            Store::look(wrong.path()).err(),
            crate::store::check(wrong.path()).err(),
            crate::store::repair(wrong.path()).err(),
        ];
        for refusal in refusals {
            let said = refusal.unwrap().to_string();
            assert!(said.contains(file) && said.contains("expected a regular file"), "{said}");
        }
    }
}
