//! Completion times of operations: dies and channels as resources, each busy until an instant.

pub(super) mod aged;
mod channel;
mod lane;

use emmc_units::{Instant, Nanos, Rng};

use super::{CellMode, Geometry};
use crate::profile::{CellConfig, NandConfig};
use aged::Aged;
use channel::Channel;

/// Times of one cell mode.
#[derive(Clone, Debug)]
struct ModeTimes {
    read: Nanos,
    program: Vec<Nanos>,
    erase: Nanos,
    /// Spread as a share of 65536.
    spread: u64,
}

impl ModeTimes {
    fn new(cell: &CellConfig) -> Self {
        Self {
            read: Nanos::from_micros_f64(cell.read_us),
            program: cell.program_us.iter().map(|&micros| Nanos::from_micros_f64(micros)).collect(),
            erase: Nanos::from_micros_f64(cell.erase_ms * 1e3),
            spread: (cell.time_spread * 65536.0) as u64,
        }
    }
}

/// The block of what is absent.
const NO_BLOCK: u32 = u32::MAX;

/// A die: busy until, the multi-plane program that another plane may still join, and the page in its register.
#[derive(Clone, Copy, Debug)]
struct Die {
    busy_until: Instant,
    joinable: Joinable,
    sensed: Sensed,
}

impl Die {
    /// Nothing can join a program, and no page is in the register.
    fn busy_until(busy_until: Instant) -> Self {
        let sensed = Sensed { block: NO_BLOCK, place: 0, at: Instant::START };
        let (issued, earliest, time) = (Instant::START, Instant::START, Nanos::ZERO);
        Self { busy_until, joinable: Joinable { block: NO_BLOCK, row: 0, issued, earliest, time }, sensed }
    }
}

/// A page in the page register: a further read of it needs no sense. With multi-plane reads it is the page of every
/// plane of a row, which are sensed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sensed {
    block: u32,
    /// The page; with multi-plane reads the row.
    place: u32,
    at: Instant,
}

/// A program that was issued at `issued` to row `row` and can take further planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Joinable {
    block: u32,
    row: u32,
    issued: Instant,
    earliest: Instant,
    time: Nanos,
}

/// Precomputed values of a page number, so that the hot path need not divide.
#[derive(Clone, Copy, Debug)]
struct PagePlace {
    die: u32,
    channel: u32,
    row: u32,
    /// Which of the program times is its own, as built and with one bit a cell.
    turn: [u32; 2],
}

/// `time` with its spread.
#[inline(always)]
fn stray(rng: &mut Rng, time: Nanos, spread: u64) -> Nanos {
    if spread == 0 {
        return time;
    }
    let draw = rng.next_u64() >> 48;
    // Evenly between -spread and +spread: 2 x draw - 65536 is symmetric.
    let least = time.0 - ((time.0 * spread) >> 16);
    Nanos(least + (((time.0 >> 8) * spread * draw) >> 23))
}

/// The timing of the ends of reads and programs.
pub(super) trait Clockwork {
    /// When a read of `bytes` from a page is in the controller's memory.
    fn read(&mut self, geometry: &Geometry, mode: CellMode, block: u32, page: u32, bytes: u32, now: Instant)
    -> Instant;

    /// When a page's cells begin to change, and when it is programmed.
    fn program(
        &mut self,
        geometry: &Geometry,
        mode: CellMode,
        block: u32,
        page: u32,
        now: Instant,
    ) -> (Instant, Instant);
}

/// The clockwork of the flash.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    native: ModeTimes,
    slc: ModeTimes,
    /// Time to send or fetch a page over its channel, and one byte of it in 1/65536 ns.
    page_transfer: Nanos,
    byte_transfer: u64,
    cached_program: bool,
    multi_plane: bool,
    multi_plane_read: bool,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// Several dies share a channel.
    is_shared: bool,
    places: Vec<PagePlace>,
    /// Pages of a block, by mode.
    pages_in: [u32; 4],
    rng: Rng,
    /// `None`: it does not age.
    pub(super) aged: Option<Box<Aged>>,
}

impl Timing {
    pub(super) fn new(config: &NandConfig, geometry: &Geometry, rng: Rng) -> Self {
        let ns_per_byte = 1e3 / config.channel_mb_s;
        let native = ModeTimes::new(&config.native);
        let slc = ModeTimes::new(config.slc.as_ref().unwrap_or(&config.native));
        let place = |page: u32| {
            let (die, row) = (geometry.die_of(page), page / geometry.lanes());
            let turn = [&native, &slc].map(|times| (row as usize % times.program.len()) as u32);
            PagePlace { die, channel: die % geometry.channels, row, turn }
        };
        let modes = [CellMode::Slc, CellMode::Pslc, CellMode::Mlc, CellMode::Tlc];
        Self {
            places: (0..geometry.pages_per_block).map(place).collect(),
            pages_in: modes.map(|mode| geometry.pages_in(mode)),
            native,
            slc,
            page_transfer: Nanos((f64::from(geometry.page_bytes()) * ns_per_byte) as u64),
            byte_transfer: (ns_per_byte * 65536.0) as u64,
            cached_program: config.cached_program,
            multi_plane: config.multi_plane,
            multi_plane_read: config.multi_plane_read,
            dies: vec![Die::busy_until(Instant::START); geometry.dies as usize],
            channels: vec![Channel::default(); geometry.channels as usize],
            is_shared: geometry.dies > geometry.channels,
            rng,
            aged: config.ageing.map(|ageing| Box::new(Aged::new(ageing, geometry.blocks))),
        }
    }

    /// The random state, for saving.
    pub(super) fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Restores the random state.
    pub(super) fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Pages of a block in a mode.
    #[inline]
    pub(super) fn pages_in(&self, mode: CellMode) -> u32 {
        self.pages_in[mode as usize]
    }

    /// A page that a block does not have counts as its last: the contract is checked elsewhere.
    #[inline(always)]
    fn place(&self, page: u32) -> PagePlace {
        self.places[(page as usize).min(self.places.len() - 1)]
    }

    #[inline]
    fn times(&self, mode: CellMode, native: CellMode) -> &ModeTimes {
        if mode == native { &self.native } else { &self.slc }
    }

    /// The start of the erase of a block on all its lanes, and its end.
    pub(super) fn erase(&mut self, geometry: &Geometry, mode: CellMode, now: Instant) -> (Instant, Instant) {
        let (time, spread) = {
            let times = self.times(mode, geometry.native);
            (times.erase, times.spread)
        };
        let mut time = stray(&mut self.rng, time, spread);
        if let Some(aged) = &self.aged {
            time = aged.erase(time);
        }
        let start = self.dies.iter().map(|die| die.busy_until).fold(now, Instant::max);
        self.dies.fill(Die::busy_until(start + time));
        (start, start + time)
    }

    /// Whether a program takes the same page of all planes of a die.
    pub(super) const fn is_multi_plane(&self) -> bool {
        self.multi_plane
    }

    /// Units that the lanes program as built while a block with one bit a cell is erased.
    pub(super) fn units_in_erase(&self, geometry: &Geometry) -> u32 {
        let program = self.native.program.iter().map(|time| time.0).sum::<u64>() / self.native.program.len() as u64;
        // Without programs of several planes, these take turns.
        let at_once = if self.multi_plane { geometry.lanes() } else { geometry.lanes() / geometry.planes };
        let row = u64::from(geometry.units_per_page * at_once);
        (self.slc.erase.0 * row / program.max(1)) as u32
    }

    /// The time at which no operation is in progress any more.
    pub(super) fn quiet_at(&self) -> Instant {
        self.dies.iter().map(|die| die.busy_until).max().unwrap_or_default()
    }

    /// All operations in progress are lost: power was lost at `now`.
    pub(super) fn stop(&mut self, now: Instant) {
        self.dies.fill(Die::busy_until(now));
        self.channels.fill(Channel::free_from(now));
    }
}

impl Clockwork for Timing {
    #[inline(always)]
    fn read(
        &mut self,
        geometry: &Geometry,
        mode: CellMode,
        block: u32,
        page: u32,
        bytes: u32,
        now: Instant,
    ) -> Instant {
        let PagePlace { die, channel, row, .. } = self.place(page);
        let (die, channel) = (&mut self.dies[die as usize], &mut self.channels[channel as usize]);
        let place = if self.multi_plane_read { row } else { page };
        let mut sensed = die.sensed;
        if (sensed.block, sensed.place) != (block, place) {
            let times = if mode == geometry.native { &self.native } else { &self.slc };
            let mut time = stray(&mut self.rng, times.read, times.spread);
            if let Some(aged) = self.aged.as_deref_mut() {
                time = aged.sense(time);
            }
            sensed = Sensed { block, place, at: now.max(die.busy_until) + time };
        }
        let transfer = Nanos((u64::from(bytes) * self.byte_transfer) >> 16);
        let ready = now.max(sensed.at);
        let done = match self.is_shared {
            false => channel.reserve(ready, transfer),
            true => channel.reserve_shared(now, ready, transfer),
        };
        die.busy_until = done;
        die.joinable.block = NO_BLOCK;
        die.sensed = sensed;
        done
    }

    #[inline(always)]
    fn program(
        &mut self,
        geometry: &Geometry,
        mode: CellMode,
        block: u32,
        page: u32,
        now: Instant,
    ) -> (Instant, Instant) {
        let PagePlace { die, channel, row, turn } = self.place(page);
        let (die, channel) = (&mut self.dies[die as usize], &mut self.channels[channel as usize]);
        let free = if self.cached_program { now } else { now.max(die.busy_until) };
        let sent = match self.is_shared {
            false => channel.reserve(free, self.page_transfer),
            true => channel.reserve_shared(now, free, self.page_transfer),
        };
        let join = die.joinable;
        if join.block == block && join.row == row && join.issued == now {
            let start = sent.max(join.earliest);
            die.busy_until = start + join.time;
            return (start, die.busy_until);
        }
        let times = if mode == geometry.native { &self.native } else { &self.slc };
        let time = times.program[turn[usize::from(mode != geometry.native)] as usize];
        let mut time = stray(&mut self.rng, time, times.spread);
        if let Some(aged) = &self.aged {
            time = aged.program(time);
        }
        let earliest = die.busy_until;
        let start = sent.max(earliest);
        let block = if self.multi_plane { block } else { NO_BLOCK };
        die.joinable = Joinable { block, row, issued: now, earliest, time };
        die.sensed.block = NO_BLOCK;
        die.busy_until = start + time;
        (start, die.busy_until)
    }
}
