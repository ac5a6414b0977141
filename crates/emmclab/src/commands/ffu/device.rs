//! A card of this machine as target, in a session: identified, in no use, agreed to, held exclusively.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_analysis::plan::CardIdentity;
use emmc_linux::LivePort;
use emmc_linux::block_io::{BlockIo, Opening, TargetHandle};
use emmc_linux::session::{Keep, Session};
use emmc_workload::Unwatched;

use super::update::Wanted;
use super::{FfuDocument, refused, unable};
use crate::commands::apply::device::{check_name, done};
use crate::signals::stop_by_signal;

/// Updates its firmware.
pub(super) fn update(name: &str, wanted: &Wanted<'_>) -> anyhow::Result<FfuDocument> {
    let node = check_name(name)?;
    let stop = Arc::new(AtomicBool::new(false));
    let session = Session::place(&node, name, &stop).map_err(|error| unable(name, error))?;
    let mut session = session.ok_or_else(|| unable(name, "not a block device"))?;
    done(name, session.check())?;
    // The card behind the handle, whatever its name leads to later.
    let path = session.handle().path().to_owned();
    let mut port = LivePort::open(&path).map_err(|error| unable(name, error))?;
    let card = crate::source::open_one(&node.to_string_lossy(), None)?;
    let before = wanted.check(&card)?;
    let identity = CardIdentity::of(&card);
    let mut document = wanted.document(&identity, &before);
    let mut agreed = None;
    let asked = session.consent([0, 0], |_| {
        agreed = Some(wanted.ask(&identity, &before).map_err(|refused| refused.0)?);
        Ok(())
    });
    done(name, asked)?;
    let consent = agreed.ok_or_else(|| refused(name, "nobody agreed"))?;
    stop_by_signal(&stop)?;
    done(name, session.hold(&Opening::plain(true, &stop)))?;
    done(name, session.save([0, 0], Keep::Nowhere, &mut Unwatched))?;
    // Nobody else can hold it now: what it is, is compared once more.
    let again = crate::source::open_one(&node.to_string_lossy(), None)?;
    if again.cid != card.cid || wanted.check(&again)?.firmware != before.firmware {
        return Err(refused(name, "the card is another one by now"));
    }
    let filled = &mut document;
    let carried = session.overwrite(
        |held: BlockIo, _: &TargetHandle| {
            wanted.carry(&mut port, consent, &stop, filled);
            drop(held);
        },
        &mut Unwatched,
    );
    done(name, carried)?.result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok(document)
}
