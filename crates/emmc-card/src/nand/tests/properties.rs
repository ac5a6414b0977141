use super::*;
use crate::nand::FaultPlan;
use emmc_units::Rng;

/// The flash as a list of programmed units with their places.
#[derive(Clone, Debug)]
struct Model {
    pages: Vec<Vec<([u32; 2], u8)>>,
    erases: u64,
}

/// What was issued to a block: a page, or an erase; and when it was to be done.
struct Pending {
    block: u32,
    page: Option<u32>,
    done: Instant,
}

/// Random operations against the model, with cuts. After each cut: completed pages read as programmed, except for pages
/// that share a word line with an interrupted one; readable pages are correct; wear never falls.
fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut config = config();
    config.native.endurance = 1_000_000;
    config.native.time_spread = 0.1;
    let mut nand = flash_of(&config, StoredContent::Data);
    let mut model = Model { pages: vec![Vec::new(); 12], erases: 0 };
    let (mut now, mut tag) = (Instant::START, 0u8);
    for _ in 0..30 {
        nand.arm(FaultPlan { step: nand.steps() + 1 + rng.below(60), seed: rng.next_u64() });
        let mut pending = Vec::new();
        loop {
            let block = rng.below(12) as u32;
            let wear = nand.block(block).erase_count;
            let page = nand.block(block).next_page;
            let erase = page == 32 || nand.store.as_ref().unwrap().unsound[block as usize] || rng.below(40) == 0;
            nand.passed(now);
            let (what, answer) = if erase {
                model.pages[block as usize].clear();
                model.erases += 1;
                (None, nand.erase(block, now))
            } else {
                tag = tag.wrapping_add(1);
                let units = [rng.below(1000) as u32, rng.below(1000) as u32];
                model.pages[block as usize].push((units, tag));
                (Some(page), nand.program(block, page, &units, Some(&[tag; 1000]), now))
            };
            assert!(nand.block(block).erase_count >= wear);
            let done = *answer.as_ref().unwrap_or(&Instant(u64::MAX));
            pending.push(Pending { block, page: what, done });
            match answer {
                Ok(done) if rng.below(3) == 0 => now = done,
                Ok(_) => {}
                Err(error) => break assert_eq!(error, NandError::PowerLost),
            }
        }
        let at = nand.off_since().unwrap();
        assert!(at >= now);
        check(&nand, &model, &pending, at);
        now = at;
        nand.power_on(now);
        resync(&mut nand, &mut model, now);
    }
    assert_eq!(nand.counters().violations, 0);
}

fn check(nand: &Nand, model: &Model, pending: &[Pending], at: Instant) {
    for block in 0..12 {
        let late: Vec<_> = pending.iter().filter(|other| other.block == block && other.done > at).collect();
        // Blocks with an erase in progress have their old content or none; `resync` reads them.
        if late.iter().any(|late| late.page.is_none()) {
            continue;
        }
        let risky = |page: u32| {
            let mut word_lines = late.iter().filter_map(|late| late.page);
            word_lines.any(|late| nand.geometry().word_line(CellMode::Mlc, late).any(|other| other == page))
        };
        for (page, (units, tag)) in (0..).zip(&model.pages[block as usize]) {
            let unit = nand.geometry().first_unit(block, page);
            match nand.unit_data(unit) {
                Some(bytes) => assert!(bytes[0] == *tag && nand.page_units(block, page) == units),
                None => assert!(risky(page), "block {block} page {page} was done and does not read"),
            }
        }
    }
}

/// The model takes the content of the flash; unstable content is dropped, damaged blocks are erased.
fn resync(nand: &mut Nand, model: &mut Model, now: Instant) {
    nand.decay();
    let survey = Survey::take(nand, &(0..12).collect::<Vec<_>>(), now).unwrap();
    for found in survey.blocks {
        if found.soundness == Soundness::Damaged {
            nand.erase(found.block, now).unwrap();
            model.pages[found.block as usize].clear();
            continue;
        }
        let read = |page| {
            let tag = nand.unit_data(nand.geometry().first_unit(found.block, page)).unwrap()[0];
            ([nand.page_units(found.block, page)[0], nand.page_units(found.block, page)[1]], tag)
        };
        model.pages[found.block as usize] = (0..nand.block(found.block).next_page).map(read).collect();
    }
}

#[test]
fn random_operations_and_cuts_keep_the_contract() {
    for seed in 0..40 {
        run(seed);
    }
}
