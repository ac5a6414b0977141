//! Contents that are not what was stored: errors of the card, never data.

use super::*;

/// The byte that each unit is full of; `None`: reading it is an uncorrectable error.
fn units(card: &mut Card, now: Instant) -> Vec<Option<u8>> {
    let mut bytes = [0; UNIT];
    let read =
        (0..UNITS as u64).map(|unit| match card.device_mut().read(Area::User, unit * 8, 8, Some(&mut bytes), now) {
            Ok(_) => {
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "unit {unit} is mixed");
                Some(bytes[0])
            }
            Err(error) => {
                assert!(error.to_string().contains("cannot be corrected"), "unit {unit}: {error}");
                None
            }
        });
    read.collect()
}

/// What a start on a folder finds; `None`: it is refused.
fn found(folder: &Path) -> Option<Vec<Option<u8>>> {
    let (mut store, mut card, off) = Store::open(folder, Purpose::Serve).ok()?;
    let now = card.power_on(off).ok()?;
    store.begin(&mut card, now).unwrap();
    Some(units(&mut card, now))
}

/// Units that are read as what they were not.
fn wrong(found: &[Option<u8>], expected: &[u8]) -> usize {
    found.iter().zip(expected).filter(|(found, expected)| found.is_some_and(|found| found != **expected)).count()
}

fn flip(path: &Path, bit: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, bytes).unwrap();
}

/// Ends, and what is then in the folder.
fn ended(rig: Rig) -> (tempfile::TempDir, Vec<u8>) {
    let Rig { folder, store, mut card, now, expected, .. } = rig;
    store.finish(&mut card, now).unwrap();
    (folder, expected)
}

#[test]
fn a_flipped_bit_of_contents_is_an_error_of_its_unit_alone() {
    each_flip_is_an_error_of_its_unit(Rig::new(31), 1);
}

#[test]
fn a_flipped_bit_of_contents_is_an_error_of_its_unit_on_a_segment_mapped_card() {
    each_flip_is_an_error_of_its_unit(Rig::segment_mapped(35), 8);
}

/// `most`: 4 KiB in a unit of the map.
fn each_flip_is_an_error_of_its_unit(mut rig: Rig, most: usize) {
    (0..150).for_each(|_| rig.step());
    let killed = copy(rig.folder.path());
    let (folder, expected) = ended(rig);
    for (folder, what) in [(&killed, "killed"), (&folder, "ended")] {
        assert_eq!(wrong(&found(copy(folder.path()).path()).unwrap(), &expected), 0);
        let whole = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
        let used: Vec<usize> = (0..whole.len() / UNIT).filter(|slot| whole[slot * UNIT] != 0).collect();
        let mut hit = 0;
        for slot in used.into_iter().step_by(11) {
            let damaged = copy(folder.path());
            flip(&damaged.path().join(DATA_FILE), (slot * UNIT + 77) * 8 + 3);
            let found = found(damaged.path()).unwrap();
            assert_eq!(wrong(&found, &expected), 0, "{what}, slot {slot}");
            let errors = found.iter().filter(|unit| unit.is_none()).count();
            assert!(errors <= most, "{what}, slot {slot}: {errors} units");
            hit += usize::from(errors > 0);
            // The unit is an error as often as it is read, and after another start.
            let again = super::contents::found(damaged.path()).unwrap();
            assert_eq!(again.iter().filter(|unit| unit.is_none()).count(), errors, "{what}, slot {slot}");
        }
        assert!(hit > 5, "{what}: {hit} flips in contents that are in use");
    }
}

#[test]
fn a_damaged_card_takes_writes_and_what_is_written_again_is_whole() {
    let mut rig = Rig::new(32);
    (0..300).for_each(|_| rig.step());
    let (folder, expected) = ended(rig);
    let data = folder.path().join(DATA_FILE);
    let slots = std::fs::metadata(&data).unwrap().len() as usize / UNIT;
    (0..slots).step_by(40).for_each(|slot| flip(&data, slot * UNIT * 8));
    let (mut store, mut card, now) = open(folder.path());
    let before = units(&mut card, now);
    assert_eq!(wrong(&before, &expected), 0);
    let damaged = before.iter().filter(|unit| unit.is_none()).count();
    assert!(damaged > 8, "{damaged} units");
    // The whole card several times over, but for the damaged units: collection must not make data of them.
    let (mut now, mut expected) = (now, expected);
    for round in 1..40u8 {
        for unit in (0..UNITS).filter(|unit| before[*unit].is_some() && (unit * 7 + usize::from(round)) % 3 == 0) {
            expected[unit] = round;
            let flags = WriteFlags { reliable: true, force: true };
            let done = card.device_mut().write(Area::User, unit as u64 * 8, 8, flags, Some(&[round; UNIT]), now);
            now = done.unwrap_or_else(|error| panic!("round {round}, unit {unit}: {error}")).done;
        }
        store.commit(&mut card, false, now).unwrap();
    }
    let after = units(&mut card, now);
    assert_eq!(wrong(&after, &expected), 0);
    // What was moved is lost after another start, too.
    store.finish(&mut card, now).unwrap();
    assert_eq!(found(copy(folder.path()).path()).unwrap(), after);
    let (_store, mut card, mut now) = open(folder.path());
    for unit in (0..UNITS).filter(|unit| after[*unit].is_none()) {
        expected[unit] = 201;
        let done =
            card.device_mut().write(Area::User, unit as u64 * 8, 8, WriteFlags::default(), Some(&[201; UNIT]), now);
        now = done.unwrap().done;
    }
    assert_eq!(units(&mut card, now), expected.iter().map(|byte| Some(*byte)).collect::<Vec<_>>());
}

#[test]
fn records_that_are_missing_at_the_end_are_refused_and_the_rest_is_repaired() {
    let mut rig = Rig::new(33);
    (0..20).for_each(|_| rig.step());
    let (before, length) = (rig.expected.clone(), std::fs::metadata(rig.path(JOURNAL_FILE)).unwrap().len());
    let earlier = std::fs::read(rig.path(JOURNAL_FILE)).unwrap();
    (0..3).for_each(|_| rig.step());
    let shorter = |change: &dyn Fn(&Path)| {
        let cut = copy(rig.folder.path());
        change(cut.path());
        let error = Store::look(cut.path()).unwrap_err().to_string();
        assert!(error.contains("bytes of records, which were acknowledged, found"), "{error}");
        assert!(crate::store::repair_helps(cut.path()));
        let done = crate::store::repair(cut.path()).unwrap();
        assert!(done.len() == 1 && done[0].contains("missing at its end"), "{done:?}");
        let found = found(cut.path()).unwrap();
        assert_eq!(wrong(&found, &before), 0);
    };
    shorter(&|folder| {
        let file = File::options().write(true).open(folder.join(JOURNAL_FILE)).unwrap();
        file.set_len(length).unwrap();
    });
    // An older copy of the same journal.
    shorter(&|folder| std::fs::write(folder.join(JOURNAL_FILE), &earlier).unwrap());
}

#[test]
fn a_flip_in_the_lock_file_is_no_damage() {
    let mut rig = Rig::new(34);
    (0..30).for_each(|_| rig.step());
    let killed = copy(rig.folder.path());
    let (folder, expected) = ended(rig);
    for folder in [killed, folder] {
        let length = std::fs::metadata(folder.path().join(LOCK_FILE)).unwrap().len() as usize;
        for bit in (0..length * 8).step_by(5) {
            let flipped = copy(folder.path());
            flip(&flipped.path().join(LOCK_FILE), bit);
            assert_eq!(wrong(&found(flipped.path()).unwrap(), &expected), 0, "bit {bit}");
        }
    }
}

#[test]
fn another_profile_is_refused_and_taken_by_a_repair_if_it_makes_the_card() {
    let mut rig = Rig::new(35);
    (0..30).for_each(|_| rig.step());
    let (folder, expected) = ended(rig);
    let path = folder.path().join(PROFILE_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    let put = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let error = Store::look(folder.path()).unwrap_err().to_string();
        let checked = crate::store::check(folder.path()).unwrap();
        assert!(checked[0].is_damage && checked[0].file == PROFILE_FILE, "{checked:?}");
        error
    };
    let error = put(&text.replace("program_us", "programm_us"));
    assert!(error.contains(PROFILE_FILE) && !crate::store::repair_helps(folder.path()), "{error}");
    crate::store::repair(folder.path()).unwrap_err();
    let error = put(&text.replace("pages_per_block = 32", "pages_per_block = 64"));
    assert!(error.contains("CRC-32") && !crate::store::repair_helps(folder.path()), "{error}");
    crate::store::repair(folder.path()).unwrap_err();
    put(&format!("# A comment.\n{text}"));
    assert!(crate::store::repair_helps(folder.path()));
    assert_eq!(crate::store::repair(folder.path()).unwrap().len(), 1);
    assert_eq!(wrong(&found(folder.path()).unwrap(), &expected), 0);
}

#[test]
fn missing_contents_are_errors_of_the_card_after_a_repair() {
    let mut rig = Rig::new(36);
    (0..60).for_each(|_| rig.step());
    let (folder, expected) = ended(rig);
    let file = File::options().write(true).open(folder.path().join(DATA_FILE)).unwrap();
    file.set_len(50 * UNIT as u64).unwrap();
    assert!(found(folder.path()).is_none() && crate::store::repair_helps(folder.path()));
    let done = crate::store::repair(folder.path()).unwrap();
    assert!(done.len() == 2 && done[0].contains("missing bytes"), "{done:?}");
    let found = found(folder.path()).unwrap();
    assert_eq!(wrong(&found, &expected), 0);
    assert!(found.iter().any(Option::is_none));
}

fn begin_checkpoint(rig: &mut Rig) {
    while !rig.store.begins {
        rig.store.journal_bytes_max = JOURNAL_BYTES;
        rig.step();
    }
}

/// Files of a folder at several times, and of another card.
fn samples() -> Vec<tempfile::TempDir> {
    let mut samples = Vec::new();
    for seed in [41, 42] {
        let mut rig = Rig::new(seed);
        for _ in 0..3 {
            (0..25).for_each(|_| rig.step());
            samples.push(copy(rig.folder.path()));
        }
        begin_checkpoint(&mut rig);
        (0..5).for_each(|_| rig.step());
        samples.push(copy(rig.folder.path()));
        samples.push(ended(rig).0);
    }
    samples
}

#[test]
fn no_flip_truncation_or_swap_of_a_file_gives_wrong_data_in_silence() {
    let mut rng = Rng::new(43);
    let others = samples();
    let mut rig = Rig::new(41);
    (0..80).for_each(|_| rig.step());
    let early = (copy(rig.folder.path()), rig.expected.clone());
    begin_checkpoint(&mut rig);
    (0..8).for_each(|_| rig.step());
    let beside = (copy(rig.folder.path()), rig.expected.clone());
    let last = ended(rig);
    let (mut refused, mut errors, mut whole) = (0, 0, 0);
    for round in 0..300 {
        let (folder, expected) = [&early, &beside, &last][round % 3];
        let damaged = copy(folder.path());
        let files: Vec<PathBuf> = std::fs::read_dir(damaged.path()).unwrap().map(|file| file.unwrap().path()).collect();
        let path = &files[rng.below(files.len() as u64) as usize];
        // The contents are mostly holes.
        let length = std::fs::metadata(path).unwrap().len().clamp(1, 1 << 20);
        let other = others[rng.below(others.len() as u64) as usize].path().join(path.file_name().unwrap());
        let what = match rng.below(3) {
            0 => {
                let bit = rng.below(length * 8) as usize;
                if length > 1 {
                    flip(path, bit);
                }
                format!("bit {bit}")
            }
            1 => {
                let to = rng.below(length);
                File::options().write(true).open(path).unwrap().set_len(to).unwrap();
                format!("cut to {to}")
            }
            _ if other.exists() => {
                std::fs::copy(&other, path).unwrap();
                format!("of {}", other.display())
            }
            _ => {
                std::fs::remove_file(path).unwrap();
                "removed".into()
            }
        };
        match found(damaged.path()) {
            None => refused += 1,
            Some(found) => {
                let wrong = wrong(&found, expected);
                assert_eq!(wrong, 0, "round {round}: {} {what}: {wrong} units are others", path.display());
                let is_error = found.iter().any(Option::is_none);
                (errors, whole) = (errors + usize::from(is_error), whole + usize::from(!is_error));
            }
        }
    }
    println!("of 300 damaged folders {refused} were refused, {errors} had errors, {whole} nothing that matters");
    assert!(refused > 50 && errors > 5, "{refused} refused, {errors} with errors, {whole} whole");
}
