//! Help, topics, manual pages and completions of the binary.

use std::process::Command;

use crate::support::{emmclab, names_in, save, scratch, skip};

#[test]
fn help_has_examples_and_topics_are_in_the_binary() {
    for command in ["show", "bench", "sim run", "sim ctl stop", "serve", "plan hwpart", "completions", "sim"] {
        let words: Vec<&str> = command.split(' ').collect();
        let typed = command.replace("ctl", "ctl card1");
        let long = emmclab(typed.split(' ').chain(["--help"])).exits(0);
        assert!(long.stdout.contains("Examples:\n  emmclab "), "{command}: {}", long.stdout);
        assert_eq!(emmclab(["help"].iter().chain(&words)).exits(0).stdout, long.stdout, "{command}");
    }
    let topics = emmclab(["help", "topics"]).exits(0);
    for (topic, says) in [
        ("sources", "sim:PROFILE@60%"),
        ("jobs", "collapse-and-trim"),
        ("sizes", "U-Boot would read it as sectors"),
        ("exit-codes", "refused for safety"),
    ] {
        assert!(topics.stdout.contains(topic), "{}", topics.stdout);
        emmclab(["help", topic]).exits(0).says(&[says]);
    }
    emmclab(["help", "exit", "codes"]).exits(0);
    let unknown = emmclab(["help", "everything"]).exits(2);
    assert!(unknown.stderr.contains("topics: sources, jobs, sizes, exit-codes"), "{}", unknown.stderr);
}

#[test]
fn every_manual_page_has_exit_codes_and_examples() {
    let folder = scratch("help_man");
    emmclab(["man", &folder.display().to_string()]).exits(0);
    let pages = names_in(&folder);
    assert!(pages.len() > 25 && pages.contains(&"emmclab-sim-ctl-stop.1".into()), "{pages:?}");
    for name in pages {
        let page = std::fs::read_to_string(folder.join(&name)).unwrap();
        for section in [".SH \"EXIT STATUS\"", ".SH EXAMPLES\n.TP\n\\fBemmclab", ".SH NAME", ".SH SYNOPSIS"] {
            let is_there = page.replace("\\-", "-").contains(section);
            // Some examples start with another program.
            assert!(
                is_there || section.contains("emmclab") && page.contains(".SH EXAMPLES\n.TP\n"),
                "{name}: {section}"
            );
        }
        let codes = if name == "emmclab-check.1" { "3 UNKNOWN" } else { "refused for safety" };
        assert!(page.contains(codes), "{name}: {codes}");
    }
}

#[test]
fn completions_include_names() {
    let folder = scratch("help_completions");
    let script = save(&folder, "emmclab.bash", emmclab(["completions", "bash"]).exits(0).stdout);
    let completed = |words: &[&str]| {
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let call = format!(
            "source '{script}'; COMP_WORDS=({}); COMP_CWORD={}; _emmclab emmclab '{last}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        let output = Command::new("bash").args(["--norc", "-c", &call]).output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap())
    };
    if completed(&["emmclab", "lis"]).is_none() {
        return skip("no bash here");
    }
    for (words, expected) in [
        (&["emmclab", "study", "sim:generic-8"][..], "sim:generic-8g"),
        (&["emmclab", "bench", "sim:odroid-12"], "sim:odroid-128g"),
        (&["emmclab", "bench", "x", "--suite", "stea"], "steady"),
        (&["emmclab", "bench", "x", "--board", "jet"], "jetson-tx1"),
        (&["emmclab", "sim", "run", "x", "--job", "steady"], "steady-random"),
        (&["emmclab", "sim", "create", "x", "sim:zynq"], "sim:zynq-32g"),
        (&["emmclab", "compare", "ref:nine-cards-friendly"], "ref:nine-cards-friendlyelec-emmc-8gb"),
        (&["emmclab", "show", "sim:pine"], "sim:pine64-64g"),
    ] {
        assert_eq!(completed(words).unwrap().trim(), expected, "{words:?}");
    }
}

/// One spelling of a card in all commands; the old spellings still work.
#[test]
fn a_virtual_card_has_the_same_spelling_in_all_commands() {
    let folder = scratch("help_alike");
    let card = folder.join("card").display().to_string();
    emmclab(["sim", "create", &card, "sim:generic-8g"]).exits(0);
    for name in [card.clone(), format!("sim:{card}"), "sim:generic-8g".into()] {
        let info = emmclab(["sim", "info", &name, "--json"]).exits(0).json();
        assert_eq!(info["profile"], "generic-8g", "{name}");
    }
    assert!(emmclab(["sim", "ctl", &format!("sim:{card}"), "state"]).exits(2).stderr.contains("is not being served"));
    emmclab(["sim", "power-cut", "sim:generic-8g", "--cuts", "2"]).exits(0);
    emmclab(["sim", "profiles", "sim:generic-8g"]).exits(0).says(&["generic-8g"]);
    for old in ["sim info --profile generic-8g", "sim power-cut --profile generic-8g --cuts 1"] {
        emmclab(old.split(' ')).exits(0);
    }
    let pipeline = |options: &str| emmclab(format!("sim pipeline {options}").split(' ')).exits(0).stdout;
    assert_eq!(
        pipeline("--board zynq-zed --queue-depth 4 --requests 50"),
        pipeline("--platform zynq-zed --depth 4 --requests 50")
    );
    let seed = emmclab(["sim", "run", &card, "--job", "steady-random", "--seed", "2"]).exits(2);
    assert!(seed.stderr.contains("--seed"), "{}", seed.stderr);
    let dry = emmclab(["sim", "run", "sim:generic-8g", "--job", "steady-random", "--dry-run"]).exits(2);
    assert!(dry.stderr.contains("--dry-run"), "{}", dry.stderr);
}

/// `--enh-user` takes any size, from the beginning of the card on.
#[test]
fn an_enhanced_area_is_a_size() {
    let plan = |size: &str| emmclab(["plan", "hwpart", "sim:generic-8g", "--enh-user", size, "--json"]).exits(0).json();
    assert_eq!(plan("1GiB"), plan("0s:2097152s"));
    assert_eq!(plan("50%"), plan("0:50%"));
    assert_ne!(plan("50%"), plan("max"));
}

/// `-o` saves in the format of the file's extension, in every command.
#[cfg(feature = "html")]
#[test]
fn a_saved_report_has_the_format_of_its_extension() {
    let folder = scratch("help_saved");
    for command in [
        "plan hwpart sim:generic-8g --enh-user 50%",
        "sim pipeline --board zynq-zed --requests 50",
        "sim run sim:generic-8g --job {job}",
    ] {
        let job = save(&folder, "job.json", r#"{"phases": [{"kind": "random", "amount": "1MiB"}]}"#);
        let command = command.replace("{job}", &job);
        let saved = |name: &str| {
            let path = folder.join(name);
            let path = path.to_str().unwrap();
            emmclab(command.split(' ').chain(["-o", path, "--force"])).exits(0);
            std::fs::read_to_string(path).unwrap()
        };
        assert!(saved("report.json").starts_with("{\n  \"schema\": \"emmclab."), "{command}");
        assert!(saved("report.html").to_lowercase().starts_with("<!doctype html"), "{command}");
    }
}
