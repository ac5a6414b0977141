//! The card of a `study`: the named one, standard input, or the only card; never a card without a name.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use crate::support::{command, emmclab, emmclab_with_input, save, scratch, testdata};

const KLM: &str = "ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex";

/// The sectors of the part in `KLM`, which no virtual card has.
const KLM_BYTES: u64 = 0x00e9_0000 * 512;

#[test]
fn standard_input_is_studied() {
    let dump = std::fs::read(testdata(KLM)).unwrap();
    let piped = emmclab_with_input(&["study", "--json"], &dump).json();
    assert_eq!(piped["capacity"]["areas"][0]["size"]["bytes"], KLM_BYTES);
    let named = emmclab(["study", &testdata(KLM), "--json"]).json();
    for part in ["identity", "findings", "health", "capacity", "configuration"] {
        assert_eq!(piped[part], named[part], "{part}");
    }
    let text = emmclab_with_input(&["study"], &dump);
    assert!(!text.stdout.contains("VIRTUAL"), "{}", text.stdout);
}

#[test]
fn a_file_on_standard_input_is_studied_and_an_empty_one_is_none() {
    let study = |path: &str| {
        let input = std::fs::File::open(path).unwrap();
        command().args(["study", "--json"]).stdin(Stdio::from(input)).output().unwrap()
    };
    let found: serde_json::Value = serde_json::from_slice(&study(&testdata(KLM)).stdout).unwrap();
    assert_eq!(found["capacity"]["areas"][0]["size"]["bytes"], KLM_BYTES);
    let empty = save(&scratch("empty_input"), "empty", "");
    // An empty input names no card: this machine's cards are used, if there are any.
    let output = study(&empty);
    if output.status.code() == Some(2) {
        assert!(String::from_utf8_lossy(&output.stderr).contains("which card?"), "{output:?}");
    }
}

#[test]
fn a_tree_with_one_card_needs_no_name_and_with_two_lists_both() {
    let board = testdata("sysfs/board");
    let run = emmclab(["study", "--sysroot", &board]).exits(2);
    assert_eq!(run.stdout, "");
    for said in ["which card?", "/dev/mmcblk0 (BJNB4R, 29.1 GiB)", "/dev/mmcblk1 (SD16G", "emmclab study /dev/mmcblk0"]
    {
        assert!(run.stderr.contains(said), "no {said:?} in {}", run.stderr);
    }
    let old = testdata("sysfs/old-kernel");
    let (alone, named) =
        (emmclab(["study", "--sysroot", &old, "--json"]), emmclab(["study", "--sysroot", &old, "mmcblk0", "--json"]));
    assert_eq!(alone.json()["identity"], named.json()["identity"]);
    assert_eq!(alone.code, named.code);
    assert!(!alone.stdout.contains("sim:"), "{}", alone.stdout);
}

#[test]
fn with_alone_is_the_source() {
    let cid = testdata("ids/samsung-bjnb4r-32g/cid");
    let dump = testdata("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex");
    let with = emmclab(["study", "--with", &dump, "--with", &cid, "--json"]).json();
    let named = emmclab(["study", &dump, "--with", &cid, "--json"]).json();
    assert_eq!(with, named);
    assert_eq!(with["identity"]["product_name"], "BJNB4R");
}

#[test]
fn a_missing_card_is_reported() {
    let tree = scratch("no_cards");
    std::fs::create_dir_all(tree.join("sys/block")).unwrap();
    std::fs::create_dir_all(tree.join("sys/class/mmc_host")).unwrap();
    let run = emmclab(["study", "--sysroot", tree.to_str().unwrap()]).exits(2);
    for said in ["which card?", "has none", "emmclab study --demo"] {
        assert!(run.stderr.contains(said), "no {said:?} in {}", run.stderr);
    }
}

#[test]
fn the_demonstration_needs_its_name_and_excludes_other_sources() {
    for args in [["--demo", "x"], ["--demo", "--vendor-health"], ["--demo", "--sysroot=/"], ["--demo", "--with=x"]] {
        let run = emmclab(["study"].iter().chain(&args)).exits(2);
        assert!(run.stderr.contains("cannot be used with"), "{run:?}");
    }
}

#[test]
#[cfg(feature = "sim")]
fn a_virtual_card_is_marked_in_all_outputs() {
    let folder = scratch("virtual");
    let saved = folder.join("card.json").to_str().unwrap().to_owned();
    emmclab(["snapshot", "sim:generic-8g", "-o", &saved]).exits(0);
    for source in ["--demo", "sim:generic-8g", &saved] {
        let text = emmclab(["study", source]).stdout;
        assert!(text.lines().next().unwrap().starts_with("VIRTUAL CARD: "), "{source}: {text}");
        #[cfg(feature = "html")]
        {
            let page = emmclab(["study", source, "-o", "-"]).stdout;
            assert!(page.contains("<title>VIRTUAL CARD: ") && page.contains("<h1>VIRTUAL CARD: "), "{source}");
        }
    }
    let real = emmclab(["study", &testdata(KLM)]).stdout;
    assert!(!real.contains("VIRTUAL"), "{real}");
}

/// A silent pipe is waited for, with a message.
#[test]
fn a_slow_pipe_is_read_to_its_end() {
    let mut child = command().args(["study", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let dump = std::fs::read(testdata(KLM)).unwrap();
    let (first, rest) = dump.split_at(100);
    pipe.write_all(first).unwrap();
    pipe.flush().unwrap();
    pipe.write_all(rest).unwrap();
    drop(pipe);
    let study: serde_json::Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(study["capacity"]["areas"][0]["size"]["bytes"], KLM_BYTES);
}

/// A pipe that holds these bytes: both of its ends, so that nobody has closed it, and one to read.
fn pipe_with(name: &str, bytes: &[u8]) -> (File, File) {
    let path = scratch(name).join("pipe");
    // It is there if the test ran before.
    let _ = std::fs::remove_file(&path);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut both = File::options().read(true).write(true).open(&path).unwrap();
    both.write_all(bytes).unwrap();
    (both, File::open(&path).unwrap())
}

fn study_beside(input: impl Into<Stdio>, args: &[&str]) -> (Option<i32>, String, Output) {
    let output = command().arg("study").args(args).stdin(input).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), output)
}

#[test]
fn a_card_on_standard_input_beside_a_named_one_is_refused() {
    let dump = std::fs::read(testdata(KLM)).unwrap();
    let (file, old) = (testdata("ids/samsung-bjnb4r-32g/cid"), testdata("sysfs/old-kernel"));
    for (args, named) in [
        (&["--demo"][..], "--demo"),
        (&[file.as_str()], file.as_str()),
        (&["--sysroot", &old], "--sysroot"),
        (&["--sysroot", &old, "mmcblk0", "--json"], "mmcblk0"),
    ] {
        let (_both, input) = pipe_with("card_beside", &dump);
        let (code, stderr, output) = study_beside(input, args);
        let said = format!("standard input holds a card, and {named} is named too: ");
        assert!(code == Some(2) && stderr.contains(&said) && stderr.lines().count() == 1, "{args:?}: {output:?}");
        let (code, stderr, output) = study_beside(File::open(testdata(KLM)).unwrap(), args);
        assert!(code == Some(2) && stderr.contains(&said), "{args:?}, a file: {output:?}");
    }
}

#[test]
fn a_card_on_standard_input_is_joined_with_further_files() {
    let (cid, dump) =
        (testdata("ids/samsung-bjnb4r-32g/cid"), "ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex");
    let (_, _, piped) = study_beside(File::open(testdata(dump)).unwrap(), &["--with", &cid, "--json"]);
    let piped: serde_json::Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["identity"]["product_name"], "BJNB4R");
    assert_eq!(piped["health"]["life_a"]["raw"], 6);
    let (_, _, named) = study_beside(File::open(testdata(dump)).unwrap(), &[&cid, "--with", "-", "--json"]);
    let named: serde_json::Value = serde_json::from_slice(&named.stdout).unwrap();
    assert_eq!(named["findings"][0]["id"], piped["findings"][0]["id"]);
    let (code, stderr, _) = study_beside(File::open(testdata(KLM)).unwrap(), &["--with", &testdata(dump)]);
    assert!(code == Some(2) && stderr.contains("not the same card"), "{stderr}");
}

#[test]
fn an_input_without_a_card_neither_stops_a_study_nor_is_taken_from_a_loop() {
    let cid = testdata("ids/samsung-bjnb4r-32g/cid");
    let alone = study_beside(Stdio::null(), &[&cid, "--json"]);
    // Open, with a program that may write, and silent: cron, CI and ssh leave such pipes.
    let (both, input) = pipe_with("silent", b"");
    let (code, stderr, silent) = study_beside(input, &[&cid, "--json"]);
    assert_eq!((code, stderr.as_str()), (alone.0, ""));
    assert_eq!(silent.stdout, alone.2.stdout);
    drop(both);
    let (mut both, input) = pipe_with("names", b"mmcblk0\nmmcblk1\n");
    let (code, stderr, names) = study_beside(input, &[&cid, "--json"]);
    assert!(code == alone.0 && stderr.contains("standard input holds no card"), "{stderr}");
    assert_eq!(names.stdout, alone.2.stdout);
    let mut left = [0; 16];
    both.read_exact(&mut left).unwrap();
    assert_eq!(&left, b"mmcblk0\nmmcblk1\n");
}

#[test]
fn a_pipe_without_a_writer_is_refused() {
    let path = scratch("no_writer").join("pipe");
    let _ = std::fs::remove_file(&path);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let path = path.to_str().unwrap();
    let check = emmclab(["check", path]).exits(3);
    assert!(
        check.stdout.contains("EMMC UNKNOWN - ") && check.stdout.contains("nobody writes to this pipe"),
        "{check:?}"
    );
    let study = emmclab(["study", path]).exits(2);
    assert!(study.stderr.contains("nobody writes to this pipe"), "{study:?}");
}

#[test]
fn a_named_pipe_is_read_to_its_end() {
    let path = scratch("named_pipe").join("pipe");
    let _ = std::fs::remove_file(&path);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let child = command().args(["study", "--json"]).arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    // Opening waits for the reader.
    std::fs::write(&path, std::fs::read(testdata(KLM)).unwrap()).unwrap();
    let study: serde_json::Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(study["capacity"]["areas"][0]["size"]["bytes"], KLM_BYTES);
}
