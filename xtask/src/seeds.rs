//! Work on cards by their seeds, two at a time, and the options of its commands.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail, ensure};

/// Options with a number each.
///
/// Errors: another option, one without a number, or one twice.
pub(crate) fn options<'a>(command: &str, args: &[&'a str], known: &[&str]) -> anyhow::Result<BTreeMap<&'a str, u64>> {
    let mut options = BTreeMap::new();
    for pair in args.chunks(2) {
        let [name, value] = *pair else { bail!("{command}: unfinished option {}", pair[0]) };
        ensure!(known.contains(&name), "{command}: unknown option {name}; expected {}", known.join(", "));
        let value: u64 = value.parse().with_context(|| format!("{name} {value}: not a number"))?;
        ensure!(options.insert(name, value).is_none(), "{name} is given twice");
    }
    Ok(options)
}

/// What `work` gives for each seed, in their order.
///
/// Errors: the first one of the work, with the card that it is about.
pub(crate) fn each<T: Send>(
    seeds: Range<u64>,
    work: impl Fn(u64) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let (next, done) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let failed = || anyhow::anyhow!("a card failed");
    let run = || -> anyhow::Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return Ok(());
            }
            let result = work(seed).with_context(|| format!("card {seed}"))?;
            done.lock().map_err(|_| failed())?.push((seed, result));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| failed())?)
    })?;
    let mut all = done.into_inner().map_err(|_| failed())?;
    all.sort_by_key(|(seed, _)| *seed);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_seeds_and_errors_name_the_card() {
        assert_eq!(each(3..9, |seed| Ok(seed * 2)).unwrap(), [6, 8, 10, 12, 14, 16]);
        let error = each(0..4, |seed| if seed == 2 { bail!("no") } else { Ok(()) }).unwrap_err();
        assert_eq!(format!("{error:#}"), "card 2: no");
    }

    #[test]
    fn options_are_known_whole_and_given_once() {
        let known = ["--cards", "--seed"];
        assert_eq!(options("c", &["--seed", "7"], &known).unwrap()["--seed"], 7);
        for args in [&["--seed"][..], &["--seed", "x"], &["--sed", "7"], &["--seed", "7", "--seed", "8"]] {
            assert!(options("c", args, &known).is_err(), "{args:?}");
        }
    }
}
