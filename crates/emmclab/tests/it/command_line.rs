//! The edges of the command line: usage errors, closed outputs, locales, sizes.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::{command, emmclab, run, save, scratch, testdata};

const KLM: &str = "ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex";

#[test]
fn a_usage_error_is_one_line_and_at_most_one_hint() {
    let klm = testdata(KLM);
    for (args, error, hint) in [
        (vec!["health"], "the following required arguments were not provided: <SOURCE>", "see `emmclab health --help`"),
        (vec!["study", "--fulll"], "unexpected argument '--fulll' found", "'--full'; see `emmclab study --help`"),
        (
            vec!["plan", "hwpart", &klm, "--gp", "1"],
            "invalid value '1' for '--gp <N:SIZE[:enh]>'",
            "see `emmclab plan hwpart --help`",
        ),
        (vec!["bogus"], "unrecognized subcommand 'bogus'", "see `emmclab --help`"),
        (vec!["diff", &klm], "not provided: <B>", "see `emmclab diff --help`"),
    ] {
        let run = emmclab(&args).exits(2);
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert!(lines.len() == 2 && lines[0].starts_with("emmclab: ") && lines[0].contains(error), "{run:?}");
        assert!(lines[1].starts_with("  ") && lines[1].contains(hint), "{run:?}");
    }
}

#[test]
fn a_usage_error_of_check_is_said_once() {
    for args in [&["check"] as &[&str], &["check", "--bogus"], &["check", "--all", "x"]] {
        let run = emmclab(args).exits(3);
        assert!(run.stderr.is_empty() && run.stdout.lines().count() == 1, "{run:?}");
    }
}

#[test]
fn json_of_check_is_printed_even_where_all_is_well() {
    let good = testdata(KLM);
    let document = emmclab(["check", "--quiet", "--json", &good]).exits(0).json();
    assert_eq!((&document["status"], &document["source"]), (&"ok".into(), &good.into()));
}

#[test]
fn check_of_all_cards_names_the_tree_that_it_read() {
    let document = emmclab(["check", "--all", "--json", "--sysroot", "/nonexistent"]).exits(3).json();
    assert_eq!(document["source"], "/nonexistent");
    let board = testdata("sysfs/board");
    let document = emmclab(["check", "--all", "--json", "--sysroot", &board]).exits(3).json();
    assert_eq!(document["source"], board.as_str());
}

/// A closed standard output is an error; a reader that has gone is none.
#[test]
fn what_cannot_be_printed_is_said() {
    let program = command().get_program().to_owned();
    let klm = testdata(KLM);
    let closed = |args: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(&program).args(args);
        run(shell)
    };
    let all: &[&[&str]] = &[
        &["show", &klm],
        &["show", &klm, "--json"],
        &["health", &klm],
        &["study", &klm],
        &["list"],
        &["help", "sizes"],
        &["--help"],
        &["--version"],
        &["snapshot", &klm, "-o", "-"],
        &["diff", &klm, &klm],
        #[cfg(feature = "schema")]
        &["schema", "study"],
        #[cfg(feature = "pages")]
        &["completions", "bash"],
        #[cfg(feature = "sim")]
        &["sim", "profiles"],
    ];
    for args in all {
        let run = closed(args).exits(2);
        assert!(run.stderr.contains("standard output is closed"), "{run:?}");
    }
    let run = closed(&["check", &klm]).exits(3);
    assert!(run.stderr.contains("standard output is closed"), "{run:?}");
    // Nothing to print is no error.
    closed(&["check", "-q", &klm]).exits(0);
    let file = scratch("closed").join("x.json").display().to_string();
    closed(&["snapshot", &klm, "--json", "-o", &file]).exits(0);

    let mut child = command().args(["show", &klm]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
    // /dev/null is open: whoever asks for it gets silence.
    let mut null = command();
    null.args(["show", &klm]).stdout(File::options().read(true).write(true).open("/dev/null").unwrap());
    assert_eq!(null.status().unwrap().code(), Some(0));
}

#[test]
fn a_file_has_the_same_name_in_every_locale() {
    let file = save(&scratch("locale"), "ünï中.hex", std::fs::read(testdata(KLM)).unwrap());
    for locale in ["C", "POSIX", "C.UTF-8", ""] {
        let mut health = command();
        health.args(["health", &file]).env("LC_ALL", locale);
        let text = run(health).exits(0).stdout;
        assert!(text.contains("ünï中.hex"), "{locale}: {text}");
    }
}

#[test]
fn a_source_with_several_parts_is_named_once() {
    let text = testdata("seeds_console/extcsd_health.txt");
    let run = emmclab(["health", &text, "--with", &text, "--with", &text]);
    assert!(!run.words().contains(&format!("{text} + {text}")), "{run:?}");
    let show = emmclab(["show", &text, "--with", &text]);
    assert!(!show.words().contains(&format!("{text} + {text}")), "{show:?}");
}

#[test]
fn sizes_take_a_fraction_that_is_whole_bytes() {
    let klm = testdata(KLM);
    emmclab(["plan", "hwpart", &klm, "--enh-user", "1.5GiB"]).exits(0);
    let run = emmclab(["plan", "hwpart", &klm, "--enh-user", "0.3GiB"]).exits(2);
    assert!(run.stderr.contains("is not a whole number of bytes"), "{run:?}");
    let run = emmclab(["health", &klm, "--blocks", "8", "--cycles", "9", "--block-size", "50%"]).exits(2);
    assert!(run.stderr.contains("50% of what is not known here; expected a number of bytes, e.g. 4MiB"), "{run:?}");
    emmclab(["health", &klm, "--blocks", "8", "--cycles", "9", "--block-size", "1.5MiB"]).exits(0);
}

#[cfg(all(feature = "bench", feature = "sim"))]
#[test]
fn the_largest_size_ends_with_the_target() {
    let bench = |args: &str| emmclab(format!("bench sim:generic-8g --read-only {args}").split(' '));
    let run = bench("--suite speed --from 99% --size max --json");
    assert!(run.code < 2, "{run:?}");
    let whole = run.json();
    assert!(whole["read_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{whole}");
    let run = bench("--suite iozone --rows 4 --size 100GiB").exits(2);
    let says = "a file of 100 GiB from the start on; the target has 7.3 GiB (7818182656 bytes)";
    assert!(run.stderr.contains(says), "{}", run.stderr);
    let run = bench("--suite speed --from 100%").exits(2);
    assert!(run.stderr.contains("--from 7.3 GiB (7818182656 bytes): the target has 7.3 GiB"), "{}", run.stderr);
}

#[test]
fn the_page_on_sizes_and_the_parser_agree() {
    let page = emmclab(["help", "sizes"]).exits(0).words();
    for says in ["`1.5GiB`", "--block-size", "whole number of bytes"] {
        assert!(page.contains(says.trim_matches('`')), "{says}: {page}");
    }
}

#[cfg(feature = "sim")]
#[test]
fn a_card_that_is_not_there_is_missed_by_its_folder_too() {
    for (args, says) in [
        (&["study", "sim:kc"] as &[&str], "kc: there is no such folder, and no profile has this name; "),
        (&["sim", "run", "sim:kc", "--job", "steady-random"], "kc: there is no such folder, and no profile"),
        (&["sim", "info", "kc"], "kc: no virtual card: there is no such folder; `emmclab sim create` makes a card"),
        (&["sim", "create", "x", "kc"], "no profile \"kc\""),
    ] {
        let run = emmclab(args).exits(2);
        assert!(run.stderr.starts_with(&format!("emmclab: {says}")), "{run:?}");
    }
}

#[test]
fn a_probe_of_saved_results_takes_no_option_of_a_measurement() {
    let saved = testdata("flashbench/toshiba-2011.txt");
    let options = "--destroy|--yes-i-mean sdb|--save-restore|--save-to file|--seed 1|--engine auto|--write-budget 1GiB\
                   |--time-budget 1min|--only page";
    for option in options.split('|') {
        let args = ["probe", "--from", &saved].into_iter().chain(option.split(' '));
        let run = emmclab(args).exits(2);
        assert!(run.stdout.is_empty() && run.stderr.contains("cannot be used with"), "{option}: {run:?}");
    }
    emmclab(["probe", "--from", &saved]).exits(0);
    let missing = scratch("probe_missing").join("no-such").display().to_string();
    let refused = emmclab(["probe", &missing, "--size", "1GiB"]).exits(2);
    assert!(refused.stderr.contains("without --write no new file is made"), "{}", refused.stderr);
}
