//! A restore onto a card that loses power or is pulled: at every step, and what a resume finds.

use std::os::unix::fs::FileExt;
use std::path::Path;

use super::*;
use crate::support::run;
use crate::support::served::{ServedCard, small_card};

const HEAD: usize = 4096;
const WHOLE: usize = 64 << 20;

/// An image of 8 MiB that is its own in each byte: half a MiB from the start on, and a fill behind it.
fn image(folder: &Path, name: &str, seed: u64) -> (PathBuf, Vec<u8>) {
    let mut content = noise(seed, 512 << 10);
    content.resize(8 << 20, 0);
    content[1 << 20..][..64 << 10].fill(0x5a);
    let path = folder.join(name);
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(&content[..512 << 10], 0).unwrap();
    file.write_all_at(&content[1 << 20..][..64 << 10], 1 << 20).unwrap();
    (path, content)
}

/// What lies on a card, read as a host reads it.
fn content(card: &ServedCard) -> Vec<u8> {
    let file = std::fs::File::open(card.file()).unwrap();
    let mut found = vec![0; 8 << 20];
    file.read_exact_at(&mut found, 0).unwrap();
    found
}

#[test]
fn a_restore_that_is_cut_at_every_step_of_the_card_is_continued() {
    let folder = scratch("cuts");
    let card = small_card(&folder, "card", 16, &[]);
    let Some(card) = ServedCard::start(&card, &[]) else { return };
    let target = card.file();
    let images = [image(&folder, "a", 5), image(&folder, "b", 6)];
    let clones = ["a.clone", "b.clone"].map(|name| folder.join(name));
    for ((source, _), file) in images.iter().zip(&clones) {
        clone(text(source), file, &[]).exits(0);
    }
    let restore = |file: &Path, more: &[&str]| emmclab(["restore", text(file), text(&target)].iter().chain(more));
    restore(&clones[0], &["--destroy"]).exits(0);
    let (mut cuts, mut seen) = (0, [0; 3]);
    loop {
        // Each restore has another content than the one before.
        let (old, new) = (&images[cuts % 2].1, &images[(cuts + 1) % 2].1);
        let file = &clones[(cuts + 1) % 2];
        let (number, seed) = ((cuts + 1).to_string(), cuts.to_string());
        card.ctl(&["cut", "--at-operation", &number, "--seed", &seed]);
        let ended = restore(file, &["--destroy"]);
        if ended.code == 0 {
            break;
        }
        // What a host sees of a card without power.
        assert!(ended.code == 3 && ended.stderr.contains("No such device"), "cut {cuts}: {}", ended.stderr);
        card.ctl(&["on"]);
        let found = content(&card);
        let standing = restore(file, &["--verify"]);
        // Where things stand: nothing was touched; no table; or all of it is there.
        let state = match &found[..HEAD] {
            head if head == &old[..HEAD] => {
                assert!(found == *old, "cut {cuts}: the old table, and other content");
                0
            }
            head if head.iter().all(|byte| *byte == 0) => 1,
            head => {
                assert!(head == &new[..HEAD] && found == *new, "cut {cuts}: the new table, and other content");
                2
            }
        };
        seen[state] += 1;
        assert_eq!(standing.code, i32::from(state != 2), "cut {cuts}: {}", standing.stderr);
        assert!(state == 2 || standing.stderr.contains("differs from the clone"), "{}", standing.stderr);
        let document = restore(file, &["--destroy", "--resume", "--json"]).exits(0).json();
        assert!(document["counts"]["written_bytes"].as_u64().unwrap() >= HEAD as u64, "{document}");
        assert!(content(&card) == *new, "cut {cuts}: not restored");
        restore(file, &["--verify"]).exits(0);
        cuts += 1;
    }
    // Every step of the card: there are some for each page that is programmed.
    assert!(cuts > 20 && seen[1] > 10, "{cuts} cuts: {seen:?}");
    assert!(content(&card) == images[(cuts + 1) % 2].1);
}

#[test]
fn a_card_that_is_pulled_is_one_error_and_both_ways_are_continued() {
    let folder = scratch("pulled");
    // More than all threads together read ahead.
    let card = small_card(&folder, "card", 80, &[]);
    let (source, wanted) = (folder.join("image"), noise(7, WHOLE));
    std::fs::write(&source, &wanted).unwrap();
    let file = folder.join("image.clone");
    clone(text(&source), &file, &[]).exits(0);
    let Some(mut served) = ServedCard::start(&card, &["--loop"]) else { return };
    let pull = |served: &mut ServedCard, words: &[&str]| {
        let mut command = command();
        command.args(words).stderr(Stdio::piped()).stdout(Stdio::null());
        let hold = Hold::at(&mut command, "step", 1, &folder);
        let mut child = command.spawn().unwrap();
        hold.wait(&mut child);
        served.kill();
        drop(hold);
        let ended = child.wait_with_output().unwrap();
        let message = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(3), "{message}");
        // The question's text comes before it.
        let errors = message.lines().filter(|line| !line.contains("  ") && !line.contains("loop device of"));
        assert_eq!(errors.count(), 1, "{message}");
        assert!(message.contains("Input/output error") || message.contains("No such device"), "{message}");
    };
    let consent = |node: &str| ["--destroy".to_owned(), "--yes-i-mean".into(), node["/dev/".len()..].into()];
    let node = served.device.clone().unwrap();
    let [destroy, mean, name] = consent(&node);
    pull(&mut served, &["restore", text(&file), &node, &destroy, &mean, &name]);
    drop(served);
    let Some(mut served) = ServedCard::start(&card, &["--loop"]) else { return };
    let node = served.device.clone().unwrap();
    emmclab(["restore", text(&file), &node, "--verify"]).exits(1);
    let [destroy, mean, name] = consent(&node);
    emmclab(["restore", text(&file), &node, "--resume", &destroy, &mean, &name]).exits(0);
    assert!(std::fs::read(served.file()).unwrap()[..WHOLE] == wanted);
    // The same while it is read. A clone of the card's file is not one of its device: it has another name only.
    let again = folder.join("again");
    pull(&mut served, &["clone", &node, "-o", text(&again)]);
    drop(served);
    assert!(!again.exists() && folder.join("again.part").exists());
    let Some(served) = ServedCard::start(&card, &["--loop"]) else { return };
    let node = served.device.clone().unwrap();
    let document = clone(&node, &again, &["--resume", "--json"]).exits(0).json();
    assert!(document["resumed_bytes"].as_u64().unwrap() > 0, "{document}");
    emmclab(["restore", text(&again), &node, "--verify"]).exits(0);
    let image = folder.join("restored");
    let mut restore = command();
    restore.args(["restore", text(&again), text(&image)]);
    run(restore).exits(0);
    assert!(std::fs::read(&image).unwrap()[..WHOLE] == wanted);
}
