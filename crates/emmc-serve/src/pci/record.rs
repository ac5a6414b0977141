//! The record of a machine: each request as a line of JSON, and, on a driven clock, what identifies the run.
//!
//! Times count from the machine's start, in ns, so that the records of a new card and of a used one look alike.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use emmc_units::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use super::{AccessCounts, Board};
use crate::sdhci::RequestAccount;

/// A request as a line of the record: a [`RequestAccount`] whose times count from the machine's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRequest {
    /// The command.
    pub command: u8,
    /// Its argument.
    pub argument: u32,
    /// Blocks of data.
    pub blocks: u32,
    /// Unit: ns.
    pub issued_ns: u64,
    /// Unit: ns.
    pub answered_ns: u64,
    /// Unit: ns.
    pub crossed_ns: u64,
    /// When the controller sent its own CMD12 after the data, if it did: from there on the card is busy with that.
    /// Unit: ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Unit: ns.
    pub done_ns: u64,
    /// When the interrupt rose that reported the end, if one did. Unit: ns.
    pub interrupt_ns: Option<u64>,
    /// The error interrupts it ended with; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u32,
}

impl RecordedRequest {
    /// Counts its times from `by_ns` earlier.
    pub fn delay(&mut self, by_ns: u64) {
        let times = [&mut self.issued_ns, &mut self.answered_ns, &mut self.crossed_ns, &mut self.done_ns];
        times.into_iter().chain(&mut self.stopped_ns).chain(&mut self.interrupt_ns).for_each(|ns| *ns += by_ns);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// What is left of a run.
#[derive(Debug, Serialize)]
struct Summary {
    digest: String,
    reads: u64,
    writes: u64,
    interrupts: u64,
    requests: u64,
    last_access_ns: u64,
    /// The longest time by which an event came later than it was due.
    late_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Where the record goes.
#[derive(Debug)]
pub struct Record {
    start: Instant,
    requests: Option<BufWriter<File>>,
    summary: Option<PathBuf>,
    error: Option<io::Error>,
}

impl Record {
    /// Of a machine that starts when the card's clock shows `start`: requests and summary go to these files, if named.
    ///
    /// Errors: the file of requests cannot be made.
    pub fn new(start: Instant, requests: Option<&Path>, summary: Option<&Path>) -> io::Result<Self> {
        let requests = requests.map(crate::output::create).transpose()?.map(BufWriter::new);
        Ok(Self { start, requests, summary: summary.map(Path::to_owned), error: None })
    }

    /// Records the requests that have ended since the last call.
    pub fn settle(&mut self, board: &mut Board) {
        for (account, interrupt) in board.take_requests() {
            self.add(&account, interrupt);
        }
    }

    /// Records a request that has ended, and the interrupt that reported it.
    pub(crate) fn add(&mut self, account: &RequestAccount, interrupt: Option<Instant>) {
        if let (Some(file), None) = (&mut self.requests, &self.error) {
            let line = request(account, interrupt, self.start);
            let written = serde_json::to_writer(&mut *file, &line).map_err(io::Error::from);
            self.error = written.and_then(|()| file.write_all(b"\n")).err();
        }
    }

    /// Writes out the requests.
    ///
    /// Errors: they are not complete.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)?;
        self.requests.as_mut().map_or(Ok(()), Write::flush)
    }

    /// Writes out the record of a machine whose last access was at `last_access` of the card's clock, and the longest
    /// time by which an event came later than it was due.
    ///
    /// Errors: in words, one for each file that is not complete.
    pub fn finish(&mut self, board: &mut Board, last_access: Instant, late: Nanos) -> Vec<String> {
        self.settle(board);
        let mut errors = Vec::new();
        let mut note =
            |what: &str, result: Result<(), String>| errors.extend(result.err().map(|why| format!("{what}: {why}")));
        note("the log", board.flush_log().map_err(|error| error.to_string()));
        note("the requests", self.flush().map_err(|error| error.to_string()));
        if let Some(path) = &self.summary {
            let AccessCounts { reads, writes, interrupts, requests } = board.counts();
            let summary = Summary {
                digest: board.digest(),
                reads,
                writes,
                interrupts,
                requests,
                last_access_ns: last_access.since(self.start).0,
                late_ns: late.0,
                failed: board.failure().map(ToString::to_string),
            };
            let text = serde_json::to_string_pretty(&summary).map_err(|error| error.to_string());
            let written = text.and_then(|text| {
                let file = crate::output::create(path).and_then(|mut file| file.write_all((text + "\n").as_bytes()));
                file.map_err(|error| error.to_string())
            });
            note(&path.display().to_string(), written);
        }
        errors
    }
}

fn request(account: &RequestAccount, interrupt: Option<Instant>, start: Instant) -> RecordedRequest {
    let ns = |at: Instant| at.since(start).0;
    RecordedRequest {
        command: account.command,
        argument: account.argument,
        blocks: account.blocks,
        issued_ns: ns(account.issued),
        answered_ns: ns(account.answered),
        crossed_ns: ns(account.crossed),
        stopped_ns: account.stopped.map(ns),
        done_ns: ns(account.done),
        interrupt_ns: interrupt.map(ns),
        errors: account.errors,
    }
}
