//! A clone that is killed five times and continued.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::MIB;
use super::card::{Card, output};

const KILLS: u64 = 5;

/// Kills a clone whenever another sixth of its file is written, and compares the end with the file of a clone that
/// nobody interrupted.
pub(super) fn five_times(source: &Card, whole: &Path, folder: &Path) {
    let (file, part) = (folder.join("killed.clone"), folder.join("killed.clone.part"));
    let size = std::fs::metadata(whole).expect("a clone").len();
    let command = |resume: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_emmclab"));
        command.args(["clone", source.loop_device(), "-o"]).arg(&file).args(resume.then_some("--resume"));
        command
    };
    let ([read, _], begin) = (source.requested(), Instant::now());
    for kill in 1..=KILLS {
        let mut child = command(kill > 1).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a clone");
        let wanted = size * kill / (KILLS + 1);
        while std::fs::metadata(&part).map_or(0, |found| found.len()) < wanted {
            assert!(child.try_wait().expect("a child").is_none(), "it ended before it was killed");
            std::thread::yield_now();
        }
        child.kill().expect("a kill");
        child.wait().expect("a child");
    }
    let text = output(command(true).arg("--json"));
    let seconds = begin.elapsed().as_secs_f64();
    let [now, _] = source.requested();
    let document: serde_json::Value = serde_json::from_str(&text).expect("a document");
    let resumed = document["resumed_bytes"].as_u64().expect("what was there");
    let is_equal = std::fs::read(&file).expect("a file") == std::fs::read(whole).expect("a file");
    assert!(is_equal, "the continued clone differs from the other");
    println!(
        "Killed {KILLS} times and continued: {seconds:.2} s, {} MiB read from the card, the last run found {} MiB in \
         its file; the file is that of a clone without a kill, byte by byte.",
        (now - read).div_ceil(MIB),
        resumed.div_ceil(MIB)
    );
}
