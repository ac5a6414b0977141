//! A card of this machine as target, in a session: identified, in no use, agreed to, held exclusively.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_analysis::plan::{CardIdentity, Plan, Standing};
use emmc_linux::LivePort;
use emmc_linux::block_io::{BlockIo, Opening, TargetHandle};
use emmc_linux::session::{Keep, Session, SessionError};
use emmc_linux::usage::Occupied;
use emmc_port::{CardData, Consent, SourceError};
use emmc_workload::Unwatched;

use super::{ApplyDocument, consent, port_error, unsupported, work};
use crate::cli::ApplyArgs;
use crate::save::Refused;
use crate::signals::stop_by_signal;

/// The whole device of a card.
///
/// Errors: a part of a card, which is refused; no card.
pub(in crate::commands) fn check_name(name: &str) -> anyhow::Result<PathBuf> {
    if let Some(part) = emmc_linux::card_part(name) {
        let whole = emmc_linux::card_node(name).unwrap_or_default();
        let what =
            format!("{name}: {part} is a part of a card: name the whole card, {}; nothing was sent", whole.display());
        return Err(Refused(what).into());
    }
    match emmc_linux::card_node(name) {
        Some(node) => Ok(node),
        None => unsupported(name, "not the device of an eMMC; expected /dev/mmcblkN"),
    }
}

fn read_failed(name: &str, reason: impl ToString) -> anyhow::Error {
    SourceError::Unsupported { name: name.into(), reason: reason.to_string() }.into()
}

/// A step of a session; what was refused for safety has its exit code, what cannot be opened is not supported.
pub(in crate::commands) fn done<T>(name: &str, step: Result<T, SessionError>) -> anyhow::Result<T> {
    step.map_err(|error| match error {
        SessionError::Refused(why) => {
            let why = why.strip_suffix("; nothing was sent").unwrap_or(&why);
            Refused(format!("{why}; nothing was sent")).into()
        }
        SessionError::Target(error) => read_failed(name, format!("{error}; nothing was sent")),
        error @ SessionError::OutOfOrder { .. } => error.into(),
    })
}

/// A whole card of this machine that nobody uses, at the beginning of its session.
struct Placed {
    node: PathBuf,
    stop: Arc<AtomicBool>,
    session: Session,
    port: LivePort,
    card: CardData,
}

impl Placed {
    /// Errors: [`Refused`]: a part of a card, in use; no card.
    fn at(name: &str) -> anyhow::Result<Self> {
        let node = check_name(name)?;
        let stop = Arc::new(AtomicBool::new(false));
        let session = Session::place(&node, name, &stop).map_err(|error| read_failed(name, error))?;
        let Some(mut session) = session else { return unsupported(name, "not a block device") };
        done(name, session.check())?;
        // The card behind the handle, whatever its name leads to later.
        let path = session.handle().path().to_owned();
        let port = LivePort::open(&path).map_err(|error| read_failed(name, error))?;
        let card = crate::source::open_one(&node.to_string_lossy(), None)?;
        Ok(Self { node, stop, session, port, card })
    }
}

/// Works on a whole card of this machine that nobody uses: looks at it, asks, holds it exclusively, looks again, works.
///
/// `look` says whether the card can be worked on, and what about it must not change until then.
/// Errors: those of `look`; [`Refused`]: a part of a card, in use, not agreed to, another card by now; no card.
pub(in crate::commands) fn work_on_held<C: PartialEq, R>(
    name: &str,
    look: impl Fn(&CardData) -> anyhow::Result<C>,
    ask: impl FnOnce(&CardData, &C, &Occupied) -> Result<Consent, Refused>,
    work: impl FnOnce(&mut LivePort, (&CardData, C), Consent, &Arc<AtomicBool>) -> R,
) -> anyhow::Result<R> {
    let Placed { node, stop, mut session, mut port, card } = Placed::at(name)?;
    let before = look(&card)?;
    let mut agreed = None;
    let asked = session.consent([0, 0], |found| {
        agreed = Some(ask(&card, &before, found).map_err(|refused| refused.0)?);
        Ok(())
    });
    done(name, asked)?;
    let Some(consent) = agreed else { return Err(Refused(format!("{name}: nobody agreed; nothing was sent")).into()) };
    stop_by_signal(&stop)?;
    done(name, session.hold(&Opening::plain(true, &stop)))?;
    done(name, session.save([0, 0], Keep::Nowhere, &mut Unwatched))?;
    // Nobody else can hold it now: what it is, is compared once more.
    let again = crate::source::open_one(&node.to_string_lossy(), None)?;
    if again.cid != card.cid || look(&again)? != before {
        return Err(Refused(format!("{name}: the card is another one by now; nothing was sent")).into());
    }
    let carried = session.overwrite(
        |held: BlockIo, _: &TargetHandle| {
            let result = work(&mut port, (&card, before), consent, &stop);
            drop(held);
            result
        },
        &mut Unwatched,
    );
    Ok(done(name, carried)?.result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Where a card stands.
pub(super) fn standing(plan: &Plan, name: &str) -> anyhow::Result<Standing> {
    let node = check_name(name)?;
    let mut port = LivePort::open(&node).map_err(|error| read_failed(name, error))?;
    plan.standing(&mut port).map_err(|error| port_error(name, &error))
}

/// Carries a plan out on a card.
pub(super) fn apply(plan: &Plan, name: &str, args: &ApplyArgs, is_quiet: bool) -> anyhow::Result<ApplyDocument> {
    let Placed { stop, mut session, mut port, card, .. } = Placed::at(name)?;
    let identity = CardIdentity::of(&card);
    let mut document = work::document("apply", plan, args, identity.clone());
    if work::check(plan, &identity, &mut port, args)?.is_none() {
        document.standing = plan.standing(&mut port).ok();
        return Ok(document);
    }
    let consent = agreed(&mut session, plan, &identity, args, is_quiet)?;
    stop_by_signal(&stop)?;
    done(name, session.hold(&Opening::plain(true, &stop)))?;
    done(name, session.save([0, 0], Keep::Nowhere, &mut Unwatched))?;
    document.snapshot = Some(work::save_snapshot(plan, &card, args)?.display().to_string());
    // Nobody else can hold it now: what it holds is compared once more.
    if work::check(plan, &identity, &mut port, args)?.is_none() {
        document.standing = plan.standing(&mut port).ok();
        return Ok(document);
    }
    let filled = &mut document;
    let carried = session.overwrite(
        |held: BlockIo, _: &TargetHandle| {
            work::carry(plan, &mut port, consent, &stop, filled);
            drop(held);
        },
        &mut Unwatched,
    );
    done(name, carried)?.result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    document.next = work::next(plan, document.standing.as_ref(), args);
    Ok(document)
}

fn agreed(
    session: &mut Session,
    plan: &Plan,
    identity: &CardIdentity,
    args: &ApplyArgs,
    is_quiet: bool,
) -> anyhow::Result<Consent> {
    let mut agreed = None;
    let asked = session.consent([0, 0], |_| {
        agreed = Some(consent::ask(plan, identity, args, is_quiet)?);
        Ok(())
    });
    done(&args.target, asked)?;
    agreed.ok_or_else(|| Refused(format!("{}: nobody agreed; nothing was sent", args.target)).into())
}
