//! A virtual card behind a board: the target of a benchmark as a program on that board sees it.
//!
//! | request | model |
//! |---|---|
//! | direct I/O | the program's own work and pre (one at a time: one queue thread for a card), the card's own time, post on another core |
//! | a write beyond the end of what was written before | the file grows: additional size and orphan list updates |
//! | such a write of less than a file system's block | the whole block, the rest of it zeros; the next write steps back into it |
//! | a FUA write (`through`) | if sync writes were published: data, then the commit of ext4's journal (system/host.rs) |
//! | a read through the page cache | if sync reads were published: fetched in windows, not ahead |
//! | any request through a page cache of known size | [`PageCache`](crate::PageCache) |
//! | a host from a file | its own costs of direct I/O, without a file system; every request is direct |
//!
//! Without a queue engine in hardware a core starts each transfer: the next one starts the board's gap after the end of
//! the last. Absent on purpose: the card (`SimulatedTarget`); several programs on one journal: their syncs are
//! serialised; writes through the page cache of a board with published spans only: they are modelled as direct I/O.

use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget, SimulatedTarget, TargetError, TargetFill, TargetShape};
use emmc_units::{Agenda, Instant, Nanos, SECTOR_BYTES};

use crate::Operation;
use crate::board::Board;
use crate::description::{HostDescription, RequestCosts};
use crate::page_cache::Pages;
use crate::system::{BIO_BYTES, CardOp, CardRequest, Host, HostModel, Spent};

/// A card behind a board.
#[derive(Debug)]
pub struct HostTarget<T> {
    card: T,
    shape: TargetShape,
    /// Read and write with direct I/O.
    models: Option<[HostModel; 2]>,
    /// The costs of direct I/O of a host from a file, in place of the models.
    costs: Option<RequestCosts>,
    /// A reader through the page cache and a synchronous writer.
    sync: Option<[(HostModel, Host); 2]>,
    pages: Option<Pages>,
    through_cache: bool,
    now: Instant,
    /// When the cores beside the queue thread's are free; empty: there is only one core.
    others: Vec<Instant>,
    queue_thread: Instant,
    /// Between two transfers; zero if an engine in hardware starts them.
    gap: Nanos,
    /// The end of the card's last transfer.
    card_free: Instant,
    /// The end of the file: the end of the data written so far. Unit: bytes.
    file_end: u64,
    /// The end of its blocks. Unit: bytes.
    allocated_end: u64,
    spent: Spent,
    /// When the card completes each, or the call returns.
    outstanding: Agenda<Outstanding>,
    /// Requests that are in the card's queue, by tag there.
    queued: Vec<(u64, Outstanding)>,
    tags: u64,
}

#[derive(Debug)]
struct Outstanding {
    submitted: Instant,
    request: BlockRequest,
    post: Nanos,
    /// The same if other requests are outstanding.
    post_busy: Nanos,
    error: Option<String>,
}

/// The host's times around a request.
struct Around {
    between: Nanos,
    pre: Nanos,
    /// Of the core, while the card works.
    overlap: Nanos,
    post: Nanos,
    post_busy: Nanos,
    gap: Nanos,
}

/// A block of the file system. Source: the default of mke2fs; Linux (fs/iomap/direct-io.c, fs/direct-io.c) fills the
/// rest of a new block with zeros when a direct write covers only part of it.
const FS_BLOCK_BYTES: u64 = 4096;
/// Cores of a host of which only its time is known. Assumed: most boards have four.
const CORES: usize = 4;

impl<T: SimulatedTarget> HostTarget<T> {
    /// A card behind the host on which it was measured, of which only its own time of a read and of a write is known,
    /// and what each KiB adds.
    pub fn measured(card: T, read: Nanos, write: Nanos, per_kib: Nanos) -> Self {
        let model = |operation, sum| HostModel::of_sum(operation, sum, per_kib);
        let models = [model(Operation::Read, read), model(Operation::Write, write)];
        Self { models: Some(models), ..Self::bare(card, CORES) }
    }

    /// A card behind a board, with nothing outstanding; `queueing`: an engine in hardware manages its queue.
    pub fn new(card: T, board: &Board, queueing: bool) -> Self {
        let bare = Self::bare(card, board.cores as usize);
        // The journal is in the middle of the filesystem, as mke2fs places it.
        let journal = bare.shape.size_bytes / 2 / SECTOR_BYTES;
        let host = |mut model: HostModel| {
            model.journal.first_lba = journal;
            model.journal.sectors = model.journal.sectors.min(journal);
            (model.clone(), Host::new(model))
        };
        Self {
            models: board.models(),
            sync: board.sync_models().map(|models| models.map(host)),
            pages: board.page_cache.map(|cache| Pages::new(cache, bare.now)),
            gap: if queueing { Nanos::ZERO } else { board.gap() },
            ..bare
        }
    }

    /// A card behind a host from a file; `queueing`: an engine in hardware manages its queue, if the host has one.
    pub fn described(card: T, host: &HostDescription, queueing: bool) -> Self {
        Self { costs: Some(*host.of(queueing)), ..Self::bare(card, host.cores as usize) }
    }

    /// A card behind a host whose work takes no time.
    fn bare(mut card: T, cores: usize) -> Self {
        let now = card.now();
        Self {
            models: None,
            costs: None,
            sync: None,
            pages: None,
            through_cache: false,
            now,
            others: vec![now; cores.saturating_sub(1)],
            queue_thread: now,
            gap: Nanos::ZERO,
            card_free: now,
            file_end: 0,
            allocated_end: 0,
            spent: Spent::default(),
            outstanding: Agenda::new(),
            queued: Vec::new(),
            tags: 0,
            shape: card.shape().clone(),
            card,
        }
    }

    /// The card, for inspection.
    pub fn card(&self) -> &T {
        &self.card
    }

    /// The card back.
    pub fn into_card(self) -> T {
        self.card
    }

    /// Breakdown of the requests' time so far; requests in a page cache are not included.
    pub fn spent(&self) -> Spent {
        let hosts = self.sync.iter().flatten().map(|(_, host)| host.spent());
        hosts.fold(self.spent, |sum, spent| sum.plus(&spent))
    }

    /// The core that is free first: one beside the queue thread's where there is one.
    fn core(&mut self) -> &mut Instant {
        self.others.iter_mut().min_by_key(|core| **core).unwrap_or(&mut self.queue_thread)
    }

    /// The host's times around a direct request.
    fn around(&self, request: &BlockRequest) -> Around {
        let is_read = request.op == BlockOp::Read;
        // Of a larger call, the host prepares and completes the other parts while the card works.
        let bytes = request.bytes.min(BIO_BYTES);
        if let Some(costs) = &self.costs {
            let cost = if is_read { &costs.read } else { &costs.write };
            return Around {
                between: cost.call(),
                pre: cost.before(bytes),
                overlap: cost.overlap(),
                post: cost.after(bytes, false),
                post_busy: cost.after(bytes, true),
                gap: cost.gap(),
            };
        }
        let model = self.models.as_ref().map(|[read, write]| if is_read { read } else { write });
        let of = |time: fn(&HostModel, u64) -> Nanos, bytes| model.map_or(Nanos::ZERO, |model| time(model, bytes));
        let [pre, post] = [HostModel::pre, HostModel::post].map(|time| of(time, bytes));
        let between = of(HostModel::between, request.bytes);
        Around { between, pre, overlap: Nanos::ZERO, post, post_busy: post, gap: self.gap }
    }

    /// Direct I/O. Returns when the card completes it; without that it is in the card's queue.
    fn direct(&mut self, request: &BlockRequest) -> Result<Option<(Instant, Outstanding)>, TargetError> {
        let Around { between, pre, overlap, mut post, mut post_busy, gap } = self.around(request);
        self.spent.program_ns += between.0;
        self.spent.pre_ns += pre.0;
        self.spent.post_ns += post.0;
        let asked = self.whole_block(request);
        let grown = self.grows(request);
        self.spent.size_update_ns += grown.0;
        post += grown;
        post_busy += grown;
        // The program of a described host with one core works on that core.
        let is_alone = self.costs.is_some() && self.others.is_empty();
        let submitted = if is_alone { self.now.max(self.queue_thread) } else { self.now } + between;
        self.queue_thread = submitted.max(self.queue_thread) + pre;
        let started = self.queue_thread.max(self.card_free + gap);
        if gap == Nanos::ZERO && self.card.reorders() {
            self.queue_thread = self.queue_thread + overlap;
            self.tags += 1;
            self.card.submit_at(BlockRequest { tag: self.tags, ..asked }, started)?;
            let outstanding = Outstanding { submitted, request: *request, post, post_busy, error: None };
            self.queued.push((self.tags, outstanding));
            return Ok(None);
        }
        let (ready, error) = self.card.serve(&asked, started)?;
        self.spent.card_ns += ready.since(started).0;
        self.queue_thread = self.queue_thread + overlap;
        self.card_free = if gap > Nanos::ZERO { ready } else { self.card_free };
        Ok(Some((ready, Outstanding { submitted, request: *request, post, post_busy, error })))
    }

    /// Takes the next completion of the card's queue, if it comes before all that are known.
    fn take_queued(&mut self) -> Result<(), TargetError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        let done = match self.outstanding.next_at() {
            Some(next) => self.card.wait_until(next)?,
            None => Some(self.card.wait()?),
        };
        let Some(done) = done else { return Ok(()) };
        if let Some(index) = self.queued.iter().position(|(tag, _)| *tag == done.request.tag) {
            let outstanding = self.queued.swap_remove(index).1;
            self.spent.card_ns += done.latency().0;
            self.outstanding.push(done.done, Outstanding { error: done.error, ..outstanding });
        }
        Ok(())
    }

    /// What the card gets of a request: a write of part of a new block is the whole block.
    fn whole_block(&mut self, request: &BlockRequest) -> BlockRequest {
        let (first, end) = (request.offset_bytes, request.offset_bytes + request.bytes);
        if self.models.is_none() {
            return *request;
        }
        match request.op {
            BlockOp::Trim if end >= self.allocated_end => self.allocated_end = self.allocated_end.min(first),
            BlockOp::Write if end > self.allocated_end => {
                let (from, to) = (first / FS_BLOCK_BYTES * FS_BLOCK_BYTES, end.next_multiple_of(FS_BLOCK_BYTES));
                let from = if from >= self.allocated_end { from } else { first };
                let to = to.min(self.shape.size_bytes);
                self.allocated_end = to;
                return BlockRequest { offset_bytes: from, bytes: to - from, ..*request };
            }
            _ => {}
        }
        *request
    }

    /// The cost of growing the file.
    fn grows(&mut self, request: &BlockRequest) -> Nanos {
        let end = request.offset_bytes + request.bytes;
        match (request.op, &self.models) {
            (BlockOp::Trim, _) if end >= self.file_end => self.file_end = self.file_end.min(request.offset_bytes),
            (BlockOp::Write, Some([_, write])) if end > self.file_end => {
                self.file_end = end;
                return write.size_update;
            }
            _ => {}
        }
        Nanos::ZERO
    }

    /// A call through the kernel's file system: a sync write or a buffered read.
    fn synced(&mut self, request: &BlockRequest) -> Result<Option<(Instant, Outstanding)>, TargetError> {
        let which = match request.op {
            BlockOp::Read if self.through_cache => 0,
            BlockOp::Write if request.through => 1,
            _ => return Ok(None),
        };
        let Some(hosts) = &mut self.sync else { return Ok(None) };
        let (model, host) = &mut hosts[which];
        let between = model.between(request.bytes);
        // One call at a time: the next call, of any program, finds the journal busy.
        let begun = self.now.max(self.queue_thread);
        let (card, mut failed, mut error) = (&mut self.card, None, None);
        let mut ask = |asked: CardRequest| match card.serve(&block_request(&asked), asked.now) {
            Ok((done, wrong)) => {
                error = error.take().or(wrong);
                done
            }
            Err(wrong) => {
                failed = failed.take().or(Some(wrong));
                asked.now
            }
        };
        let (lba, sectors) = (request.offset_bytes / SECTOR_BYTES, request.bytes / SECTOR_BYTES);
        // The program's own work comes before the call here, so it is not part of any latency.
        let submitted = begun + between;
        let returned = match which {
            0 => host.read(lba, sectors, submitted, &mut ask),
            _ => host.write(lba, sectors, submitted, &mut ask),
        };
        if let Some(failed) = failed {
            return Err(failed);
        }
        let ready = submitted + Nanos(returned.since(submitted).0.saturating_sub(between.0));
        self.queue_thread = ready;
        self.file_end = self.file_end.max(if which == 1 { request.offset_bytes + request.bytes } else { 0 });
        Ok(Some((
            ready,
            Outstanding { submitted, request: *request, post: Nanos::ZERO, post_busy: Nanos::ZERO, error },
        )))
    }
}

/// A request of the kernel, as a request to the card.
fn block_request(asked: &CardRequest) -> BlockRequest {
    let op = match asked.op {
        CardOp::Read => BlockOp::Read,
        CardOp::Write | CardOp::WriteThrough => BlockOp::Write,
        CardOp::Flush => BlockOp::Flush,
    };
    let (offset_bytes, bytes) = (asked.lba * SECTOR_BYTES, asked.sectors * SECTOR_BYTES);
    BlockRequest { op, offset_bytes, bytes, through: asked.op == CardOp::WriteThrough, tag: 0 }
}

impl<T: SimulatedTarget> BlockTarget for HostTarget<T> {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        self.now
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.shape.check(&request)?;
        let known = match self.pages.as_mut().filter(|_| self.through_cache) {
            Some(pages) => {
                let ready = pages.call(&request, self.now, &mut self.card)?;
                let (submitted, post, post_busy) = (self.now, Nanos::ZERO, Nanos::ZERO);
                Some((ready, Outstanding { submitted, request, post, post_busy, error: None }))
            }
            None => match self.synced(&request)? {
                Some(known) => Some(known),
                None => self.direct(&request)?,
            },
        };
        if let Some((ready, outstanding)) = known {
            self.outstanding.push(ready, outstanding);
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        self.take_queued()?;
        let Some((ready, done)) = self.outstanding.pop() else {
            return Err(TargetError::Failed { name: self.shape.name.clone(), reason: "nothing is outstanding".into() });
        };
        let Outstanding { submitted, request, post, post_busy, error } = done;
        let is_last = self.outstanding.is_empty() && self.queued.is_empty();
        let post = if is_last { post } else { post_busy };
        let done = if post == Nanos::ZERO {
            ready
        } else {
            let core = self.core();
            *core = ready.max(*core) + post;
            *core
        };
        self.now = self.now.max(done);
        Ok(BlockDone { request, submitted, done, error })
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        let until = self.now + time;
        self.now = until.max(self.card.rest(self.now, until)?);
        Ok(())
    }

    fn fill(&self) -> Option<TargetFill> {
        self.card.fill()
    }

    fn begin_file(&mut self, from_bytes: u64) {
        self.file_end = self.file_end.min(from_bytes);
        self.allocated_end = self.allocated_end.min(from_bytes);
    }

    fn takes_flushes(&self) -> bool {
        self.card.takes_flushes()
    }

    fn through_page_cache(&mut self, op: BlockOp, yes: bool) -> bool {
        let has_one = self.pages.is_some() || op == BlockOp::Read && self.sync.is_some();
        self.through_cache = yes && has_one;
        has_one
    }
}

#[cfg(test)]
mod tests;
