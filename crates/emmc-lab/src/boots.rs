//! Several boots of one run: the script restarts its machine, and the card goes on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use emmc_serve::pci::RecordedRequest;
use sha2::{Digest, Sha256};

use crate::LabError;
use crate::account::{Mark, Phase, phases};
use crate::run::{Accesses, REQUESTS, SUMMARY};

/// How a script restarts its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// It shuts down, and starts again.
    Orderly,
    /// Machine and card lose their power now.
    PowerLoss,
}

/// The record of the boots so far.
#[derive(Debug, Default)]
pub(crate) struct Boots {
    records: Vec<Vec<RecordedRequest>>,
    accesses: Vec<Accesses>,
    phases: Vec<Phase>,
}

impl Boots {
    /// The number of the boot that is next; the first is 1.
    pub(crate) fn next(&self) -> u32 {
        self.accesses.len() as u32 + 1
    }

    /// Takes the record of a boot from the run's folder; it began `base_ns` after the first one.
    ///
    /// Errors: the record cannot be read.
    pub(crate) fn take(&mut self, folder: &Path, marks: &[Mark], base_ns: u64) -> Result<(), LabError> {
        let read = |name: &str| {
            let path = folder.join(name);
            File::open(&path).map_err(LabError::file(&path))
        };
        let mut accesses: Accesses = serde_json::from_reader(BufReader::new(read(SUMMARY)?))
            .map_err(|error| LabError::Serve(format!("the summary of the run: {error}")))?;
        let boot = self.next();
        for mut phase in phases(BufReader::new(read(REQUESTS)?), marks, accesses.last_access_ns)? {
            phase.boot = boot;
            phase.start_s += base_ns as f64 / 1e9;
            self.phases.push(phase);
        }
        accesses.last_access_ns += base_ns;
        self.accesses.push(accesses);
        let mut record = Vec::new();
        for line in BufReader::new(read(REQUESTS)?).lines() {
            let line = line.map_err(LabError::system("the record of requests"))?;
            let mut request: RecordedRequest = serde_json::from_str(&line)
                .map_err(|error| LabError::Serve(format!("the record of requests: {error}")))?;
            request.delay(base_ns);
            record.push(request);
        }
        self.records.push(record);
        Ok(())
    }

    /// The accesses and phases of all boots; the record of all is in the run's folder.
    ///
    /// Errors: the system's.
    pub(crate) fn finish(mut self, folder: &Path) -> Result<(Accesses, Vec<Phase>), LabError> {
        let Some(mut last) = self.accesses.pop() else { return Err(LabError::Serve("no boot".into())) };
        if self.accesses.is_empty() {
            return Ok((last, self.phases));
        }
        let path = folder.join(REQUESTS);
        let written = fs::File::create(&path).map(BufWriter::new).and_then(|mut file| {
            for request in self.records.iter().flatten() {
                serde_json::to_writer(&mut file, request).map_err(std::io::Error::from)?;
                file.write_all(b"\n")?;
            }
            file.flush()
        });
        written.map_err(LabError::file(&path))?;
        // The digest of all is that of their digests.
        let mut digest = Sha256::new();
        for boot in self.accesses.iter().chain([&last]) {
            digest.update(&boot.digest);
        }
        last.digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        for boot in &self.accesses {
            last.reads += boot.reads;
            last.writes += boot.writes;
            last.interrupts += boot.interrupts;
            last.requests += boot.requests;
        }
        Ok((last, self.phases))
    }
}
