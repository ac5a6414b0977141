//! Parts ranked for a load.

use emmc_twin::what_if::{Needs, ranking, rate};
use emmc_units::{Bytes, Size};
use emmc_workload::Unwatched;

use crate::card::{MIB, lasting, rate_on};

#[test]
fn parts_are_ranked_by_life_and_those_that_do_not_fit_say_why() {
    let question = rate_on(0.0, Size::Exact(Bytes(32 * MIB)));
    let named = |name: &str, change: &dyn Fn(&mut emmc_card::profile::Profile)| {
        let mut profile = lasting();
        profile.name = name.into();
        change(&mut profile);
        profile
    };
    let parts = [
        named("weak", &|part| part.nand.native.endurance = 50),
        named("plain", &|_| ()),
        named("large", &|part| part.areas.user_bytes *= 2),
        named("tiny", &|part| {
            part.areas.user_bytes /= 8;
            part.areas.enhanced_groups_max = 0;
        }),
    ];
    let rated = parts.iter().map(|part| rate(part, &question, (1, 1), &mut Unwatched).expect("nobody stops it"));
    let rated: Vec<_> = rated.collect();
    let facts = rated[0].as_ref().expect("it fits").0.clone();
    let found = ranking(facts, rated, &Needs { years: 0.6, stall_ms: None });
    let names: Vec<&str> = found.fitting.iter().map(|answer| answer.profile.as_str()).collect();
    assert_eq!(names, ["large", "plain"]);
    let why: Vec<(&str, bool)> =
        found.unfit.iter().map(|part| (part.profile.as_str(), part.answer.is_some())).collect();
    assert_eq!(why, [("weak", true), ("tiny", false)]);
    assert!(found.unfit[1].why.contains("do not fit") && found.unfit[0].why.contains("it lives"), "{:?}", found.unfit);
}
