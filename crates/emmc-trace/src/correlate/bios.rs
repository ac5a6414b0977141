//! Bios before they are requests: queued, split, merged into a request.

use super::Correlator;
use super::open::{Open, Stage};
use super::threads::Origin;
use crate::event::{BlockEvent, Event, File, Flags, Op};
use crate::request::since;

impl Correlator {
    #[inline]
    pub(super) fn queue(&mut self, event: &Event, block: &BlockEvent) {
        self.counts.bios += 1;
        let from = if self.has_marks { Some(self.threads.queue(event.pid, event.at)) } else { None };
        self.room();
        let busy_mark = if self.has_inserts { 0 } else { self.device(block.device).busy.until(event.at) };
        let (_, open) = self.table.add(block, event.pid, event.at);
        (open.queued, open.busy_mark) = (Some(event.at), busy_mark);
        if self.processors.is_known(event.cpu) {
            open.work = self.processors.until(event.cpu, event.at);
        }
        let Some(Origin { call, access, mut file, is_journal, asked_by, parts }) = from else { return };
        if call.is_none() && (block.op != Op::Write || block.flags.has(Flags::META)) {
            // The kernel's thread does something else between two files.
            file = File::default();
        }
        (open.call, open.access, open.file) = (call, access, file);
        (open.is_journal, open.asked_by, open.parts) = (is_journal, asked_by, parts);
    }

    /// The first part keeps its place; the rest is a bio that is not queued again.
    pub(super) fn split(&mut self, event: &Event, block: &BlockEvent) {
        self.counts.splits += 1;
        let at = |open: &Open| {
            open.stage <= Stage::Got && open.op == block.op && block.other > 0 && block.other < open.sectors
        };
        let wanted = BlockEvent { sectors: block.sectors.max(1), ..*block };
        let Some(found) = self.table.find(&wanted, at) else {
            self.unpaired.merges_without_request += 1;
            return;
        };
        let Some(open) = self.table.get(found) else { return };
        let (first, sector) = (block.other, open.sector + u64::from(block.other));
        let rest = Open { sector, sectors: open.sectors - first, stage: Stage::Queued, ..*open };
        open.sectors = first;
        self.open(&Open { queued_last: event.at, ..rest });
    }

    pub(super) fn merge(&mut self, event: &Event, block: &BlockEvent, back: bool) {
        let own = self.table.find(block, |open| open.stage < Stage::Issued && open.op == block.op);
        let end = block.sector.wrapping_add(u64::from(block.sectors));
        // Without `block_getrq` a bio with a request is like one without.
        let first = if self.has_gets { Stage::Got } else { Stage::Queued };
        let takes = |open: &Open| {
            let is_own = own.is_some_and(|own| own.is_serial(open.serial));
            open.op == block.op && (first..=Stage::Inserted).contains(&open.stage) && !is_own
        };
        let target = if back {
            self.table.find_end((block.device, block.sector), takes)
        } else {
            self.table.find_newest((block.device, end), takes)
        };
        self.counts.merges += 1;
        let merged = own.and_then(|own| self.table.remove(own).copied());
        let Some(target) = target else {
            self.unpaired.merges_without_request += 1;
            return;
        };
        let Some(open) = self.table.get(target) else { return };
        // Without its own event, the bio was queued before the recording.
        let (count, delays, last) = match &merged {
            Some(bio) => {
                let delay = since(open.queued.unwrap_or(event.at), bio.queued.unwrap_or(event.at)).0;
                let count = bio.bios.0 + 1;
                (count, bio.bios.1.saturating_add(delay.saturating_mul(u64::from(count))), bio.queued_last)
            }
            None => (1, since(open.queued.unwrap_or(event.at), event.at).0, event.at),
        };
        open.bios = (open.bios.0.saturating_add(count), open.bios.1.saturating_add(delays));
        open.queued_last = open.queued_last.max(last);
        let (sector, sectors) = (open.sector, open.sectors.saturating_add(block.sectors));
        if back {
            self.table.extend(target, sectors);
        } else {
            self.table.restart(target, sector - u64::from(block.sectors).min(sector), sectors);
        }
    }
}
