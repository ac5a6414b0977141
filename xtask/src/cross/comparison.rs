//! What the same program gave on two processors: every output equal, and no output that proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use anyhow::ensure;

/// One run of the program.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The command without its source: the group that the run is counted in.
    pub(super) command: String,
    /// All arguments.
    pub(super) args: Vec<OsString>,
}

/// What a run gave: exit code (none after a signal), standard output, standard error.
pub(super) type Outcome = (Option<i32>, Vec<u8>, Vec<u8>);

/// Number of runs of each command with each exit code.
pub(super) type Counts = BTreeMap<(String, i32), usize>;

/// The exit codes that emmclab documents. Others are those of a panic (101) or of a shell.
const CODES: std::ops::RangeInclusive<i32> = 0..=4;

/// Compares every case; `own` is this machine's.
///
/// Errors: an output differs; or the equality proves nothing, because a run is missing, a program crashed, or a command
/// has no run that answers.
pub(super) fn compare(target: &str, cases: &[Case], own: &[Outcome], found: &[Outcome]) -> anyhow::Result<Counts> {
    ensure!(!cases.is_empty(), "{target}: nothing to compare");
    for (whose, outcomes) in [("this machine", own), (target, found)] {
        let number = outcomes.len();
        ensure!(number == cases.len(), "{whose} ran {number} of {} cases", cases.len());
    }
    let mut different = 0;
    for ((case, own), found) in cases.iter().zip(own).zip(found) {
        if own != found {
            different += 1;
            eprintln!("{target}: {}: {}", line(case), difference(own, found));
        }
    }
    ensure!(different == 0, "{target}: {different} of {} outputs are not this machine's", cases.len());
    let expected = counts(cases, own)?;
    ensure!(counts(cases, found)? == expected, "{target}: other numbers of exit codes than this machine's");
    let commands: BTreeSet<&str> = cases.iter().map(|case| case.command.as_str()).collect();
    for command in commands {
        let has_answer = |(case, (code, stdout, _)): (&Case, &Outcome)| {
            case.command == command && *code == Some(0) && !stdout.is_empty()
        };
        ensure!(cases.iter().zip(own).any(has_answer), "emmclab {command}: no case gives an answer with exit code 0");
    }
    Ok(expected)
}

/// Counts the runs by command and exit code.
///
/// Errors: a run that ended in another way than emmclab documents, or that says nothing.
fn counts(cases: &[Case], outcomes: &[Outcome]) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    for (case, (code, stdout, stderr)) in cases.iter().zip(outcomes) {
        let documented = code.filter(|code| CODES.contains(code));
        let Some(code) = documented else {
            anyhow::bail!("{}: ended with {code:?}: {}", line(case), String::from_utf8_lossy(stderr).trim());
        };
        ensure!(!(stdout.is_empty() && stderr.is_empty()), "{}: exit code {code} without a word", line(case));
        *counts.entry((case.command.clone(), code)).or_default() += 1;
    }
    Ok(counts)
}

/// The counts in words, one line a command.
pub(super) fn table(counts: &Counts) -> Vec<String> {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((command, code), number) in counts {
        lines.entry(command).or_default().push(format!("{number} x {code}"));
    }
    lines.iter().map(|(command, numbers)| format!("{command}: exit codes {}", numbers.join(", "))).collect()
}

fn line(case: &Case) -> String {
    let words = case.args.iter().map(|word| word.to_string_lossy());
    format!("emmclab {}", words.collect::<Vec<_>>().join(" "))
}

/// The first line in which two outcomes differ.
fn difference(own: &Outcome, found: &Outcome) -> String {
    if own.0 != found.0 {
        let errors = String::from_utf8_lossy(&found.2);
        return format!("exit code {:?}, here {:?}: {}", found.0, own.0, errors.trim());
    }
    for (own, found) in [(&own.1, &found.1), (&own.2, &found.2)] {
        let (own, found) = (String::from_utf8_lossy(own), String::from_utf8_lossy(found));
        let missing = "<end>";
        let pairs = own.lines().chain([missing]).zip(found.lines().chain([missing]));
        if let Some((own, found)) = pairs.into_iter().find(|(own, found)| own != found) {
            return format!("{found:?}, here {own:?}");
        }
    }
    "line ends".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(code: i32, stdout: &str, stderr: &str) -> Outcome {
        (Some(code), stdout.into(), stderr.into())
    }

    /// Two commands with two cases each: an answer and a refusal.
    fn sample() -> (Vec<Case>, Vec<Outcome>) {
        let case =
            |command: &str, file: &str| Case { command: command.into(), args: vec![command.into(), file.into()] };
        let cases = vec![case("show", "a"), case("show", "b"), case("check", "a"), case("check", "b")];
        let refused = outcome(2, "", "emmclab: b\n");
        (cases, vec![outcome(0, "a\nb\n", ""), refused, outcome(0, "OK\n", ""), outcome(3, "UNKNOWN\n", "")])
    }

    fn error(found: &[Outcome]) -> String {
        let (cases, own) = sample();
        compare("riscv64", &cases, &own, found).unwrap_err().to_string()
    }

    #[test]
    fn equal_outputs_are_counted_by_command_and_exit_code() {
        let (cases, own) = sample();
        let counts = compare("riscv64", &cases, &own, &own).unwrap();
        assert_eq!(table(&counts), ["check: exit codes 1 x 0, 1 x 3", "show: exit codes 1 x 0, 1 x 2"]);
    }

    #[test]
    fn each_planted_difference_fails() {
        let (_, own) = sample();
        let planted = [outcome(0, "a\nB\n", ""), outcome(0, "a\nb\n", "x"), outcome(1, "a\nb\n", "")];
        for (at, _) in own.iter().enumerate() {
            for other in planted.iter().chain([&(None, own[at].1.clone(), own[at].2.clone())]) {
                let mut found = own.clone();
                found[at] = other.clone();
                assert_eq!(error(&found), "riscv64: 1 of 4 outputs are not this machine's");
            }
        }
        assert_eq!(difference(&own[0], &planted[0]), "\"B\", here \"b\"");
        assert!(difference(&own[0], &planted[2]).starts_with("exit code Some(1), here Some(0)"));
    }

    #[test]
    fn a_case_that_was_not_run_fails() {
        let (cases, own) = sample();
        assert_eq!(error(&own[..3]), "riscv64 ran 3 of 4 cases");
        assert!(compare("riscv64", &cases, &own[..3], &own[..3]).is_err());
        assert!(compare("riscv64", &[], &[], &[]).is_err());
    }

    #[test]
    fn programs_that_fail_alike_prove_nothing() {
        let (cases, own) = sample();
        let alike = |at: usize, other: Outcome| {
            let mut all = own.clone();
            all[at] = other;
            compare("riscv64", &cases, &all, &all).unwrap_err().to_string()
        };
        assert_eq!(alike(0, outcome(2, "", "no")), "emmclab show: no case gives an answer with exit code 0");
        assert_eq!(alike(2, outcome(0, "", "no")), "emmclab check: no case gives an answer with exit code 0");
        assert_eq!(alike(1, outcome(101, "", "panicked")), "emmclab show b: ended with Some(101): panicked");
        assert_eq!(alike(3, (None, b"x".to_vec(), Vec::new())), "emmclab check b: ended with None: ");
        assert_eq!(alike(1, outcome(2, "", "")), "emmclab show b: exit code 2 without a word");
    }
}
