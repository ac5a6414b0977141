//! The user's own arguments can contain any bytes too, pasted or from a script: no command prints them raw.

use std::collections::BTreeSet;

use crate::support::{Run, command, emmclab, names_in, run, scratch};
use emmc_units::is_unprintable;

/// What no output may contain raw; nothing of that name can be made.
const HOSTILE: &str = "/proc/none/\x1b]0;owned\x07\u{9b}31m\u{7f}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}";

/// A command: its words, and its options that take a value or may.
struct Verb {
    words: Vec<String>,
    options: BTreeSet<String>,
}

/// Every command, from its manual page.
fn verbs() -> Vec<Verb> {
    let folder = scratch("hostile_verbs");
    emmclab(["man", folder.to_str().unwrap()]).exits(0);
    let verb = |name: String| {
        let page = std::fs::read_to_string(folder.join(&name)).unwrap().replace("\\-", "-");
        let synopsis = page.split_once(".SH SYNOPSIS\n\\fBemmclab").unwrap_or_else(|| panic!("{name}: no synopsis")).1;
        let words = synopsis.split_once("\\fR").unwrap().0.split_whitespace().map(str::to_owned).collect();
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        let option = |text: &str| format!("--{}", text.split(is_end).next().unwrap_or_default());
        let mut options: BTreeSet<String> = page.split("\\fB--").skip(1).map(option).collect();
        ["--help", "--version", "--color"].iter().for_each(|name| {
            options.remove(*name);
        });
        Verb { words, options }
    };
    names_in(&folder).into_iter().map(verb).collect()
}

#[track_caller]
fn shows_every_character(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        let raw = text.chars().find(|&c| c != '\n' && is_unprintable(c));
        assert!(raw.is_none(), "{raw:?} of {:?}: {text:?}", run.args);
    }
}

#[test]
fn no_command_prints_an_argument_raw() {
    let folder = scratch("hostile_arguments");
    let verbs = verbs();
    let (mut runs, mut failures) = (0, 0);
    for verb in &verbs {
        let as_value = |option: &String| vec![format!("{option}={HOSTILE}")];
        let alone = [&[HOSTILE] as &[&str], &[HOSTILE, HOSTILE], &["--json", HOSTILE], &["--json", HOSTILE, HOSTILE]];
        let alone = alone.iter().map(|args| args.iter().map(|&arg| arg.to_owned()).collect());
        for args in verb.options.iter().map(as_value).chain(alone) {
            let mut hostile = command();
            hostile.current_dir(&folder).args(&verb.words).args(&args);
            let run = run(hostile);
            shows_every_character(&run);
            runs += 1;
            failures += usize::from(run.code != 0);
        }
    }
    assert!(verbs.len() > 25 && runs > 8 * verbs.len(), "{} commands, {runs} runs", verbs.len());
    assert!(failures * 10 > runs * 9, "only {failures} of {runs} were refused");
    assert_eq!(names_in(&folder), Vec::<String>::new(), "made of a hostile argument");
}
