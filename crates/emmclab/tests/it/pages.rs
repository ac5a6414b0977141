//! Every command of README.md and the pages in docs/ runs as printed, in a folder with `examples` and `testdata`, and
//! must print the shown output.
//!
//! A block that begins with three backquotes and `console` is run: `$` begins a command, the lines below are its
//! output. `...` matches any text in a line, and alone in a line any number of lines. A block of `console hardware`,
//! `console root`, `console server` or `console guest` needs more than a test has: only the arguments of its emmclab
//! commands are parsed.
//!
//! `EMMCLAB_WRITE_PAGES=1` rewrites what commands print now into the pages; read the difference.

mod renew;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{command, scratch};

const NEEDS: [&str; 4] = ["hardware", "root", "server", "guest"];

/// A command of a page and its shown output.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    line: usize,
    command: String,
    output: Vec<String>,
    needs: Option<String>,
}

/// The commands in a page. `#` is the prompt of root: such a command is never run.
fn commands(page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut block: Option<Option<String>> = None;
    let mut is_new = true;
    for (at, line) in page.lines().enumerate() {
        match (&block, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                let mut words = info.split_whitespace();
                let is_console = words.next() == Some("console");
                block = Some(if is_console { words.next().map(str::to_owned) } else { Some(String::new()) });
                is_new = true;
            }
            (Some(_), Some(_)) => block = None,
            (Some(needs), None) if needs.as_deref() != Some("") => {
                let as_root = line.strip_prefix("# ");
                if let Some(command) = line.strip_prefix("$ ").or(as_root) {
                    let needs = needs.clone().or(as_root.map(|_| "root".to_owned()));
                    found.push(Shown { line: at + 1, command: command.to_owned(), output: Vec::new(), needs });
                    is_new = false;
                } else if let Some(shown) = found.last_mut().filter(|_| !is_new) {
                    shown.output.push(line.trim_end().to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether a line matches the page: `...` matches any text.
fn is_line(shown: &str, line: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        let found = if parts.peek().is_none() { rest.rfind(part) } else { rest.find(part) };
        let Some(at) = found else { return false };
        if parts.peek().is_none() {
            return rest[at..] == *part;
        }
        rest = &rest[at + part.len()..];
    }
    true
}

/// Whether the lines match the page.
fn is_shown(shown: &[String], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, more)) if first.trim() == "..." => {
            (0..=lines.len()).any(|skipped| is_shown(more, &lines[skipped..]))
        }
        Some((first, more)) => {
            lines.split_first().is_some_and(|(line, rest)| is_line(first, line) && is_shown(more, rest))
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A shell in the page's own folder that finds `emmclab`.
fn shell(folder: &Path, line: &str) -> Command {
    let binary = PathBuf::from(command().get_program());
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("PATH", path).env("LC_ALL", "C.UTF-8").env("PAGER", "cat");
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE"] {
        shell.env_remove(name);
    }
    shell.stdin(std::process::Stdio::null());
    shell
}

/// The fault of a command of a page, and its output as the page would show it; none if it is correct.
fn complaint(folder: &Path, shown: &Shown) -> Option<(String, Option<Vec<String>>)> {
    if let Some(needs) = &shown.needs {
        if !NEEDS.contains(&needs.as_str()) {
            return Some((format!("a block of `console {needs}`: expected one of {NEEDS:?}"), None));
        }
        let from = shown.command.find("emmclab ").filter(|_| !shown.command.contains('|'))?;
        let parsed = shell(folder, shown.command[from..].trim_end_matches('&')).env("EMMCLAB_PARSE_ONLY", "1").output();
        let parsed = parsed.unwrap();
        return (!parsed.status.success()).then(|| (String::from_utf8_lossy(&parsed.stderr).into_owned(), None));
    }
    // A group, so that a redirection of the command takes precedence over this one.
    let output = shell(folder, &format!("{{ {}\n}} 2>&1", shown.command)).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let code = output.status.code().unwrap_or(-1);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let expected: Vec<String> = {
        let blank = shown.output.iter().rev().take_while(|line| line.is_empty()).count();
        shown.output[..shown.output.len() - blank].to_vec()
    };
    let shows_error = expected.iter().any(|line| line.starts_with("emmclab: "));
    let is_right = (code == 2) == shows_error
        && if expected.is_empty() { (0..2).contains(&code) } else { is_shown(&expected, &lines) };
    let renewed = || ((code == 2) == shows_error).then(|| renew::renewed(&expected, &lines));
    (!is_right).then(|| (format!("exit code {code}, and it printed\n{text}"), renewed()))
}

#[test]
fn every_command_of_the_pages_runs_as_printed() {
    let root = root();
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(root.join("docs")).unwrap().map(|page| page.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.extend(["README.md", "examples/README.md"].map(|page| root.join(page)));
    pages.sort();
    let only = std::env::var("PAGE").unwrap_or_default();
    let (mut run, mut parsed, mut complaints) = (0, 0, String::new());
    for page in pages.iter().filter(|page| page.display().to_string().contains(&only)) {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        let folder = scratch(&name.replace('/', "-"));
        for link in ["examples", "testdata"] {
            symlink(root.join(link), folder.join(link)).unwrap();
        }
        let mut outputs = BTreeMap::new();
        for shown in commands(&std::fs::read_to_string(page).unwrap()) {
            *(if shown.needs.is_some() { &mut parsed } else { &mut run }) += 1;
            if let Some((complaint, renewed)) = complaint(&folder, &shown) {
                let _ = writeln!(complaints, "{name}:{}: $ {}\n{complaint}", shown.line, shown.command);
                let blank = shown.output.iter().rev().take_while(|line| line.is_empty()).count();
                outputs.extend(renewed.map(|lines| (shown.line, (shown.output.len() - blank, lines))));
            }
        }
        if std::env::var_os("EMMCLAB_WRITE_PAGES").is_some() && !outputs.is_empty() {
            renew::write(page, &outputs);
        }
    }
    println!("{run} commands run, {parsed} parsed");
    assert!(complaints.is_empty(), "\n{complaints}");
    assert!(!only.is_empty() || run > 40, "{run} commands were run");
}

#[test]
fn commands_of_a_page_are_found() {
    let page = "# Title\n```console\n$ a b\n  out\n\n$ c\n```\n```sh\n$ no\n```\n```console root\n$ d\n```\n";
    let shown = |line, command: &str, output: &[&str], needs: Option<&str>| Shown {
        line,
        command: command.into(),
        output: output.iter().map(|line| (*line).to_owned()).collect(),
        needs: needs.map(str::to_owned),
    };
    let expected = [shown(3, "a b", &["  out", ""], None), shown(6, "c", &[], None), shown(12, "d", &[], Some("root"))];
    assert_eq!(commands(page), expected);
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    for (shown, lines, is) in [
        (&["a ... c"][..], &["a b c"][..], true),
        (&["a ... c"], &["a b d"], false),
        (&["a...", "  ..."], &["ab", "x", "y"], true),
        (&["...", "z"], &["x", "z"], true),
        (&["a"], &["a", "b"], false),
    ] {
        assert_eq!(is_shown(&owned(shown), lines), is, "{shown:?} {lines:?}");
    }
}
