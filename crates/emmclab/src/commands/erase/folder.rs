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
use emmc_sim::command_target;
use emmc_units::{Bytes, Instant};

use super::job::{Erasable, Job};
use super::{EraseDocument, area_geometry, consent, of_card, unable};
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
        let read = self.port.0.submit(self.geometry.area, Request::Read { offset, into });
        read.map(drop).map_err(|error| error.to_string())
    }

    fn erase(&mut self, kind: EraseKind, chunk: [u64; 2]) -> Result<(), Ended> {
        Ok(erase::on_card(&mut self.port, kind, &self.geometry, chunk, self.consent)?)
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

/// The partitions and filesystems of an area: as lines, and as ranges by number.
fn contents(name: &str, area: Area) -> anyhow::Result<Vec<allocation::Part>> {
    let (mut place, _) = VirtualPlace::source(name)?;
    let found = place.areas().iter().position(|found| found.name == area.name());
    let Some(index) = found else { return Ok(Vec::new()) };
    let size = place.areas()[index].size_bytes;
    let map = allocation::map(&mut Window::new(&mut place, index), size, 512);
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
    let parts = if crate::virtual_card::is_folder(folder) { contents(folder, args.area())? } else { Vec::new() };
    let stop = Arc::new(AtomicBool::new(false));
    let mut prepared = || -> anyhow::Result<(Geometry, Job, EraseDocument, Consent)> {
        let failed = |error: PortError| unable(&args.target, error);
        // Before the first command: an SD card has others.
        let card = port.with(8, |card, _| Ok(card.device().card_data(&args.target))).map_err(failed)?;
        let geometry = area_geometry(&card, args, "not an eMMC; nothing was sent")?;
        let card = port.identify(&args.target)?;
        let job = Job::new(args, geometry.size_bytes, |number| {
            let part = parts.iter().find(|part| part.partition == Some(number));
            let part = part.ok_or_else(|| Refused(format!("{}: has no partition {number}", args.target)))?;
            Ok([part.from_bytes, part.to_bytes])
        })?;
        let mut document = of_card(&card, args, &job, &geometry);
        document.contents.extend(parts.iter().filter_map(line));
        job.check(&args.target, &document.kinds, geometry.size_bytes)?;
        port.with(6, |card, now| command_target::select(card, now, geometry.area)).map_err(failed)?;
        job.refuse_protected(&args.target, &card, &mut port as &mut dyn CommandPort, &geometry)?;
        let contents = document.contents.clone();
        let (name, size_bytes) = (args.target.clone(), geometry.size_bytes);
        let model = args.area.map(erase::called);
        let found = Occupied { name, model, size_bytes, contents, ..Occupied::default() };
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
