//! Loads with a filesystem, logs in memory, updates and recordings.

use std::sync::Arc;

use emmc_twin::what_if::{Question, Setup, WhatIfError, Written};
use emmc_units::Size;
use emmc_workload::duty::{Discard, FilesystemKind};

use crate::card::{MIB, answers, ask, lasting, rate_on};

fn ext4(random_share: f64) -> Question {
    let mut question = rate_on(random_share, Size::Percent(30));
    question.today = Setup { filesystem: Some(FilesystemKind::Ext4), flush_s: Some(5.0), ..Setup::default() };
    question
}

#[test]
fn a_filesystem_adds_its_metadata_and_trims_free_the_card() {
    let found = answers(&lasting(), &ext4(0.5), &["discard=online", "discard=weekly", "fs=f2fs", "commit=60"]);
    let [today, online, weekly, f2fs, slow] = &found[..] else { panic!("five answers") };
    assert!(today.host_bytes_per_day > 64.0 * MIB as f64, "{}", today.host_bytes_per_day);
    assert!(online.write_amplification < 0.9 * today.write_amplification);
    assert!(weekly.write_amplification < 0.95 * today.write_amplification);
    assert!(slow.host_bytes_per_day < today.host_bytes_per_day, "fewer commits write less");
    assert!(f2fs.host_bytes_per_day != today.host_bytes_per_day);
}

#[test]
fn logs_in_memory_and_updates_change_what_the_card_receives() {
    let question = rate_on(0.5, Size::Percent(30));
    let found = answers(&lasting(), &question, &["log=ram:1MiB", "update=1w:16MiB", "commit=5"]);
    let [today, memory, update, flushed] = &found[..] else { panic!("four answers") };
    let mib = |bytes: f64| bytes / MIB as f64;
    let close =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.03, "{found} against {expected}");
    close(mib(today.host_bytes_per_day), 64.0);
    close(mib(memory.host_bytes_per_day), 33.0);
    close(mib(update.host_bytes_per_day), 64.0 + 16.0 / 7.0);
    // 3.8 KiB every five seconds: each flush programs a page of which most is padding.
    assert!(flushed.write_amplification > 2.0 * today.write_amplification);
}

#[test]
fn a_partition_off_by_a_page_splits_no_mapping_unit_but_one_off_by_a_sector_does() {
    let question = rate_on(1.0, Size::Percent(30));
    let found = answers(&lasting(), &question, &["align=page", "align=63s"]);
    let [today, page, sectors] = &found[..] else { panic!("three answers") };
    assert!((page.write_amplification / today.write_amplification - 1.0).abs() < 0.02);
    // Each write of 4 KiB touches two mapping units.
    assert!(sectors.write_amplification > 1.8 * today.write_amplification);
}

#[test]
fn a_recording_is_repeated_at_its_rate_or_another() {
    let lines: String = (0..64).map(|n| format!("{},write,{},1024\n", n * 1000, n * 1024)).collect();
    let trace = emmc_workload::trace::read("t", lines.as_bytes()).expect("it is a trace");
    let question = |bytes_per_day| Question {
        written: Written::Recorded { trace: Arc::new(trace.clone()), bytes_per_day, wrap: false },
        today: Setup { discard: Discard::Online, ..Setup::default() },
        seed: 1,
    };
    // 32 MiB in 64 ms: more than the card can take.
    let as_recorded = &answers(&lasting(), &question(None), &[])[0];
    assert!(as_recorded.busy_share > 1.0, "{}", as_recorded.busy_share);
    let slow = &answers(&lasting(), &question(Some(64.0 * MIB as f64)), &[])[0];
    assert!(slow.busy_share < 0.01 && (slow.host_bytes_per_day / 64.0 / MIB as f64 - 1.0).abs() < 1e-9);
    assert!((slow.write_amplification - 1.0).abs() < 0.01, "{}", slow.write_amplification);
    let refused = ask(&lasting(), &question(None), &["fs=ext4"]);
    assert!(matches!(refused, Err(WhatIfError::Refused { .. })), "{refused:?}");
}
