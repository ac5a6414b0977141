//! Requests by kind, with the distribution of each span.

use emmc_units::{Bytes, Nanos};

use super::limit::Needs;
use super::named::Named;
use super::result::{SpanRow, Times};
use super::returns::Returns;
use super::track::Track;
use crate::event::Op;
use crate::request::{Mode, Request, since};

/// Kinds with a distribution of their own; of more, the rarest are summed up without their size.
const GROUPS_MAX: usize = 96;
/// Commands that began beside others, from which their number says something: a whole queue.
const QUEUED_MIN: u64 = 32;

/// Requests of one kind.
pub(super) struct Group {
    pub(super) number: u32,
    pub(super) op: Op,
    /// `None` for sizes that are summed up.
    pub(super) sectors: Option<u32>,
    pub(super) mode: Mode,
    pub(super) count: u64,
    pub(super) sequential: u64,
    next_sector: u64,
    /// The five spans; without any time if they are not recorded.
    spans: [Track; 5],
    /// The parts of the fifth.
    returns: Returns,
    named: Named,
    device: Track,
    total: Track,
    waited_ns: u128,
    /// Time with a request of this kind in progress, up to the last end. Unit: nanoseconds.
    pub(super) active_ns: u64,
    active_until: u64,
    /// Commands that began while the card had none, and their time. Unit: nanoseconds.
    alone: (u64, u64),
    /// The others, and how much later each ended than the one before: what a card that works on several needs for one.
    queued: (u64, u64),
    card_until: u64,
    /// Time from the card's end until the controller was free. Unit: nanoseconds.
    release_ns: u128,
    /// Requests that waited while the card had another one, one at a time, and the time between the end of that one
    /// and their begin at the card. Unit: nanoseconds.
    turns: (u64, u128),
    /// Requests queued when the device had none, during which the processors had idle time: their work from the
    /// completion before until they were queued.
    gap: Track,
    /// The time of the same requests from there to their completion, and the processors' work from completion to
    /// completion. Unit: nanoseconds.
    single_ns: (u128, u128),
    /// The other requests, and the processors' work and the time from completion to completion. Unit: nanoseconds.
    several: (u64, u128, u128),
}

impl Group {
    pub(super) fn new(number: u32, op: Op, sectors: Option<u32>, mode: Mode) -> Self {
        Self {
            number,
            op,
            sectors,
            mode,
            count: 0,
            sequential: 0,
            next_sector: u64::MAX,
            spans: std::array::from_fn(|_| Track::new()),
            returns: Returns::default(),
            named: Named::default(),
            device: Track::new(),
            total: Track::new(),
            waited_ns: 0,
            active_ns: 0,
            active_until: 0,
            alone: (0, 0),
            queued: (0, 0),
            card_until: 0,
            release_ns: 0,
            turns: (0, 0),
            gap: Track::new(),
            single_ns: (0, 0),
            several: (0, 0, 0),
        }
    }

    fn key(&self) -> (u32, Op, Option<u32>, Mode) {
        (self.number, self.op, self.sectors, self.mode)
    }

    /// Takes the sums of another kind, as far as they are of use without a size.
    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.sequential += other.sequential;
        for (own, other) in self.spans.iter_mut().zip(&other.spans) {
            own.absorb(other);
        }
        self.returns.absorb(&other.returns);
        self.named.absorb(&other.named);
        self.device.absorb(&other.device);
        self.total.absorb(&other.total);
        self.waited_ns += other.waited_ns;
    }

    pub(super) fn add(&mut self, request: &Request) {
        self.count += 1;
        self.sequential += u64::from(request.sector == self.next_sector);
        self.next_sector = request.sector.wrapping_add(u64::from(request.sectors));
        let spans = request.spans();
        let [vfs, block, issue, hardware, post] = &mut self.spans;
        vfs.add_some(spans.vfs);
        block.add_some(spans.block);
        issue.add_some(spans.issue);
        hardware.add_some(spans.hardware);
        post.add_some(spans.post);
        self.returns.add(request);
        self.named.add(request);
        if let Some(hardware) = request.hardware {
            let is_alone = hardware.started.0 >= self.card_until;
            let (from, sum) =
                if is_alone { (hardware.started.0, &mut self.alone) } else { (self.card_until, &mut self.queued) };
            *sum = (sum.0 + 1, sum.1.saturating_add(hardware.ended.0.saturating_sub(from)));
            if is_alone && request.queued.is_some_and(|queued| queued.0 < self.card_until) {
                let turn = hardware.started.0 - self.card_until;
                self.turns = (self.turns.0 + 1, self.turns.1 + u128::from(turn));
            }
            self.card_until = self.card_until.max(hardware.ended.0);
            self.release_ns += u128::from(hardware.released.0.saturating_sub(hardware.ended.0));
        }
        if let (Some(effort), Some(queued)) = (request.effort, request.queued) {
            match effort.gap.filter(|_| effort.work < effort.since) {
                Some(gap) => {
                    self.gap.add(gap.0);
                    let (took, work) = &mut self.single_ns;
                    *took += u128::from(since(queued, request.completed).0);
                    *work += u128::from(effort.work.0);
                }
                None => {
                    let (count, work, took) = &mut self.several;
                    *count += 1;
                    *work += u128::from(effort.work.0);
                    *took += u128::from(effort.since.0);
                }
            }
        }
        self.device.add(request.device_time().0);
        self.total.add(request.total().0);
        self.waited_ns += u128::from(request.waited.0);
        // Requests are given in the order of their ends: the union of their intervals grows at its end.
        let (from, to) = (request.began().0.max(self.active_until), request.ended().0);
        self.active_ns = self.active_ns.saturating_add(to.saturating_sub(from));
        self.active_until = self.active_until.max(to);
    }

    /// What a request needs, for predictions; `None` without a size.
    pub(super) fn needs(&self) -> Option<Needs> {
        let chunk = Bytes(u64::from(self.sectors.filter(|sectors| *sectors > 0)?) * 512);
        let mean = |sum: u128, count: u64| Nanos((sum / u128::from(count.max(1))) as u64);
        let span = |span: usize| mean(self.spans[span].sum_ns, self.spans[span].count);
        let waited = mean(self.waited_ns, self.count);
        let before = Nanos((span(0) + span(1) + span(2)).0.saturating_sub(waited.0));
        let driver = Nanos(span(2).0.saturating_sub(waited.0));
        let hardware = if self.spans[3].count > 0 { span(3) } else { mean(self.device.sum_ns, self.device.count) };
        let of = |(count, sum): (u64, u64)| mean(u128::from(sum), count);
        let alone = if self.alone.0 > 0 { of(self.alone) } else { hardware };
        let queued = (self.queued.0 >= QUEUED_MIN).then(|| of(self.queued));
        let release = mean(self.release_ns, self.alone.0 + self.queued.0);
        let turn = (self.turns.0 >= QUEUED_MIN).then(|| mean(self.turns.1, self.turns.0));
        let (took, work) = self.single_ns;
        // The median: what a program does once, as at its start, is not for each request.
        let gap = self.gap.times().map(|gap| Nanos((gap.p50 * 1e3).round() as u64));
        let own = gap.map(|gap| since(before + alone + span(4), gap + mean(took, self.gap.count)));
        let several = (self.several.0 >= QUEUED_MIN).then(|| mean(self.several.1, self.several.0));
        let processor = several.or_else(|| (self.gap.count > 0).then(|| mean(work, self.gap.count)));
        Some(Needs { before, driver, release, turn, alone, queued, after: span(4), own, processor, chunk })
    }

    /// Whether several requests at a time kept this number of processors busy for 95 % of their time.
    pub(super) fn keeps_busy(&self, processors: usize) -> bool {
        let (count, work, took) = self.several;
        count >= QUEUED_MIN && processors > 0 && work * 100 >= took * 95 * processors as u128
    }

    /// Means before the card without waiting for others, at the card, and after it; `None` if not every request has all
    /// of them. Unit: nanoseconds.
    pub(super) fn stages(&self) -> Option<[u64; 3]> {
        let count = u128::from(self.count);
        let all = self.spans.iter().all(|span| span.count == self.count);
        let sum = |from: usize, to: usize| self.spans[from..to].iter().fold(0, |sum, span| sum + span.sum_ns);
        let before = sum(0, 3).saturating_sub(self.waited_ns);
        let mean = |sum: u128| ((sum + count / 2) / count) as u64;
        (all && count > 0).then(|| [mean(before), mean(sum(3, 4)), mean(sum(4, 5))])
    }

    /// The part of it behind other requests of the device. Unit: nanoseconds.
    pub(super) fn waited_ns(&self) -> u128 {
        self.waited_ns
    }

    /// The sum of all times. Unit: nanoseconds.
    pub(super) fn total_ns(&self) -> u128 {
        self.total.sum_ns
    }

    pub(super) fn row(&self) -> SpanRow {
        let [vfs_us, block_us, issue_us, hardware_us, post_us] =
            [0, 1, 2, 3, 4].map(|span: usize| self.spans[span].times());
        let none = Times { mean: 0.0, p50: 0.0, p99: 0.0, max: 0.0 };
        let (device_us, total_us) = (self.device.times().unwrap_or(none), self.total.times().unwrap_or(none));
        let share = |sum: &Track| 100.0 * sum.sum_ns as f64 / self.total.sum_ns.max(1) as f64;
        SpanRow {
            device: named(self.number),
            op: self.op.name().into(),
            size_bytes: u64::from(self.sectors.unwrap_or(0)) * 512,
            mode: self.mode.name().into(),
            count: self.count,
            vfs_us,
            block_us,
            issue_us,
            hardware_us,
            post_us,
            post_parts: self.returns.row(),
            named_parts: self.named.row(),
            device_us,
            total_us,
            waited_us: self.waited_ns as f64 / self.count.max(1) as f64 / 1e3,
            hardware_percent: (self.spans[3].count > 0).then(|| share(&self.spans[3])),
            sequential_percent: 100.0 * self.sequential as f64 / self.count.max(1) as f64,
        }
    }
}

/// `major:minor`.
pub(super) fn named(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}

/// All kinds.
#[derive(Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    last: usize,
}

impl Groups {
    #[inline]
    pub(super) fn add(&mut self, request: &Request) {
        let key = (request.device, request.op, Some(request.sectors), request.mode);
        let is_same = |group: &Group| group.key() == key;
        if !self.all.get(self.last).is_some_and(is_same) {
            self.last = self.all.iter().position(is_same).unwrap_or_else(|| self.place(request));
        }
        self.all[self.last].add(request);
    }

    fn place(&mut self, request: &Request) -> usize {
        if self.all.len() >= GROUPS_MAX {
            self.sum_up_rarest();
        }
        self.all.push(Group::new(request.device, request.op, Some(request.sectors), request.mode));
        self.all.len() - 1
    }

    /// Makes room: the rarest kind loses its size.
    fn sum_up_rarest(&mut self) {
        let sized = self.all.iter().enumerate().filter(|(_, group)| group.sectors.is_some());
        let Some((rarest, _)) = sized.min_by_key(|(_, group)| group.count) else { return };
        let rarest = self.all.swap_remove(rarest);
        let key = (rarest.number, rarest.op, None, rarest.mode);
        match self.all.iter_mut().find(|group| group.key() == key) {
            Some(others) => others.absorb(&rarest),
            None => self.all.push(Group { sectors: None, ..rarest }),
        }
    }

    /// Most time first.
    pub(super) fn into_sorted(mut self) -> Vec<Group> {
        self.all.sort_by_key(|group| std::cmp::Reverse(group.total_ns()));
        self.all
    }
}
