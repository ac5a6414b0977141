//! How a host learns that the card is ready: it asks, with pauses.

use emmc_card::device::StorageError;
use emmc_port::BlockRequest;
use emmc_units::{Instant, Nanos};

use crate::SimTarget;

/// The pause of a queue engine between two CMD13 that ask for ready tasks: 4096 clocks of 200 MHz, as drivers of
/// sdhci leave it. Others set 2.35 us (mtk-sd) to the reset value of 213 us.
pub(crate) const POLLING: Nanos = Nanos(20_480);
/// The first pause of Linux between two CMD13 that ask whether a flush has ended, and the longest: each is twice the
/// last. A flush may take 30 s. A host controller cannot wait for the card that long, so no interrupt reports the end.
///
/// Source: `__mmc_poll_for_busy` in the kernel's mmc_ops.c: `usleep_range` from 32 us to twice that, and so on up to
/// 32.768 ms; an idle processor wakes at the end of the range.
const FLUSH_PAUSES: (Nanos, Nanos) = (Nanos(64_000), Nanos(65_536_000));

impl SimTarget {
    /// Sets how often the host asks for ready tasks while no data moves: CIT of its queue engine. Without effect if the
    /// queue is not used.
    pub fn set_polling(&mut self, interval: Nanos) {
        self.polling = self.polling.map(|_| interval.max(Nanos(1)));
    }

    /// The host's controller can wait as long as a flush may take, and reports its end by an interrupt.
    pub fn wait_for_flushes(&mut self) {
        self.asks_for_flushes = false;
    }

    /// Queues a task at `now`: CMD44 and CMD45, then CMD13 until it is ready. Returns when CMD46 or CMD47 can be sent.
    pub(crate) fn queued(&mut self, request: &BlockRequest, now: Instant) -> Result<Instant, StorageError> {
        if self.polling.is_none() {
            return Ok(now);
        }
        let command = self.device.bus().command();
        let queued = now + command + command;
        // A read without room in the buffer is fetched during its transfer.
        let ready = self.prepared(request, queued)?.unwrap_or(queued);
        Ok(self.found(queued, ready))
    }

    /// When a host knows that a flush which it sent at `now` ended at `done`: it asks with growing pauses.
    pub(crate) fn asked(&self, now: Instant, done: Instant) -> Instant {
        if !self.asks_for_flushes {
            return done;
        }
        let command = self.device.bus().command();
        let (mut pause, longest) = FLUSH_PAUSES;
        let mut at = now + command + command;
        while at < done {
            at = at + pause + command;
            pause = (pause + pause).min(longest);
        }
        at.max(done)
    }
}
