//! A virtual card in a folder as target: every command is recorded before the next, so that the end of the process at
//! any moment is a power cut for the card.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_analysis::erase::{self, Ended, EraseKind, Geometry};
use emmc_card::device::Area;
use emmc_clone::allocation;
use emmc_linux::usage::Occupied;
use emmc_port::{CommandPort, Consent, PortError};
use emmc_serve::block::{Block, Request};
use emmc_units::{Bytes, Instant};

use super::job::{Erasable, Job, refuse_protected};
use super::{EraseDocument, consent, of_card, unable};
use crate::cli::EraseArgs;
use crate::commands::apply::folder::FolderPort;
use crate::commands::clone::folder::VirtualPlace;
use crate::commands::clone::place::{Place, Window};
use crate::save::Refused;
use crate::signals::stop_by_signal;

struct FolderCard {
    port: FolderPort,
    geometry: Geometry,
    consent: Consent,
}

impl Erasable for FolderCard {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        let read = self.port.0.submit(Area::User, Request::Read { offset, into });
        read.map(drop).map_err(|error| error.to_string())
    }

    fn erase(&mut self, kind: EraseKind, chunk: [u64; 2]) -> Result<(), PortError> {
        erase::on_card(&mut self.port, kind, &self.geometry, chunk, self.consent)
    }

    fn sanitize(&mut self) -> Ended {
        erase::sanitize(&mut self.port, self.consent)
    }

    fn finish(&mut self) {}

    fn chunk_bytes(&self, kind: EraseKind) -> u64 {
        self.geometry.chunk_bytes(kind)
    }

    fn erased(&self) -> Vec<u8> {
        vec![self.geometry.erased_byte]
    }

    fn now_ms(&mut self) -> u64 {
        self.port.0.now().since(Instant::START).0 / 1_000_000
    }
}

/// Its partitions and filesystems: as lines, and as ranges by number.
fn contents(name: &str) -> anyhow::Result<Vec<allocation::Part>> {
    let (mut place, _) = VirtualPlace::source(name)?;
    let size = place.areas().first().map_or(0, |area| area.size_bytes);
    let map = allocation::map(&mut Window::new(&mut place, 0), size, 512);
    Ok(map.map_err(|error| unable(name, error))?.parts)
}

fn line(part: &allocation::Part) -> Option<String> {
    let size = Bytes(part.to_bytes - part.from_bytes).rounded();
    let what = part.content.clone().unwrap_or_else(|| "no known content".into());
    match (part.partition, &part.content) {
        (Some(number), _) => Some(format!("partition {number}: {size}, {what}")),
        (None, Some(_)) => Some(format!("{size}, {what}")),
        (None, None) => None,
    }
}

/// Erases a card in a folder, which is powered on for it, and off again at its end.
pub(super) fn erase(folder: &str, args: &EraseArgs, is_quiet: bool) -> anyhow::Result<EraseDocument> {
    let mut port = FolderPort::open(&args.target, folder)?;
    // Its folder is locked: nobody changes it in between.
    let parts = if crate::virtual_card::is_folder(folder) { contents(folder)? } else { Vec::new() };
    let stop = Arc::new(AtomicBool::new(false));
    let card = port.identify(&args.target)?;
    let mut prepared = || -> anyhow::Result<(Geometry, Job, EraseDocument, Consent)> {
        let geometry = Geometry::of(&card);
        let geometry = geometry.ok_or_else(|| unable(&args.target, "not an eMMC; nothing was sent"))?;
        let job = Job::new(args, geometry.size_bytes, |number| {
            let part = parts.iter().find(|part| part.partition == Some(number));
            let part = part.ok_or_else(|| Refused(format!("{}: has no partition {number}", args.target)))?;
            Ok([part.from_bytes, part.to_bytes])
        })?;
        let mut document = of_card(&card, args, &job, geometry.size_bytes);
        document.contents = parts.iter().filter_map(line).collect();
        job.check(&args.target, &document.kinds, geometry.size_bytes)?;
        if job.kinds.iter().any(|kind| kind.has_range()) {
            refuse_protected(&args.target, &mut port as &mut dyn CommandPort, &geometry, &job.ranges)?;
        }
        let contents = document.contents.clone();
        let (name, size_bytes) = (args.target.clone(), geometry.size_bytes);
        let found = Occupied { name, size_bytes, contents, ..Occupied::default() };
        let consent = consent::ask(&found, false, &job, &document.kinds, (args, is_quiet))?;
        stop_by_signal(&stop)?;
        Ok((geometry, job, document, consent))
    };
    let (geometry, job, mut document, consent) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => {
            port.0.finish()?;
            return Err(error);
        }
    };
    document.began_at = super::now();
    let mut target = FolderCard { port, geometry, consent };
    job.run(&mut target, &stop, &mut document);
    document.ended_at = super::now();
    target.port.0.finish()?;
    Ok(document)
}
