//! A killed server's folder is damaged: it is refused, and `sim check` goes on with what is whole.

use std::path::Path;

use super::{Server, card, emmclab, scratch};

const BLOCK: usize = 4096;

/// A card whose server was killed after these writes: block n is full of n + 1.
fn killed(card: &Path, blocks: u8) {
    let server = Server::start(card);
    let mut client = server.client();
    for block in 0..blocks {
        assert_eq!(client.write(u64::from(block) * BLOCK as u64, &[block + 1; BLOCK]), 0);
    }
    server.kill();
}

fn said(card: &Path, rest: &[&str], code: i32) -> String {
    let card = card.to_str().unwrap();
    let run = emmclab(["sim", "check", card].into_iter().chain(rest.iter().copied())).exits(code);
    run.words()
}

fn refused(args: &[&str], phrases: &[&str]) {
    let error = emmclab(args).exits(2).stderr;
    for phrase in phrases {
        assert!(error.contains(phrase), "{args:?}: no {phrase:?} in {error}");
    }
}

#[test]
fn a_flipped_bit_in_the_journal_is_refused_and_repaired() {
    let folder = scratch("serve_damaged");
    let card = card(&folder, "card");
    killed(&card, 40);
    assert!(said(&card, &[], 0).contains("WHOLE"));
    let journal = card.join("card.journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&journal, &bytes).unwrap();
    let place = card.to_str().unwrap();
    let nbd = format!("unix:{}", folder.join("nbd").display());
    for command in [&["sim", "info", place][..], &["serve", place, "--nbd", &nbd]] {
        refused(command, &["card.journal", "a record with its checksum at byte", "sim check"]);
    }
    let found = said(&card, &[], 1);
    assert!(found.contains("DAMAGED") && found.contains("intact ones follow"), "{found}");
    assert!(bytes == std::fs::read(&journal).unwrap(), "looking changes nothing");
    let found = said(&card, &["--repair"], 0);
    assert!(found.contains("the whole file is now card.journal.damaged") && found.contains("WHOLE"), "{found}");
    assert!(bytes == std::fs::read(card.join("card.journal.damaged")).unwrap());
    // The first writes are there, the last are not.
    let server = Server::start(&card);
    let mut client = server.client();
    assert_eq!(client.read(0, BLOCK as u32), (0, vec![1; BLOCK]));
    assert_eq!(client.read(39 * BLOCK as u64, BLOCK as u32), (0, vec![0; BLOCK]));
}

#[test]
fn a_missing_journal_and_an_older_state_are_refused() {
    let folder = scratch("serve_damaged_files");
    let (card, kept) = (card(&folder, "card"), folder.join("card.state.kept"));
    killed(&card, 4);
    std::fs::copy(card.join("card.state"), &kept).unwrap();
    let journal = std::fs::read(card.join("card.journal")).unwrap();
    std::fs::remove_file(card.join("card.journal")).unwrap();
    let place = card.to_str().unwrap();
    refused(&["sim", "info", place], &["card.journal", "they are missing", "sim check"]);
    std::fs::write(card.join("card.journal"), &journal).unwrap();
    killed(&card, 8);
    std::fs::copy(&kept, card.join("card.state")).unwrap();
    refused(&["sim", "info", place], &["card.state", "which was here before; found the older"]);
    assert!(said(&card, &["--repair"], 0).contains("is taken for the newest"));
}
