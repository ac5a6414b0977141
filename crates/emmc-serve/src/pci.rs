//! The controller as a PCI function: configuration space (`config`), registers behind BAR 0, one interrupt.
//!
//! BAR 0, of 4 KiB: the SD host controller at 0, the command queueing engine at 0x200 if the identity has one, and
//! GL9763E's own register at 0x52c. The transport (vfio-user, tests, fuzzing) services the function with the card
//! whenever the function requests it, and when it is due. Absent on purpose: power management capabilities (the
//! function is always in D0), and several slots.

mod board;
mod config;
mod identity;
mod mailbox;
mod record;
#[cfg(test)]
pub(crate) mod rig;
#[cfg(test)]
mod tests;

use emmc_card::card::Card;
use emmc_units::Instant;

use crate::cqhci::{Cqhci, Surroundings};
use crate::sdhci::lines::Lines;
use crate::sdhci::{GuestMemory, HostFaults, RequestAccount, Sdhci, Unmapped};
pub use board::{AccessCounts, Board};
use config::ConfigSpace;
pub use config::{BAR_BYTES, CONFIG_BYTES};
pub use identity::Identity;
pub use mailbox::{LineHost, MailboxHost};
pub use record::{Record, RecordedRequest};

/// The offset of the command queueing engine in BAR 0.
const CQHCI: usize = 0x200;
const CQHCI_END: usize = 0x300;
/// GL9763E's register for enhanced strobe: a bit that software stores there. Source: Linux `sdhci-pci-gli.c`.
const ENHANCED_STROBE: usize = 0x52c;

/// The PCI function.
#[derive(Debug)]
pub struct Function {
    identity: Identity,
    config: ConfigSpace,
    sdhci: Sdhci,
    cqhci: Option<Cqhci>,
    lines: Lines,
    enhanced_strobe: [u8; 4],
}

/// Empty memory, for a function that is not bus master.
struct Nothing;

impl GuestMemory for Nothing {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        Err(Unmapped { address, bytes: into.len() })
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Unmapped> {
        Err(Unmapped { address, bytes: from.len() })
    }
}

impl Function {
    /// A function after reset.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            config: ConfigSpace::new(identity),
            sdhci: Sdhci::new(identity.abilities()),
            cqhci: identity.has_queue().then(Cqhci::new),
            lines: Lines::default(),
            enhanced_strobe: [0; 4],
        }
    }

    /// The same, with errors on the bus to the card.
    pub fn with_faults(mut self, faults: HostFaults) -> Self {
        self.lines.faults = faults;
        self
    }

    /// The same, with an account of each request: [`Function::take_accounts`] must be called now and then.
    pub fn with_accounts(mut self) -> Self {
        self.lines.accounts.enabled = true;
        self
    }

    /// The requests that have ended since the last call, in that order.
    pub fn take_accounts(&mut self) -> Vec<RequestAccount> {
        self.lines.accounts.take()
    }

    /// The controller it presents itself as.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// State as after a bus reset; the card keeps its power and does not notice.
    pub fn reset(&mut self) {
        self.config = ConfigSpace::new(self.identity);
        self.abandon();
        self.enhanced_strobe = [0; 4];
    }

    /// Drops the current work without any interrupt, and resets the registers of BAR 0: drivers run into their
    /// timeouts.
    pub fn abandon(&mut self) {
        self.sdhci.reset();
        if let Some(cqhci) = &mut self.cqhci {
            cqhci.reset();
        }
    }

    /// Software reads configuration space.
    ///
    /// Shape: up to 8 bytes, any alignment.
    pub fn read_config(&self, offset: usize, bytes: usize) -> u64 {
        self.config.read(offset, bytes)
    }

    /// Software writes configuration space.
    pub fn write_config(&mut self, offset: usize, bytes: usize, value: u64) {
        self.config.write(offset, bytes, value);
    }

    /// Software reads BAR 0.
    ///
    /// Shape: up to 8 bytes, any alignment.
    pub fn read(&mut self, offset: usize, bytes: usize, now: Instant) -> u64 {
        match (offset, &self.cqhci) {
            (0..0x100, _) => {
                let engine = self.cqhci.as_ref().is_some_and(Cqhci::interrupt);
                self.sdhci.read(offset, bytes, engine, &self.lines, now)
            }
            (CQHCI..CQHCI_END, Some(cqhci)) => cqhci.read(offset - CQHCI, bytes),
            _ => {
                let byte = |index: usize| (offset + index).checked_sub(ENHANCED_STROBE).map(|at| (index, at));
                let known = (0..bytes.min(8)).filter_map(byte).filter(|(_, at)| *at < 4);
                known.fold(0, |value, (index, at)| value | u64::from(self.enhanced_strobe[at]) << (8 * index))
            }
        }
    }

    /// Software writes BAR 0.
    ///
    /// Shape: up to 8 bytes, any alignment.
    pub fn write(&mut self, offset: usize, bytes: usize, value: u64, now: Instant) {
        let bytes = bytes.min(8);
        match (offset, &mut self.cqhci) {
            (0..0x100, cqhci) => {
                // A reset of everything includes the engine.
                let resets = (offset..offset + bytes).contains(&0x2f) && value >> (8 * (0x2f - offset)) & 1 == 1;
                if let (true, Some(cqhci)) = (resets, cqhci) {
                    cqhci.reset();
                }
                self.sdhci.write(offset, bytes, value, now);
            }
            (CQHCI..CQHCI_END, Some(cqhci)) => cqhci.write(offset - CQHCI, bytes, value, now),
            _ => {
                for (index, byte) in value.to_le_bytes().into_iter().enumerate().take(bytes) {
                    let at = (offset + index).wrapping_sub(ENHANCED_STROBE);
                    if let Some(kept) = self.enhanced_strobe.get_mut(at) {
                        *kept = byte;
                    }
                }
            }
        }
    }

    /// Whether it can use the card now.
    pub fn wants_service(&self) -> bool {
        self.sdhci.wants_service() || self.cqhci.as_ref().is_some_and(Cqhci::wants_service)
    }

    /// When it must be serviced next without an access by software.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let engine = self.cqhci.as_ref().and_then(Cqhci::poll_timeout);
        self.sdhci.poll_timeout().into_iter().chain(engine).min()
    }

    /// Executes the requests of software and the work that is due at `now`.
    pub fn service(&mut self, card: &mut Card, memory: &dyn GuestMemory, now: Instant) {
        let memory = if self.config.masters_bus() { memory } else { &Nothing };
        self.sdhci.service(card, memory, &mut self.lines, now);
        if let Some(cqhci) = &mut self.cqhci {
            let data_timeout = self.sdhci.data_timeout();
            cqhci.service(&mut Surroundings { card, memory, lines: &mut self.lines, data_timeout, now });
            let errors = cqhci.take_errors();
            self.sdhci.raise_errors(errors);
        }
    }

    /// Whether the interrupt line is asserted.
    pub fn interrupt(&self) -> bool {
        self.sdhci.interrupt(self.cqhci.as_ref().is_some_and(Cqhci::interrupt))
    }
}
