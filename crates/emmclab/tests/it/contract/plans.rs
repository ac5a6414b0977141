//! The keys of plans and of what comes of them.

use super::{documents, words_of};
use crate::support::cards::s0j56;
use crate::support::{emmclab, save, scratch};

#[test]
fn a_plan_is_saved_as_it_is_printed() {
    let folder = scratch("saved_plan");
    let card = save(&folder, "s0j56.bin", s0j56());
    let file = folder.join("plan.json");
    let args = ["plan", "hwpart", &card, "--enh-user", "max", "--json", "-o", file.to_str().unwrap()];
    assert_eq!(emmclab(args).exits(0).stdout, std::fs::read_to_string(file).unwrap());
}

#[test]
fn plan_documents_keep_their_keys() {
    let dump = save(&scratch("plan_documents"), "s0j56.bin", s0j56());
    let lines = [
        "hwreset enable".to_owned(),
        "set 400=1".to_owned(),
        "wp --boot boot1 --as permanent".to_owned(),
        "cache on".to_owned(),
    ];
    let words = |line: &String| {
        let mut words = line.split(' ').map(str::to_owned);
        let verb = words.next().unwrap();
        ["plan".into(), verb, dump.clone()].into_iter().chain(words).collect()
    };
    let mut all: Vec<Vec<String>> = lines.iter().map(words).collect();
    if cfg!(feature = "sim") {
        all.extend(words_of(
            "plan wp sim:generic-8g --user 8MiB:8MiB --as temporary\nplan boot sim:generic-8g --from boot1",
        ));
    }
    documents("plan", &all);
}

#[cfg(all(feature = "bench", feature = "sim"))]
#[test]
fn apply_documents_keep_their_keys() {
    let folder = scratch("apply_documents");
    let path = |name: &str| folder.join(name).display().to_string();
    let (card, plan, refused) = (path("card"), path("plan.json"), path("wp.json"));
    emmclab(["sim", "create", &card, "--profile", "generic-8g"]).exits(0);
    let source = format!("sim:{card}");
    emmclab(["plan", "hwpart", &source, "--enh-user", "max", "-o", &plan]).exits(0);
    emmclab(["plan", "wp", &source, "--user", "8MiB:8MiB", "--as", "temporary", "-o", &refused]).exits(0);
    let all = [
        vec!["apply", "--verify", &plan, &card],
        vec!["apply", "--rehearse", &plan, &card],
        vec!["apply", &refused, &card],
        vec!["apply", "--verify", &refused, &card],
        vec!["apply", &plan, &card, "--permanent", "0x00000001"],
        vec!["apply", "--verify", &plan, &card],
    ];
    documents("apply", &all.map(|words| words.into_iter().map(str::to_owned).collect()));
}

#[cfg(all(feature = "clone", feature = "sim"))]
#[test]
fn clone_documents_keep_their_keys() {
    let folder = scratch("clone_documents");
    let path = |name: &str| folder.join(name).display().to_string();
    let (card, target, file, image) = (path("card"), path("target"), path("clone"), path("image"));
    emmclab(["sim", "create", &card, "--profile", "generic-8g"]).exits(0);
    std::fs::write(&image, vec![7; 1 << 20]).unwrap();
    let source = format!("sim:{card}");
    let clones = [vec!["clone", &source, "-o", &file], vec!["clone", &image, "-o", &file, "--force", "--verify"]];
    documents("clone", &clones.map(|words| words.into_iter().map(str::to_owned).collect()));
    let restores = [
        vec!["restore", &file, "--check"],
        vec!["restore", &file, &target],
        vec!["restore", &file, &target, "--verify"],
    ];
    documents("clone-restore", &restores.map(|words| words.into_iter().map(str::to_owned).collect()));
}
