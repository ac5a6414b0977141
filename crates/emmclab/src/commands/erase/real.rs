//! A device or a file of this machine as target, in a session: an eMMC by its own commands, anything else by the
//! kernel's.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use emmc_analysis::erase::{self, Ended, EraseKind, Geometry, Offer};
use emmc_clone::allocation;
use emmc_linux::LivePort;
use emmc_linux::block_io::{BlockIo, Opening, TargetHandle};
use emmc_linux::session::{Keep, Session, SessionError};
use emmc_linux::usage::{Holder, Occupied, occupied};
use emmc_port::{BlockTarget, CardData, Consent, TargetKind};
use emmc_regs::{Area, CardKind};
use emmc_workload::Unwatched;

use super::job::{Erasable, Job, UNSUPPORTED};
use super::{Done, EraseDocument, area_geometry, consent, no_areas, of_card, unable};
use crate::cli::EraseArgs;
use crate::commands::clone::place::{Place, Window};
use crate::commands::clone::real::{RealPlace, area_node, refuse_part};
use crate::save::Refused;
use crate::signals::stop_by_signal;

/// One discard of the kernel asks for at most this much, so that a signal ends the work soon. Unit: bytes.
const CHUNK_BYTES: u64 = 256 << 20;

/// An eMMC with its commands, while the kernel grants it to nobody else.
struct Emmc {
    port: LivePort,
    geometry: Geometry,
}

struct Held {
    opened: BlockIo,
    emmc: Option<Emmc>,
    is_device: bool,
    consent: Consent,
    begun: Instant,
}

impl Erasable for Held {
    fn read(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<(), String> {
        let content = self.opened.content().ok_or("no content")?;
        let done = content.read_into(offset_bytes, into).map_err(|error| error.to_string())?;
        done.error.map_or(Ok(()), Err)
    }

    fn erase(&mut self, kind: EraseKind, chunk: [u64; 2]) -> Result<(), Ended> {
        if let Some(Emmc { port, geometry }) = &mut self.emmc {
            return Ok(erase::on_card(port, kind, geometry, chunk, self.consent)?);
        }
        let [at, bytes] = [chunk[0], chunk[1] - chunk[0]];
        let done = match kind {
            EraseKind::Discard => self.opened.discard(at, bytes),
            EraseKind::SecureErase => self.opened.secure_discard(at, bytes),
            EraseKind::Zero => self.opened.zero(at, bytes),
            _ => Err(std::io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        };
        done.map_err(|error| match error.raw_os_error() {
            // Known before the first byte.
            Some(libc::EOPNOTSUPP) => Ended::Unsupported("the kernel does not support that for it".into()),
            _ => Ended::Lost(error.to_string()),
        })
    }

    fn sanitize(&mut self) -> Ended {
        match &mut self.emmc {
            Some(Emmc { port, .. }) => erase::sanitize(port, self.consent),
            None => Ended::Refused("sanitize is of an eMMC".into()),
        }
    }

    fn finish(&mut self) {
        if self.is_device {
            self.opened.forget_cached();
        }
    }

    fn chunk_bytes(&self, kind: EraseKind) -> u64 {
        self.emmc.as_ref().map_or(CHUNK_BYTES, |emmc| emmc.geometry.chunk_bytes(kind))
    }

    fn erased(&self) -> Vec<u8> {
        match &self.emmc {
            Some(emmc) => vec![emmc.geometry.erased_byte],
            None => vec![0, 0xff],
        }
    }

    fn now_ms(&mut self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }
}

/// A step of a session; what was refused for safety has its exit code, what cannot be opened is not supported.
fn done<T>(name: &str, step: Result<T, SessionError>) -> anyhow::Result<T> {
    step.map_err(|error| match error {
        SessionError::Refused(why) => Refused(format!("{why}; nothing was sent")).into(),
        SessionError::Target(error) => {
            let text = error.to_string();
            let text = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text);
            unable(name, format!("{text}; nothing was sent"))
        }
        error @ SessionError::OutOfOrder { .. } => error.into(),
    })
}

/// What the target is, and what it has.
struct Found {
    card: Option<(CardData, Geometry)>,
    is_device: bool,
    size_bytes: u64,
    sector_bytes: u32,
    /// Of a file that is open for reading it is not known.
    can_discard: Option<bool>,
}

impl Found {
    fn of(args: &EraseArgs, seen: &BlockIo) -> anyhow::Result<Self> {
        let shape = seen.shape();
        let card = emmc(args)?;
        if let Some((_, geometry)) = &card {
            let [of_kernel, of_card] = [shape.size_bytes, geometry.size_bytes];
            if geometry.area != Area::User && of_kernel != of_card {
                let what = format!("{of_kernel} bytes for Linux, {of_card} by its registers; nothing was sent");
                return Err(Refused(format!("{}: {}: {what}", args.target, geometry.area)).into());
            }
        }
        Ok(Self {
            is_device: shape.kind == TargetKind::Device,
            size_bytes: card.as_ref().map_or(shape.size_bytes, |(_, geometry)| geometry.size_bytes),
            sector_bytes: if shape.kind == TargetKind::Device { shape.sector_bytes } else { 512 },
            can_discard: (shape.kind == TargetKind::Device).then_some(shape.can_trim),
            card,
        })
    }

    fn document(&self, args: &EraseArgs, job: &Job) -> EraseDocument {
        if let Some((card, geometry)) = &self.card {
            return of_card(card, args, job, geometry);
        }
        EraseDocument {
            action: if job.kinds.is_empty() { "list" } else { "erase" },
            target: args.target.clone(),
            way: "kernel",
            size_bytes: Some(self.size_bytes),
            ranges: job.ranges.clone(),
            kinds: self.offers(),
            ..EraseDocument::default()
        }
    }

    fn offers(&self) -> Vec<Offer> {
        erase::offers_of_kernel(self.is_device, self.can_discard, self.sector_bytes.into())
    }
}

/// The card that the arguments name, if it is an eMMC, and its area.
///
/// Errors: those of [`area_geometry`].
fn emmc(args: &EraseArgs) -> anyhow::Result<Option<(CardData, Geometry)>> {
    let name = args.target.as_str();
    let card = if emmc_linux::is_card_name(name) { Some(crate::source::open_one(name, None)?) } else { None };
    match card.filter(|card| card.kind != Some(CardKind::Sd)) {
        Some(card) => {
            let geometry = area_geometry(&card, args, "its EXT_CSD cannot be read: requires root; nothing was sent")?;
            Ok(Some((card, geometry)))
        }
        None if args.area.is_some() => Err(no_areas(args)),
        None => Ok(None),
    }
}

/// The device of the area that the arguments name: commands to it go to that area, because the kernel sets
/// PARTITION_ACCESS before each one.
///
/// Source: Linux `drivers/mmc/core/block.c`, `__mmc_blk_ioctl_cmd`, `mmc_blk_part_switch`.
///
/// Errors: those of [`emmc`]; the kernel has no such device.
fn area(args: &EraseArgs, whole: PathBuf) -> anyhow::Result<PathBuf> {
    if args.area.is_none() || emmc(args)?.is_none_or(|(_, geometry)| geometry.area == Area::User) {
        return Ok(whole);
    }
    let node = area_node(&whole, args.area().name());
    let what = "no such device: the kernel has none for this area; nothing was sent";
    if node.exists() { Ok(node) } else { Err(unable(&node.display().to_string(), what)) }
}

/// Where a partition lies.
fn partition(name: &str, seen: BlockIo, found: &Found, number: u32) -> anyhow::Result<[u64; 2]> {
    let mut place = RealPlace::held(name, seen);
    let size = place.areas().first().map_or(0, |area| area.size_bytes);
    let map = allocation::map(&mut Window::new(&mut place, 0), size, found.sector_bytes.into());
    let parts = map.map_err(|error| unable(name, error))?.parts;
    let part = parts.into_iter().find(|part| part.partition == Some(number));
    let part = part.ok_or_else(|| Refused(format!("{name}: has no partition {number}; nothing was sent")))?;
    Ok([part.from_bytes, part.to_bytes])
}

fn node(name: &str) -> anyhow::Result<PathBuf> {
    if let Err(error) = refuse_part(name) {
        let what = "and its part by --partition, --range or --area; nothing was sent";
        return Err(Refused(format!("{error}, {what}")).into());
    }
    let path = emmc_linux::card_node(name).unwrap_or_else(|| name.into());
    if path.exists() { Ok(path) } else { Err(unable(name, "no such device or file")) }
}

/// Lists what a target has, or erases it.
pub(super) fn erase(args: &EraseArgs, is_quiet: bool) -> anyhow::Result<EraseDocument> {
    let name = args.target.as_str();
    let path = area(args, node(name)?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let session = Session::place(&path, name, &stop).map_err(|error| unable(name, error))?;
    let what = "expected a block device, a file, or the folder of a virtual card";
    let mut session = session.ok_or_else(|| unable(name, what))?;
    if matches!(args.area(), Area::Boot(_)) {
        session = session.unlocking();
    }
    let seen = done(name, session.look(&Opening::plain(false, &stop)))?;
    let found = Found::of(args, &seen)?;
    let job = Job::new(args, found.size_bytes, |number| partition(name, seen, &found, number))?;
    let mut document = found.document(args, &job);
    if job.kinds.is_empty() {
        let seen = occupied(&path, Holder::Nobody).map_err(|error| unable(name, error))?;
        // The kernel holds boot areas read-only until they are to be written.
        let is_boot = matches!(args.area(), Area::Boot(_));
        let uses = seen.uses.into_iter().filter(|text| !is_boot || !text.ends_with("is read-only"));
        document.contents.extend(seen.contents.into_iter().chain(uses));
        return Ok(document);
    }
    job.check(name, &document.kinds, found.size_bytes)?;
    // Root may write it all the same, but somebody did not want that.
    if !found.is_device && std::fs::metadata(session.handle().path()).is_ok_and(|found| found.permissions().readonly())
    {
        return Err(unable(name, "read-only: its mode allows nobody to write; nothing was sent"));
    }
    document.contents.extend(done(name, session.check())?.contents.iter().cloned());
    let mut emmc = match &found.card {
        Some((_, geometry)) => {
            // The card behind the handle, whatever its name leads to later.
            let port = LivePort::open(session.handle().path()).map_err(|error| unable(name, error))?;
            Some(Emmc { port, geometry: *geometry })
        }
        None => None,
    };
    if let (Some(Emmc { port, geometry }), Some((card, _))) = (&mut emmc, &found.card) {
        job.refuse_protected(name, card, port, geometry)?;
    }
    let mut agreed = None;
    let asked = session.consent([0, found.size_bytes], |seen| {
        let seen = Occupied { contents: document.contents.clone(), ..seen.clone() };
        let answer = consent::ask(&seen, found.is_device, &job, &document.kinds, (args, is_quiet));
        agreed = Some(answer.map_err(|refused| refused.0)?);
        Ok(())
    });
    done(name, asked)?;
    let consent = agreed.ok_or_else(|| Refused(format!("{name}: nobody agreed; nothing was sent")))?;
    stop_by_signal(&stop)?;
    done(name, session.hold(&Opening::plain(true, &stop)))?;
    done(name, session.save([0, 0], Keep::Nowhere, &mut Unwatched))?;
    document.began_at = super::now();
    let filled = &mut document;
    let work = |opened: BlockIo, _: &TargetHandle| {
        let is_device = found.is_device;
        let mut held = Held { opened, emmc, is_device, consent, begun: Instant::now() };
        job.run(&mut held, &stop, filled);
    };
    let carried = done(name, session.overwrite(work, &mut Unwatched))?;
    carried.result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    document.ended_at = super::now();
    match document.done.as_slice() {
        [Done { kind, ended: UNSUPPORTED, erased_bytes: 0, reason, .. }] => {
            let why = reason.as_deref().unwrap_or_default();
            Err(unable(name, format!("has no {}: {why}; nothing was erased", kind.name())))
        }
        _ => Ok(document),
    }
}
