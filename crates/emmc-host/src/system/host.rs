use emmc_units::{Instant, Nanos, SECTOR_BYTES};
use serde::Serialize;

use super::{CardOp, CardRequest, HostModel};
use crate::Access;

/// Bytes of a file system's block.
const BLOCK_BYTES: u64 = 4096;

/// Breakdown of a program's time. Unit: nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// The program itself, and the way in and out of the kernel.
    pub program_ns: u64,
    /// Pre of its own requests.
    pub pre_ns: u64,
    /// Waiting for the card to transfer its data.
    pub card_ns: u64,
    /// Post of its own requests.
    pub post_ns: u64,
    /// After extending direct writes: size and orphan list.
    pub size_update_ns: u64,
    /// The journal's descriptor and metadata blocks, and waking its thread.
    pub journal_log_ns: u64,
    /// The flush of the card's cache.
    pub flush_ns: u64,
    /// The journal's commit block, and waking the caller.
    pub journal_commit_ns: u64,
}

impl Spent {
    /// The sum of both.
    pub fn plus(self, other: &Self) -> Self {
        Self {
            program_ns: self.program_ns + other.program_ns,
            pre_ns: self.pre_ns + other.pre_ns,
            card_ns: self.card_ns + other.card_ns,
            post_ns: self.post_ns + other.post_ns,
            size_update_ns: self.size_update_ns + other.size_update_ns,
            journal_log_ns: self.journal_log_ns + other.journal_log_ns,
            flush_ns: self.flush_ns + other.flush_ns,
            journal_commit_ns: self.journal_commit_ns + other.journal_commit_ns,
        }
    }

    /// The software share of a request's three stages, (pre + post) / (pre + hw + post): 0 to 1; 0 without requests.
    pub fn overhead_share(&self) -> f64 {
        let software = self.pre_ns + self.post_ns;
        software as f64 / (software + self.card_ns).max(1) as f64
    }
}

/// Read-ahead data, and when it arrives. Unit: sectors.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: u64,
    to: u64,
    ready: Instant,
}

impl Window {
    fn has(&self, lba: u64, sectors: u64) -> bool {
        self.from <= lba && lba + sectors <= self.to
    }
}

/// A program and the kernel below it: one call at a time.
#[derive(Clone, Debug)]
pub struct Host {
    model: HostModel,
    /// When the card has finished its current request; it serves one at a time.
    card_free: Instant,
    current: Option<Window>,
    ahead: Option<Window>,
    /// Where a sequential read would continue.
    expected: u64,
    journal_at: u64,
    spent: Spent,
}

impl Host {
    /// A host without any requests yet.
    pub fn new(model: HostModel) -> Self {
        let spent = Spent::default();
        Self { model, card_free: Instant::START, current: None, ahead: None, expected: 0, journal_at: 0, spent }
    }

    /// The breakdown so far.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// A write call; returns when the call has returned and the program is ready for the next.
    pub fn write(
        &mut self,
        lba: u64,
        sectors: u64,
        now: Instant,
        card: &mut impl FnMut(CardRequest) -> Instant,
    ) -> Instant {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let mut at = self.pass(now, self.model.pre(bytes), |spent| &mut spent.pre_ns);
        at = self.transfer(CardOp::Write, lba, sectors, at, card);
        at = self.pass(at, self.model.post(bytes), |spent| &mut spent.post_ns);
        at = match self.model.access {
            Access::Direct => self.pass(at, self.model.size_update, |spent| &mut spent.size_update_ns),
            Access::Sync => self.commit(at, card),
            Access::Unstated => at,
        };
        self.pass(at, self.model.between(bytes), |spent| &mut spent.program_ns)
    }

    /// A read call; returns when the call has returned and the program is ready for the next.
    pub fn read(
        &mut self,
        lba: u64,
        sectors: u64,
        now: Instant,
        card: &mut impl FnMut(CardRequest) -> Instant,
    ) -> Instant {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let mut at = match self.model.access {
            Access::Sync => self.fetch(lba, sectors, now, card),
            Access::Direct | Access::Unstated => {
                let at = self.pass(now, self.model.pre(bytes), |spent| &mut spent.pre_ns);
                self.transfer(CardOp::Read, lba, sectors, at, card)
            }
        };
        at = self.pass(at, self.model.post(bytes), |spent| &mut spent.post_ns);
        self.pass(at, self.model.between(bytes), |spent| &mut spent.program_ns)
    }

    /// A buffered read: from fetched data, or fetched now. With read-ahead, the first access to a window starts
    /// fetching the next one (Linux marks the window's first page for that), before the reader waits for its own.
    fn fetch(
        &mut self,
        lba: u64,
        sectors: u64,
        now: Instant,
        card: &mut impl FnMut(CardRequest) -> Instant,
    ) -> Instant {
        let (mut at, mut is_first_touch) = (now, false);
        if let Some(ahead) = self.ahead.filter(|ahead| ahead.has(lba, sectors)) {
            (self.current, self.ahead, is_first_touch) = (Some(ahead), None, true);
        } else if !self.current.is_some_and(|current| current.has(lba, sectors)) {
            let is_sequential = lba == self.expected;
            let wide = if is_sequential { self.model.read_ahead.window.0 / SECTOR_BYTES } else { 0 };
            let window;
            (window, at) = self.start(lba, sectors.max(wide), at, card);
            (self.current, self.ahead, is_first_touch) = (Some(window), None, is_sequential);
        }
        self.expected = lba + sectors;
        let Some(current) = self.current else { return at };
        if is_first_touch && self.model.read_ahead.is_ahead {
            let next;
            (next, at) = self.start(current.to, current.to - current.from, at, card);
            self.ahead = Some(next);
        }
        self.wait(at, current.ready, |spent| &mut spent.card_ns)
    }

    /// Starts a read without waiting for it.
    fn start(
        &mut self,
        lba: u64,
        sectors: u64,
        now: Instant,
        card: &mut impl FnMut(CardRequest) -> Instant,
    ) -> (Window, Instant) {
        let pre = self.model.pre(sectors.saturating_mul(SECTOR_BYTES));
        let at = self.pass(now, pre, |spent| &mut spent.pre_ns);
        let ready = self.ask(CardOp::Read, lba, sectors, at, card);
        (Window { from: lba, to: lba + sectors, ready }, at)
    }

    /// The journal's commit, step by step as in jbd2.
    fn commit(&mut self, now: Instant, card: &mut impl FnMut(CardRequest) -> Instant) -> Instant {
        let block = BLOCK_BYTES / SECTOR_BYTES;
        let log = self.model.journal.log_blocks * block;
        let (wake_up, small) = (self.model.journal.wake_up, self.model.small.software());

        let lba = self.journal_place(log);
        let begun = now + wake_up + small;
        let mut at = self.ask(CardOp::Write, lba, log, begun, card);
        self.spent.journal_log_ns += at.since(now).0;

        let flushed = self.ask(CardOp::Flush, 0, 0, at + small, card);
        self.spent.flush_ns += flushed.since(at).0;
        at = flushed;

        let lba = self.journal_place(block);
        let committed = self.ask(CardOp::WriteThrough, lba, block, at + small, card) + wake_up;
        self.spent.journal_commit_ns += committed.since(at).0;
        committed
    }

    /// The next sectors of the journal, wrapping around.
    fn journal_place(&mut self, sectors: u64) -> u64 {
        let journal = &self.model.journal;
        if self.journal_at + sectors > journal.sectors {
            self.journal_at = 0;
        }
        let lba = journal.first_lba + self.journal_at;
        self.journal_at += sectors;
        lba
    }

    fn transfer(
        &mut self,
        op: CardOp,
        lba: u64,
        sectors: u64,
        now: Instant,
        card: &mut impl FnMut(CardRequest) -> Instant,
    ) -> Instant {
        let done = self.ask(op, lba, sectors, now, card);
        self.wait(now, done, |spent| &mut spent.card_ns)
    }

    /// The completion time of a request that is submitted now, or when the previous one has completed.
    fn ask(
        &mut self,
        op: CardOp,
        lba: u64,
        sectors: u64,
        now: Instant,
        card: &mut impl FnMut(CardRequest) -> Instant,
    ) -> Instant {
        let now = now.max(self.card_free);
        self.card_free = card(CardRequest { op, lba, sectors, now }).max(now);
        self.card_free
    }

    fn pass(&mut self, now: Instant, time: Nanos, spent: impl FnOnce(&mut Spent) -> &mut u64) -> Instant {
        *spent(&mut self.spent) += time.0;
        now + time
    }

    fn wait(&mut self, now: Instant, until: Instant, spent: impl FnOnce(&mut Spent) -> &mut u64) -> Instant {
        *spent(&mut self.spent) += until.since(now).0;
        now.max(until)
    }
}

#[cfg(test)]
mod tests {
    use emmc_units::Bytes;

    use super::*;
    use crate::platform;
    use crate::system::{ConstantCard, ReadAhead};

    fn model(workload: &str) -> (HostModel, ConstantCard) {
        let workload = platform("jetson-tx1").unwrap().workload(workload).unwrap();
        let us = Nanos::from_micros;
        let card =
            ConstantCard { chunk: workload.chunk, chunk_time: workload.spans.hw, page_time: us(183), program: us(250) };
        (HostModel::of(workload), card)
    }

    /// Runs records of 128 KiB in sequence; returns the time and the card's requests.
    fn run(model: HostModel, card: ConstantCard, records: u64) -> (Host, Instant, Vec<CardRequest>) {
        let (mut host, mut now, mut asked) = (Host::new(model), Instant::START, Vec::new());
        let mut serve = |request: CardRequest| {
            asked.push(request);
            card.serve(request)
        };
        let write = host.model.operation == crate::Operation::Write;
        for record in 0..records {
            now = match write {
                true => host.write(record * 256, 256, now, &mut serve),
                false => host.read(record * 256, 256, now, &mut serve),
            };
        }
        (host, now, asked)
    }

    #[test]
    fn a_sync_write_is_data_journal_flush_and_commit_block() {
        let (model, card) = model("sync-sequential-write");
        let (host, now, asked) = run(model, card, 2);
        let ops: Vec<_> = asked.iter().map(|request| (request.op, request.sectors)).collect();
        let one = [(CardOp::Write, 256), (CardOp::Write, 32), (CardOp::Flush, 0), (CardOp::WriteThrough, 8)];
        assert_eq!(ops, [one, one].concat());
        assert!(asked.windows(2).all(|pair| card.serve(pair[0]) <= pair[1].now), "{asked:?}");
        let spent = host.spent();
        let sum = spent.program_ns + spent.pre_ns + spent.card_ns + spent.post_ns + spent.size_update_ns;
        assert_eq!(sum + spent.journal_log_ns + spent.flush_ns + spent.journal_commit_ns, now.0);
        assert_eq!(spent.flush_ns, 2 * (150 + 250) * 1000);
    }

    #[test]
    fn a_direct_request_takes_the_spans_and_the_program_time() {
        let (model, card) = model("direct-sequential-read");
        let between = model.between(128 << 10);
        let (_, now, asked) = run(model, card, 10);
        assert_eq!((now, asked.len()), (Instant::START + (Nanos::from_micros(722) + between) * 10, 10));
    }

    #[test]
    fn only_read_ahead_overlaps_with_the_card() {
        let (plain, card) = model("sync-sequential-read");
        let alone = plain.spans.software() + card.chunk_time + plain.between(128 << 10);
        let (_, now, _) = run(plain.clone(), card, 100);
        assert_eq!(now, Instant::START + alone * 100);
        let ahead = HostModel { read_ahead: ReadAhead { window: Bytes(128 << 10), is_ahead: true }, ..plain };
        let (_, now, asked) = run(ahead, card, 100);
        let pace = now.0 as f64 / 100.0 / card.chunk_time.0 as f64;
        assert!((1.0..1.02).contains(&pace), "{pace}");
        assert_eq!(asked.len(), 101);
    }

    #[test]
    fn read_ahead_fetches_a_window_once_and_random_reads_fetch_their_range() {
        let (plain, card) = model("sync-sequential-read");
        let wide = HostModel { read_ahead: ReadAhead { window: Bytes(1 << 20), is_ahead: false }, ..plain.clone() };
        let (_, _, asked) = run(wide, card, 16);
        assert_eq!(asked.iter().map(|request| request.sectors).collect::<Vec<_>>(), [2048, 2048]);
        let (mut host, mut now, mut asked) = (Host::new(plain), Instant::START, Vec::new());
        for lba in [8000, 16, 4000] {
            now = host.read(lba, 8, now, &mut |request: CardRequest| {
                asked.push(request.sectors);
                card.serve(request)
            });
        }
        assert_eq!(asked, [8, 8, 8]);
    }
}
