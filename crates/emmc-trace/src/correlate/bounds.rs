//! When the driver wrote a command, without a command queue: by its time limit, by the return of the function that
//! writes it, and by the interrupt of its answer.

use std::collections::HashMap;

use emmc_units::Nanos;

use super::commands::{Commands, Host, Running};
use super::table::Table;
use crate::event::Event;
use crate::notes::Mixer;
use crate::request::since;

impl Commands {
    /// A controller's interrupt.
    ///
    /// The first one reports the answer to a command, so that the driver wrote the command between
    /// `mmc_request_start` and it. The middle is taken. If the answer and the end have one interrupt, the handler may
    /// have waited for the end, and the events of the MMC layer count. With a command queue see `done`.
    ///
    /// With a recorded time limit it was written after that. What the driver does in between is the same for every
    /// command, so that the shortest time to an answer bounds all of them: the middle of that is taken. A thread that
    /// sleeps right after keeps interrupts off for longer than an answer takes: such an interrupt bounds nothing.
    /// If the write is recorded (`written`), only that shortest time is kept: it bounds the way of an interrupt to its
    /// handler.
    pub(super) fn interrupt(&mut self, event: &Event, number: u8, table: &mut Table) {
        let at = event.at;
        let Some(host) = self.hosts.get_mut(&number) else { return };
        if host.queues {
            host.interrupt = Some((at, event.cpu));
            return;
        }
        let [running] = &mut host.running[..] else { return };
        let Some((first, last)) = running.interrupts else {
            running.interrupts = Some((at, at));
            let Some(begin) = running.written.or(running.limit) else { return };
            if running.by == (event.pid, event.cpu) {
                let answer = since(begin, at);
                host.answer = Some(host.answer.map_or(answer, |least| least.min(answer)));
            }
            if running.written.is_some() {
                return;
            }
            let open = running.of.and_then(|of| table.get(of)).and_then(|open| open.hardware.as_mut());
            if let Some(hardware) = open.filter(|hardware| hardware.started == begin) {
                let written = begin.0 + host.answer.map_or(0, |answer| answer.0 / 2);
                hardware.started = Nanos(written).min(at);
            }
            return;
        };
        running.interrupts = Some((first, at));
        if running.limit.or(running.written).is_some() {
            return;
        }
        let open = running.of.and_then(|of| table.get(of)).and_then(|open| open.hardware.as_mut());
        if let Some(hardware) = open.filter(|hardware| first == last && hardware.started == running.command.at) {
            hardware.started = Nanos(running.command.at.0.midpoint(first.0));
            self.bounded += 1;
        }
    }

    /// The driver has written a command: since its time limit or its start. The middle is taken.
    pub(super) fn written(&mut self, event: &Event, table: &mut Table) {
        for running in unanswered(&mut self.hosts, event).filter(|running| running.written.is_none()) {
            running.written = Some(event.at);
            let since = running.limit.unwrap_or(running.command.at);
            let open = running.of.and_then(|of| table.get(of)).and_then(|open| open.hardware.as_mut());
            if let Some(hardware) = open.filter(|hardware| hardware.started == since) {
                hardware.started = Nanos(since.0.midpoint(event.at.0));
                self.written += 1;
            }
        }
    }

    /// The driver starts a command's time limit: it writes the command next.
    pub(super) fn limit(&mut self, event: &Event, table: &mut Table) {
        for running in unanswered(&mut self.hosts, event).filter(|running| running.limit.is_none()) {
            running.limit = Some(event.at);
            let open = running.of.and_then(|of| table.get(of)).and_then(|open| open.hardware.as_mut());
            if let Some(hardware) = open.filter(|hardware| hardware.started == running.command.at) {
                hardware.started = event.at;
                self.limited += 1;
            }
        }
    }
}

/// The only command of a controller without a queue, before its answer, that the event's thread started there.
fn unanswered<'a>(hosts: &'a mut HashMap<u8, Host, Mixer>, event: &Event) -> impl Iterator<Item = &'a mut Running> {
    let by = (event.pid, event.cpu);
    hosts.values_mut().filter(|host| !host.queues).filter_map(move |host| match &mut host.running[..] {
        [running] if running.by == by && running.interrupts.is_none() => Some(running),
        _ => None,
    })
}
