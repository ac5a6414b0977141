//! A small card with known figures, and questions to it.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_twin::what_if::{Answer, Change, Life, Question, Setup, WhatIf, WhatIfError, Written, life, what_if};
use emmc_units::{Instant, Size};
use emmc_workload::Unwatched;

pub(crate) const MIB: u64 = 1 << 20;

/// Mapping units of a block of [`small`] as built.
pub(crate) const UNITS: u32 = 128;
/// Rated erases of [`small`] as built, and with one bit a cell.
pub(crate) const RATED: u32 = 40;
pub(crate) const RATED_SLC: u32 = 400;

/// A 128 MiB MLC card of 512 KiB blocks with a quarter of over-provisioning, no spread between blocks and no
/// background collection.
pub(crate) fn small() -> Profile {
    let mut profile = shipped::named("generic-8g").expect("the profile is shipped");
    profile.name = "small".into();
    profile.areas.user_bytes = 128 * MIB;
    profile.areas.boot_bytes = 128 << 10;
    profile.areas.rpmb_bytes = 128 << 10;
    profile.areas.wp_group_bytes = 512 << 10;
    profile.areas.enhanced_groups_max = 128;
    profile.nand.pages_per_block = 32;
    profile.nand.over_provisioning = 0.25;
    profile.nand.spare_blocks = 8;
    profile.nand.factory_bad_blocks = 0;
    profile.nand.native.endurance = RATED;
    profile.nand.native.endurance_spread = 0.0;
    let slc = profile.nand.slc.as_mut().expect("it has one bit a cell");
    (slc.endurance, slc.endurance_spread) = (RATED_SLC, 0.0);
    profile.ftl.wear.static_gap = 0;
    profile.ftl.gc_high_blocks = 0;
    profile
}

/// The same with ten times the endurance, so that a trial does not wear it out, and with static wear levelling.
pub(crate) fn lasting() -> Profile {
    let mut profile = small();
    profile.nand.native.endurance = 10 * RATED;
    profile.nand.slc.as_mut().expect("it has one bit a cell").endurance = 10 * RATED_SLC;
    profile.ftl.wear.static_gap = 40;
    profile
}

/// All of the partition is overwritten, 64 MiB a day, without flushes.
pub(crate) fn rate(random_share: f64) -> Question {
    let written =
        Written::Rate { bytes_per_day: 64.0 * MIB as f64, random_share, block_bytes: 4096, data: Size::Percent(100) };
    let today = Setup { flush_s: None, ..Setup::default() };
    Question { written, today, seed: 1 }
}

/// The same on a part of the data.
pub(crate) fn rate_on(random_share: f64, data: Size) -> Question {
    let mut question = rate(random_share);
    if let Written::Rate { data: of, .. } = &mut question.written {
        *of = data;
    }
    question
}

fn card(profile: &Profile, seed: u64) -> Result<(Card, Instant), String> {
    let card = Card::new(profile.clone(), DeviceOptions { keep: StoredContent::Nothing, seed });
    Ok((card.map_err(|error| error.to_string())?, Instant::START))
}

pub(crate) fn ask(profile: &Profile, question: &Question, changes: &[&str]) -> Result<WhatIf, WhatIfError> {
    let changes: Vec<Change> = changes.iter().map(|text| Change::parse(text).expect("the change is known")).collect();
    what_if(&|| card(profile, 1), question, &changes, &mut Unwatched)
}

/// The answers, today's first.
pub(crate) fn answers(profile: &Profile, question: &Question, changes: &[&str]) -> Vec<Answer> {
    ask(profile, question, changes).expect("the card can do that").answers
}

/// A whole life of a specimen.
pub(crate) fn lived(profile: &Profile, question: &Question, seed: u64) -> Life {
    life(&|| card(profile, seed), question, &mut Unwatched).expect("the load fits")
}
