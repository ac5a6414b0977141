//! Injected errors on the bus between host controller and card, for the recovery of drivers.
//!
//! They apply when a command is sent ([`super::lines`]), so they affect commands of software, automatic commands, and
//! those of the command queueing engine. Absent on purpose: damage to stored data. A command that times out never
//! reached the card; with every other error the card executed the command, or waits for missing data.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// The kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostError {
    /// The command does not reach the card: no response.
    CommandTimeout,
    /// The card executes the command, and its response arrives damaged.
    CommandCrc,
    /// No data arrive, or no CRC status for data that were sent.
    DataTimeout,
    /// The first block arrives damaged, at the host or at the card, which drops it.
    DataCrc,
    /// The card's response has an error bit (ERROR, bit 19 of R1).
    Status,
}

impl HostError {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::CommandTimeout, Self::CommandCrc, Self::DataTimeout, Self::DataCrc, Self::Status];

    /// Its name in an order.
    pub fn name(self) -> &'static str {
        match self {
            Self::CommandTimeout => "command-timeout",
            Self::CommandCrc => "command-crc",
            Self::DataTimeout => "data-timeout",
            Self::DataCrc => "data-crc",
            Self::Status => "status",
        }
    }

    /// Whether a command can have this error, if no command was named.
    fn may_meet(self, index: u8) -> bool {
        match self {
            // Reads and writes of sectors, direct or from the queue.
            Self::DataTimeout | Self::DataCrc => matches!(index, 17 | 18 | 24 | 25 | 46 | 47),
            Self::CommandTimeout | Self::CommandCrc | Self::Status => true,
        }
    }
}

/// Which commands get which error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFault {
    /// The error.
    pub error: HostError,
    /// Only this command; absent: every command that can have the error.
    #[serde(default)]
    pub command: Option<u8>,
    /// Only while the bus is clocked faster than this. Unit: Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_hz: Option<u64>,
    /// Number of matching commands that succeed first.
    #[serde(default)]
    pub after: u64,
    /// Number of commands that fail then; absent: all that follow.
    #[serde(default)]
    pub times: Option<u64>,
    /// Of those, only each Nth, from the first one on; absent: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<NonZeroU64>,
}

impl HostFault {
    /// An error for every command that can have it.
    pub fn of(error: HostError) -> Self {
        Self { error, command: None, above_hz: None, after: 0, times: None, every: None }
    }

    /// Whether this command fails, on a bus with this clock; counts it.
    fn strikes(&mut self, index: u8, hz: u64) -> bool {
        if self.above_hz.is_some_and(|limit| hz <= limit) {
            return false;
        }
        let is_meant = self.command.map_or_else(|| self.error.may_meet(index), |command| command == index);
        if !is_meant || self.times == Some(0) {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        self.after = self.every.map_or(0, |every| every.get() - 1);
        self.times = self.times.map(|times| times - 1);
        true
    }
}

/// The pending errors: orders add them on one thread, commands use them up on another.
#[derive(Clone, Debug, Default)]
pub struct HostFaults(Arc<Armed>);

#[derive(Debug, Default)]
struct Armed {
    /// Whether any error is pending; read for every command.
    is_armed: AtomicBool,
    faults: Mutex<Vec<HostFault>>,
}

impl HostFaults {
    /// Adds an error.
    pub fn inject(&self, fault: HostFault) {
        self.faults().push(fault);
        self.0.is_armed.store(true, Ordering::Release);
    }

    /// Removes all errors.
    pub fn clear(&self) {
        self.faults().clear();
        self.0.is_armed.store(false, Ordering::Release);
    }

    /// The pending errors.
    pub fn list(&self) -> Vec<HostFault> {
        self.faults().clone()
    }

    /// The error that a command gets.
    pub(crate) fn strike(&self, index: u8, hz: u64) -> Option<HostError> {
        if !self.0.is_armed.load(Ordering::Acquire) {
            return None;
        }
        let mut faults = self.faults();
        let error = faults.iter_mut().find_map(|fault| fault.strikes(index, hz).then_some(fault.error));
        faults.retain(|fault| fault.times != Some(0));
        self.0.is_armed.store(!faults.is_empty(), Ordering::Release);
        error
    }

    fn faults(&self) -> MutexGuard<'_, Vec<HostFault>> {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 100_000_000;

    #[test]
    fn a_fault_affects_its_target_once() {
        let faults = HostFaults::default();
        assert_eq!(faults.strike(18, HZ), None);
        faults.inject(HostFault { after: 1, times: Some(2), ..HostFault::of(HostError::DataCrc) });
        faults.inject(HostFault { command: Some(13), times: Some(1), ..HostFault::of(HostError::CommandCrc) });
        let met = [18, 13, 13, 6, 25, 46, 17].map(|index| faults.strike(index, HZ));
        let (data, command) = (Some(HostError::DataCrc), Some(HostError::CommandCrc));
        assert_eq!(met, [None, command, None, None, data, data, None]);
        assert!(faults.list().is_empty());
        faults.inject(HostFault::of(HostError::Status));
        assert_eq!((faults.strike(0, HZ), faults.strike(63, HZ)), (Some(HostError::Status), Some(HostError::Status)));
        faults.clear();
        assert_eq!(faults.strike(0, HZ), None);
    }

    #[test]
    fn a_marginal_bus_fails_now_and_then_above_a_clock() {
        let faults = HostFaults::default();
        let marginal = HostFault { above_hz: Some(HZ), every: NonZeroU64::new(3), ..HostFault::of(HostError::DataCrc) };
        faults.inject(marginal);
        let met = |hz| (0..9).filter(|_| faults.strike(18, hz).is_some()).count();
        assert_eq!((met(HZ), met(HZ + 1), met(2 * HZ)), (0, 3, 3));
    }

    #[test]
    fn fault_names_match_the_control_commands() {
        for error in HostError::ALL {
            assert_eq!(serde_json::to_value(error).unwrap(), error.name());
        }
    }
}
