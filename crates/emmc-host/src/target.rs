//! A virtual card behind a board: the target of a benchmark as a program on that board sees it.
//!
//! Past the page cache each request is pre on a core (one at a time: one queue thread for a card), the card's own time, and
//! post on a core; through the page cache it is [`PageCache`]. Absent on purpose: the card (`SimulatedTarget`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget, SimulatedTarget, TargetError, TargetFill, TargetShape};
use emmc_units::{Instant, Nanos};

use crate::board::Board;
use crate::page_cache::Pages;
use crate::system::HostModel;

/// A card behind a board.
#[derive(Debug)]
pub struct HostTarget<T> {
    card: T,
    shape: TargetShape,
    /// Read and write.
    models: Option<[HostModel; 2]>,
    pages: Option<Pages>,
    through_cache: bool,
    now: Instant,
    /// When each core is free.
    cores: Vec<Instant>,
    queue_thread: Instant,
    outstanding: BinaryHeap<Reverse<Outstanding>>,
    number: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Outstanding {
    /// When the card is done with it, or the call returns.
    ready: Instant,
    number: u64,
    submitted: Instant,
    request: BlockRequest,
    post: Nanos,
    error: Option<String>,
}

impl Ord for Outstanding {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.ready, self.number).cmp(&(other.ready, other.number))
    }
}

impl PartialOrd for Outstanding {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: SimulatedTarget> HostTarget<T> {
    /// A card behind a board, on which nothing is outstanding.
    pub fn new(mut card: T, board: &Board) -> Self {
        let now = card.now();
        Self {
            shape: card.shape().clone(),
            models: board.models(),
            pages: board.page_cache.map(|cache| Pages::new(cache, now)),
            through_cache: false,
            now,
            cores: vec![now; board.cores.max(1) as usize],
            queue_thread: now,
            outstanding: BinaryHeap::new(),
            number: 0,
            card,
        }
    }

    /// The card, to be looked at.
    pub fn card(&self) -> &T {
        &self.card
    }

    /// The card back.
    pub fn into_card(self) -> T {
        self.card
    }

    /// The core that is free first.
    fn core(&mut self) -> &mut Instant {
        let first = (0..self.cores.len()).min_by_key(|core| self.cores[*core]).unwrap_or(0);
        &mut self.cores[first]
    }

    fn direct(&mut self, request: &BlockRequest) -> Result<(Instant, Nanos, Option<String>), TargetError> {
        let (pre, post) = match (&self.models, request.op) {
            (Some([read, _]), BlockOp::Read) => (read.pre(request.bytes), read.post(request.bytes)),
            (Some([_, write]), _) => (write.pre(request.bytes), write.post(request.bytes)),
            (None, _) => (Nanos::ZERO, Nanos::ZERO),
        };
        let (now, thread) = (self.now, self.queue_thread);
        let core = self.core();
        let issued = now.max(*core).max(thread) + pre;
        *core = issued;
        self.queue_thread = issued;
        let (ready, error) = self.card.serve(request, issued)?;
        Ok((ready, post, error))
    }
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
        let (ready, post, error) = match self.pages.as_mut().filter(|_| self.through_cache) {
            Some(pages) => (pages.call(&request, self.now, &mut self.card)?, Nanos::ZERO, None),
            None => self.direct(&request)?,
        };
        let (submitted, number) = (self.now, self.number);
        self.number += 1;
        self.outstanding.push(Reverse(Outstanding { ready, number, submitted, request, post, error }));
        Ok(())
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        let Some(Reverse(first)) = self.outstanding.pop() else {
            return Err(TargetError::Failed { name: self.shape.name.clone(), reason: "nothing is outstanding".into() });
        };
        let Outstanding { ready, submitted, request, post, error, .. } = first;
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

    fn through_page_cache(&mut self, yes: bool) -> bool {
        self.through_cache = yes && self.pages.is_some();
        self.pages.is_some()
    }
}

#[cfg(test)]
mod tests;
