//! The card of a `study`: the named one, standard input, or the only card; never a card without a name.

use std::io::Write;
use std::process::Stdio;

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
    let board = testdata("sysfs/board");
    let empty = save(&scratch("empty_input"), "empty", "");
    // An empty input names no card: this machine's cards are used, if there are any.
    let output = study(&empty);
    if output.status.code() == Some(2) {
        assert!(String::from_utf8_lossy(&output.stderr).contains("which card?"), "{output:?}");
    }
    // A copied tree is named: standard input would be another card, and is not read.
    let run = emmclab_with_input(&["study", "--sysroot", &board], &std::fs::read(testdata(KLM)).unwrap()).exits(2);
    assert!(run.stderr.contains("which card?"), "{run:?}");
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
