//! The target of a restore: a device or a file in a session, a virtual card, or a new image file.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_linux::UnlockedArea;
use emmc_linux::block_io::{BlockIo, Opening, TargetHandle, open};
use emmc_linux::session::{Keep, Overwritten, Session, SessionError};
use emmc_linux::usage::{Holder, Occupied, occupied};
use emmc_port::{BlockTarget, TargetKind};
use emmc_report::visible;
use emmc_units::Bytes;
use emmc_workload::Unwatched;

use super::place::{Area, Place};
use super::put::{self, Counts, Pieces, Putting};
use super::real::{self, RealPlace, area_node};
use super::unable;
use crate::cli::{BenchArgs, TargetArgs};
use crate::commands::bench::consent::Question;
use crate::save::Refused;
use crate::signals::stop_by_signal;

/// The target for reading.
///
/// Errors: not there, in use by a mount.
pub(super) fn look(name: &str, stop: &Arc<AtomicBool>) -> anyhow::Result<Box<dyn Place>> {
    #[cfg(feature = "sim")]
    if name.starts_with("sim:") {
        return Ok(Box::new(super::folder::VirtualPlace::source(name)?.0));
    }
    let card = emmc_linux::is_card_name(name).then(|| crate::source::open_one(name, None)).transpose()?;
    Ok(Box::new(RealPlace::source(name, card.as_ref(), false, stop)?.0))
}

/// Overwrites a target.
///
/// Errors: [`Refused`]: in use, too small, not agreed to; the target's.
pub(super) fn overwrite(
    name: &str,
    pieces: &mut dyn Pieces,
    how: &Putting,
    args: &TargetArgs,
    from: &str,
    stop: &Arc<AtomicBool>,
    is_json: bool,
) -> anyhow::Result<Counts> {
    let is_quiet = is_json && !std::io::IsTerminal::is_terminal(&std::io::stdin());
    let ask = Ask { name, from, args, is_quiet };
    #[cfg(feature = "sim")]
    if name.starts_with("sim:") {
        return on_folder(pieces, how, &ask, stop);
    }
    real::refuse_part(name)?;
    let path = emmc_linux::card_node(name).unwrap_or_else(|| name.into());
    let is_new = !path.exists() && !path.starts_with("/dev");
    if is_new {
        return in_new_file(&path, name, pieces, how, stop);
    }
    if !path.exists() {
        return Err(unable(name, "no such device"));
    }
    in_session(&path, pieces, how, &ask, stop)
}

/// What the user is asked.
struct Ask<'a> {
    name: &'a str,
    from: &'a str,
    args: &'a TargetArgs,
    is_quiet: bool,
}

impl Ask<'_> {
    fn ask(&self, found: &Occupied, is_device: bool, how: &Putting) -> Result<(), Refused> {
        let Occupied { name, model, size_bytes, contents, .. } = found;
        // The text is printed line by line: a name must not add lines.
        let mut told = format!("{}: {}", visible(self.name), Bytes(*size_bytes).rounded());
        if let Some(model) = model {
            let _ = write!(told, ", {}", visible(model));
        }
        let _ = write!(told, "\n  its content ({}) is lost", how.areas.join(", "));
        for line in contents {
            let _ = write!(told, "\n    {}", visible(line));
        }
        let _ = write!(told, "\n  and replaced by {}", visible(self.from));
        let without = "its content would be lost: --destroy allows that";
        let question = Question { told, without, called: self.name, name, is_device, is_quiet: self.is_quiet };
        let TargetArgs { destroy, yes_i_mean, .. } = self.args.clone();
        question.ask(&BenchArgs { destroy, yes_i_mean, ..BenchArgs::default() })
    }
}

/// A new image: whole under its name, or not there.
fn in_new_file(
    path: &Path,
    name: &str,
    pieces: &mut dyn Pieces,
    how: &Putting,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Counts> {
    let Some(user) = pieces.shapes().iter().find(|area| area.name == "user") else {
        return Err(unable(name, "the clone has no user area"));
    };
    if how.areas != ["user"] {
        return Err(Refused(format!("{name}: an image file has the user area only")).into());
    }
    let area = Area { name: "user".into(), size_bytes: user.size_bytes, sector_bytes: real::IMAGE_SECTOR_BYTES };
    let mapping = put::fit(name, pieces, &[area], how)?;
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let failed = |error: std::io::Error| unable(name, format!("cannot write: {error}"));
    let file = if how.resume && part.exists() {
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        File::options().write(true).custom_flags(no_link).open(part).map_err(failed)?
    } else {
        File::create_new(part).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let what = "of a restore that was interrupted: --resume continues it, or remove it";
                Refused(format!("{}: {what}", part.display())).into()
            }
            _ => failed(error),
        })?
    };
    file.set_len(user.size_bytes).map_err(failed)?;
    stop_by_signal(stop)?;
    let opened = open(part, name, &Opening::plain(true, stop)).map_err(|error| unable(name, error))?;
    let mut place = RealPlace::held(name, opened);
    let counts = put::put(&mut place, pieces, (&mapping, how), stop)?;
    file.sync_all().and_then(|()| std::fs::rename(part, path)).map_err(failed)?;
    Ok(counts)
}

/// A step of a session; what was refused for safety has its exit code, what cannot be opened is not supported.
fn done<T>(name: &str, step: Result<T, SessionError>) -> anyhow::Result<T> {
    step.map_err(|error| match error {
        SessionError::Refused(why) => Refused(format!("{why}; nothing was written")).into(),
        SessionError::Target(error) => {
            let text = error.to_string();
            let text = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text);
            unable(name, format!("{text}; nothing was written"))
        }
        error @ SessionError::OutOfOrder { .. } => error.into(),
    })
}

fn in_session(
    path: &Path,
    pieces: &mut dyn Pieces,
    how: &Putting,
    ask: &Ask<'_>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Counts> {
    let name = ask.name;
    let session = Session::place(path, name, stop).map_err(|error| unable(name, error))?;
    let Some(mut session) = session else {
        return Err(unable(name, "expected a block device, an image file, or sim:FOLDER of a virtual card"));
    };
    let seen = done(name, session.look(&Opening::plain(false, stop)))?;
    let is_device = seen.shape().kind == TargetKind::Device;
    let size_bytes = seen.shape().size_bytes;
    let user = RealPlace::held(name, seen).areas().to_vec();
    let areas = areas(path, user, how)?;
    let mapping = put::fit(name, pieces, &areas, how)?;
    done(name, session.check())?;
    done(name, session.consent([0, size_bytes], |found| ask.ask(found, is_device, how).map_err(|refused| refused.0)))?;
    stop_by_signal(stop)?;
    done(name, session.hold(&Opening::plain(true, stop)))?;
    done(name, session.save([0, 0], Keep::Nowhere, &mut Unwatched))?;
    let work = |held: BlockIo, _: &TargetHandle| -> anyhow::Result<Counts> {
        let mut place = RealPlace::held(name, held);
        let mut unlocked = Vec::new();
        for area in areas.iter().skip(1) {
            let (lock, opened) = open_area(path, &area.name, stop)?;
            unlocked.push(lock);
            place.add(&area.name, opened);
        }
        let counts = put::put(&mut place, pieces, (&mapping, how), stop);
        drop(place);
        counts
    };
    let Overwritten { result, .. } = done(name, session.overwrite(work, &mut Unwatched))?;
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// The areas of a target: its user area, and those of the card that are to be written.
fn areas(path: &Path, user: Vec<Area>, how: &Putting) -> anyhow::Result<Vec<Area>> {
    let mut areas = user;
    for name in how.areas.iter().filter(|name| *name != "user") {
        let node = area_node(path, name);
        let called = node.display().to_string();
        let opened = open(&node, &called, &Opening::plain(false, &Arc::default()));
        let opened = opened.map_err(|error| unable(&called, format!("{error}; nothing was written")))?;
        let mut place = RealPlace::held(&called, opened);
        areas.extend(place.areas().first().map(|area| Area { name: name.clone(), ..area.clone() }));
        place.sync().ok();
    }
    Ok(areas)
}

/// Opens a hardware area for writing, unlocked by `force_ro` until the returned value is dropped.
fn open_area(path: &Path, area: &str, stop: &Arc<AtomicBool>) -> anyhow::Result<(UnlockedArea, BlockIo)> {
    let node = area_node(path, area);
    let called = node.display().to_string();
    let failed = |error: &dyn std::fmt::Display| unable(&called, error);
    let disk = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let lock = UnlockedArea::new(&disk).map_err(|error| failed(&error))?;
    let uses = occupied(&node, Holder::Nobody).map_err(|error| failed(&error))?.uses;
    if !uses.is_empty() {
        return Err(Refused(format!("{called}: in use: {}", uses.join("; "))).into());
    }
    let opened = open(&node, &called, &Opening::plain(true, stop)).map_err(|error| failed(&error))?;
    Ok((lock, opened))
}

/// A virtual card in a folder.
#[cfg(feature = "sim")]
fn on_folder(pieces: &mut dyn Pieces, how: &Putting, ask: &Ask<'_>, stop: &Arc<AtomicBool>) -> anyhow::Result<Counts> {
    let mut place = super::folder::VirtualPlace::target(ask.name)?;
    let mut put_there = || -> anyhow::Result<Counts> {
        let mapping = put::fit(ask.name, pieces, place.areas(), how)?;
        let size_bytes = place.areas().iter().map(|area| area.size_bytes).sum();
        let found = Occupied { name: ask.name.into(), size_bytes, ..Occupied::default() };
        ask.ask(&found, false, how)?;
        stop_by_signal(stop)?;
        put::put(&mut place, pieces, (&mapping, how), stop)
    };
    let counts = put_there();
    let finished = place.finish();
    let counts = counts?;
    finished?;
    Ok(counts)
}
