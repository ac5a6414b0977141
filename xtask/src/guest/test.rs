//! `cargo xtask guest test`: the guest scripts of the repository, each with the trials in its head.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::guest::machine::{Outcome, Show};
use crate::guest::rig::Rig;
use crate::guest::server::Emmclab;
use crate::guest::trial::Options;
use crate::guest::{agree, options, programs, rig, trial};
use crate::metadata;

/// Prefix of a trial's line in a script's head; its options follow.
const HEAD: &str = "# trial:";

/// Exit status of a script that cannot test anything; its last line says why.
const SKIPPED: u8 = 77;

/// After how many days a script whose trials take turns has its next one.
const DAYS: usize = 3;

/// A script in one of its trials.
pub(super) struct Test {
    name: String,
    pub(super) script: String,
    pub(super) options: Options,
    line: String,
}

enum Verdict {
    Good,
    Skipped(String),
    Bad(String),
}

/// Runs the named ones, or all; 0 if none fails. With the number of a day only those whose turn it is.
pub(crate) fn run(args: &[&str], day: Option<usize>) -> anyhow::Result<u8> {
    let (common, names) = options::parse(args).context("guest test")?;
    let mut tests = find(&metadata::workspace()?.root.join("xtask/guest"), &names)?;
    if let Some(day) = day {
        tests = of_day(tests, day);
    }
    let rig = rig::ready()?;
    let emmclab = Emmclab::build()?;
    let (mut good, mut skipped, mut bad) = (0, 0, 0);
    for mut test in tests {
        test.options.show = if common.show == Show::Console { Show::Console } else { Show::Nothing };
        let start = Instant::now();
        let verdict = judge(&rig, &emmclab, &test);
        let seconds = start.elapsed().as_secs_f64();
        let title = format!("guest test {} ({}) ... ", test.name, test.line);
        match verdict {
            Verdict::Good => {
                good += 1;
                println!("{title}ok ({seconds:.1} s)");
            }
            Verdict::Skipped(why) => {
                skipped += 1;
                println!("{title}SKIPPED: {why}");
            }
            Verdict::Bad(why) => {
                bad += 1;
                println!("{title}FAILED ({seconds:.1} s)\n{why}");
            }
        }
    }
    println!("guest tests: {good} passed, {bad} failed, {skipped} skipped");
    Ok(u8::from(bad > 0))
}

fn judge(rig: &Rig, emmclab: &Emmclab, test: &Test) -> Verdict {
    if let (true, Err(why)) = (test.options.uml || test.options.both, rig::uml_ready()) {
        return Verdict::Skipped(format!("{why:#}"));
    }
    if test.options.both {
        return agree::judge(rig, emmclab, test)
            .map_or_else(|error| Verdict::Bad(format!("{error:#}")), |()| Verdict::Good);
    }
    let result = programs::needed(&test.script).and_then(|programs| {
        trial::run(rig, Some(emmclab), &test.options, &test.script, &programs, &mut trial::Nobody)
    });
    match result {
        Ok(outcome) => match outcome.status {
            Some(0) if test.options.twice => again(rig, emmclab, test, &outcome),
            Some(0) => Verdict::Good,
            Some(SKIPPED) => Verdict::Skipped(outcome.output.lines().last().unwrap_or("it does not say why").into()),
            status => Verdict::Bad(format!("{}(exit status {status:?})", outcome.output)),
        },
        Err(error) => Verdict::Bad(format!("{error:#}")),
    }
}

/// Runs a test once more: what is printed and every register access with its instant must be the same.
fn again(rig: &Rig, emmclab: &Emmclab, test: &Test, first: &Outcome) -> Verdict {
    let result = programs::needed(&test.script).and_then(|programs| {
        trial::run(rig, Some(emmclab), &test.options, &test.script, &programs, &mut trial::Nobody)
    });
    match result {
        Ok(second) if second.output == first.output && second.digest == first.digest => Verdict::Good,
        Ok(second) => Verdict::Bad(format!(
            "two runs differ: {:?} and {:?}\n{}--- the second:\n{}",
            first.digest, second.digest, first.output, second.output
        )),
        Err(error) => Verdict::Bad(format!("the second run: {error:#}")),
    }
}

/// Without the trials that have their turn on another day: of three scripts with such trials one a day, of its trials
/// one at a time.
fn of_day(tests: Vec<Test>, day: usize) -> Vec<Test> {
    let mut in_turn: BTreeMap<String, usize> = BTreeMap::new();
    for test in tests.iter().filter(|test| test.options.in_turn) {
        *in_turn.entry(test.name.clone()).or_default() += 1;
    }
    // A script's number and its trials; each script comes every `DAYS` days.
    let scripts: HashMap<String, (usize, usize)> =
        in_turn.into_iter().enumerate().map(|(number, (name, trials))| (name, (number, trials))).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut is_due = |test: &Test| {
        let Some(&(number, trials)) = scripts.get(&test.name).filter(|_| test.options.in_turn) else { return true };
        let index = seen.entry(test.name.clone()).or_default();
        *index += 1;
        let turn = day + number;
        let due = turn % DAYS == 0 && (*index - 1) == (turn / DAYS) % trials;
        if !due {
            println!("guest test {} ({}) ... on another day", test.name, test.line);
        }
        due
    };
    tests.into_iter().filter(|test| is_due(test)).collect()
}

/// The trials of the scripts in `folder`, in order of name.
fn find(folder: &Path, names: &[String]) -> anyhow::Result<Vec<Test>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sh"))
        .collect();
    paths.sort();
    let mut tests = Vec::new();
    for path in &paths {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if names.is_empty() || names.contains(&name) {
            let script = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            tests.append(&mut trials(folder, &name, &script)?);
        }
    }
    for name in names {
        ensure!(tests.iter().any(|test| test.name == *name), "no guest script {name:?} in {}", folder.display());
    }
    Ok(tests)
}

fn trials(folder: &Path, name: &str, script: &str) -> anyhow::Result<Vec<Test>> {
    let mut tests = Vec::new();
    for line in script.lines().filter_map(|line| line.strip_prefix(HEAD)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (mut options, rest) = options::parse(&words).with_context(|| format!("{name}: {HEAD}{line}"))?;
        ensure!(rest.is_empty(), "{name}: {HEAD}{line}: what is {rest:?}?");
        // A profile, or a job, beside the scripts.
        if folder.join(&options.profile).is_file() {
            options.profile = folder.join(&options.profile).to_string_lossy().into_owned();
        }
        options.age = options.age.map(|job| if folder.join(&job).is_file() { folder.join(&job) } else { job });
        tests.push(Test { name: name.into(), script: with_says(script), options, line: words.join(" ") });
    }
    if tests.is_empty() {
        bail!("{name}: no line {HEAD} asks for a trial");
    }
    Ok(tests)
}

/// A script that runs emmclab in the guest has the functions for that in place of this line.
pub(super) fn with_says(script: &str) -> String {
    script.replacen(". /guest/says.sh\n", include_str!("says.sh"), 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_trial_in_turn_has_its_day() {
        let script =
            "# trial: --controller cqe --in-turn\n# trial: --controller hs200\n# trial: --controller no-cqe --in-turn";
        let of = |name, day| -> Vec<String> {
            let tests = trials(Path::new("/"), name, script).unwrap();
            of_day(tests, day).into_iter().map(|test| test.line.replace("--controller ", "")).collect()
        };
        assert_eq!(of("a", 6), ["cqe --in-turn", "hs200"]);
        assert_eq!(of("a", 7), ["hs200"]);
        assert_eq!(of("a", 9), ["hs200", "no-cqe --in-turn"]);
    }

    /// Within eighteen days each trial of the repository runs.
    #[test]
    fn no_trial_is_forgotten() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest");
        let lines = |tests: Vec<Test>| tests.into_iter().map(|test| (test.name, test.line)).collect::<BTreeSet<_>>();
        let all = lines(find(&folder, &[]).unwrap());
        let most = find(&folder, &[]).unwrap().iter().filter(|test| test.name == "trace").count();
        let days: BTreeSet<_> =
            (300..300 + DAYS * most).flat_map(|day| lines(of_day(find(&folder, &[]).unwrap(), day))).collect();
        assert_eq!(all, days);
    }

    #[test]
    fn every_script_requests_existing_trials() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest");
        let tests = find(&folder, &[]).unwrap();
        assert!(tests.iter().any(|test| test.name == "probe"), "no probe.sh among {} trials", tests.len());
        for test in &tests {
            let profile = Path::new(&test.options.profile);
            assert!(profile.is_file() || !test.options.profile.contains('.'), "{}: {}", test.name, test.line);
        }
        assert!(find(&folder, &["no-such-script".into()]).is_err());
        assert!(trials(&folder, "x", "echo\n").is_err());
        assert!(trials(&folder, "x", "# trial: --other\n").is_err());
    }
}
