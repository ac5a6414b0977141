//! Processors: how long they were not idle, by the switches to and from their idle threads.

use emmc_units::Nanos;

/// Processors that are told apart; others are not counted.
const PROCESSORS_MAX: usize = 4096;

/// What is known of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No switch was seen yet.
    #[default]
    Unknown,
    /// Since then it has work.
    Busy(Nanos),
    /// It is idle; an interrupt was taken then.
    Idle(Option<Nanos>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    state: State,
    /// Since when its state is known, and for how long it was before a loss of events.
    known_since: Nanos,
    known_ns: u64,
    /// Unit: nanoseconds.
    busy_ns: u64,
}

/// One more of a processor.
#[inline]
pub(crate) fn count(all: &mut Vec<u64>, cpu: u32) {
    let place = cpu as usize;
    if place >= all.len() && place < PROCESSORS_MAX {
        all.resize(place + 1, 0);
    }
    if let Some(count) = all.get_mut(place) {
        *count += 1;
    }
}

/// All processors.
///
/// An interrupt that ends the idle time is work too: of the last one before the switch. What an interrupt without a
/// switch takes is not counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processors {
    all: Vec<Processor>,
    /// Of those that have work now: how many, and the sum of the instants since when.
    running: (u64, u128),
    busy_ns: u64,
    /// Interrupts of MMC controllers on each.
    pub(crate) interrupts: Vec<u64>,
}

impl Processors {
    /// Whether a processor has had a switch since the last loss of events.
    #[inline]
    pub(crate) fn is_known(&self, cpu: u32) -> bool {
        self.all.get(cpu as usize).is_some_and(|processor| processor.state != State::Unknown)
    }

    /// A processor became idle, or is idle no more.
    pub(crate) fn switch(&mut self, cpu: u32, at: Nanos, idle: bool) {
        let place = cpu as usize;
        if place >= PROCESSORS_MAX {
            return;
        }
        if place >= self.all.len() {
            self.all.resize(place + 1, Processor::default());
        }
        let processor = &mut self.all[place];
        let state = processor.state;
        match (state, idle) {
            (State::Busy(since), true) => {
                let ran = at.0.saturating_sub(since.0);
                processor.busy_ns += ran;
                self.busy_ns += ran;
                self.running = (self.running.0 - 1, self.running.1 - u128::from(since.0));
            }
            (State::Unknown, _) => processor.known_since = at,
            _ => {}
        }
        let begins = |at: Nanos| (State::Busy(at), Some(at));
        let (next, began) = match (state, idle) {
            (_, true) => (State::Idle(None), None),
            (State::Busy(since), false) => (State::Busy(since), None),
            (State::Idle(interrupt), false) => begins(interrupt.unwrap_or(at)),
            (State::Unknown, false) => begins(at),
        };
        processor.state = next;
        if let Some(began) = began {
            self.running = (self.running.0 + 1, self.running.1 + u128::from(began.0));
        }
    }

    /// Events are lost: what the processors do is unknown until their next switches.
    pub(crate) fn lose(&mut self, at: Nanos) {
        for processor in self.all.iter_mut().filter(|processor| processor.state != State::Unknown) {
            if let State::Busy(since) = processor.state {
                let ran = at.0.saturating_sub(since.0);
                processor.busy_ns += ran;
                self.busy_ns += ran;
            }
            processor.known_ns += at.0.saturating_sub(processor.known_since.0);
            processor.state = State::Unknown;
        }
        self.running = (0, 0);
    }

    /// An interrupt was taken.
    pub(crate) fn interrupt(&mut self, cpu: u32, at: Nanos) {
        count(&mut self.interrupts, cpu);
        if let Some(Processor { state: State::Idle(last), .. }) = self.all.get_mut(cpu as usize) {
            *last = Some(at);
        }
    }

    /// Time with work up to now, summed over processors, on the one that has an event now. Unit: nanoseconds.
    #[inline]
    pub(crate) fn until(&self, cpu: u32, at: Nanos) -> u64 {
        let (running, since) = self.running;
        let now = (u128::from(running) * u128::from(at.0)).saturating_sub(since) as u64;
        let interrupted = match self.all.get(cpu as usize) {
            Some(Processor { state: State::Idle(Some(interrupt)), .. }) => at.0.saturating_sub(interrupt.0),
            _ => 0,
        };
        self.busy_ns.saturating_add(now).saturating_add(interrupted)
    }

    /// Of each processor of which a switch is recorded: number, time with work, and time that is known, up to the last
    /// event. Unit: nanoseconds.
    pub(crate) fn shares(&self, end: Nanos) -> impl Iterator<Item = (usize, u64, u64)> {
        let share = move |(number, processor): (usize, &Processor)| {
            let since = |from: Nanos| end.0.saturating_sub(from.0);
            let is_known = processor.state != State::Unknown;
            let now = if let State::Busy(from) = processor.state { since(from) } else { 0 };
            let known = processor.known_ns + if is_known { since(processor.known_since) } else { 0 };
            (is_known || known > 0).then_some((number, processor.busy_ns + now, known))
        };
        self.all.iter().enumerate().filter_map(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_the_time_between_switches_from_and_to_the_idle_thread() {
        let mut processors = Processors::default();
        assert!(!processors.is_known(0));
        processors.switch(0, Nanos(100), true);
        processors.switch(1, Nanos(110), false);
        assert_eq!((processors.until(1, Nanos(150)), processors.until(0, Nanos(150))), (40, 40));
        // Only the last interrupt before the switch is work.
        processors.interrupt(0, Nanos(160));
        processors.interrupt(0, Nanos(180));
        assert_eq!((processors.until(1, Nanos(190)), processors.until(0, Nanos(190))), (80, 90));
        processors.switch(0, Nanos(200), false);
        assert_eq!(processors.until(1, Nanos(200)), 90 + 20);
        processors.switch(1, Nanos(210), true);
        processors.switch(0, Nanos(220), true);
        assert_eq!(processors.until(0, Nanos(300)), 100 + 40);
        assert_eq!(processors.shares(Nanos(300)).collect::<Vec<_>>(), [(0, 40, 200), (1, 100, 190)]);
        // What is lost is neither work nor idle.
        processors.switch(1, Nanos(300), false);
        processors.lose(Nanos(320));
        assert_eq!((processors.until(0, Nanos(400)), processors.is_known(0)), (160, false));
        processors.switch(1, Nanos(500), true);
        assert_eq!(processors.shares(Nanos(510)).collect::<Vec<_>>(), [(0, 40, 220), (1, 120, 220)]);
        // A number that no kernel gives.
        processors.switch(u32::MAX, Nanos(510), false);
        assert_eq!(processors.shares(Nanos(510)).count(), 2);
    }
}
