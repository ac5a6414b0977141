//! Errors on the lines between host controller and card, on order: what a driver must recover from.
//!
//! They are made where a command goes out ([`super::lines`]), so they meet software's commands, those that the
//! controller sends by itself, and the command queueing engine's alike. Absent on purpose: damage to what the card
//! holds. A command that times out never reached the card; with every other error the card did what it was told, or
//! waits for data that do not come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostError {
    /// The command does not reach the card: no answer.
    CommandTimeout,
    /// The card obeys, and its answer arrives damaged.
    CommandCrc,
    /// The data do not come, or no CRC status for those that went out.
    DataTimeout,
    /// The first block arrives damaged, at the host or at the card, which drops it.
    DataCrc,
    /// The card's answer tells of an error (ERROR, bit 19 of R1).
    Status,
}

impl HostError {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::CommandTimeout, Self::CommandCrc, Self::DataTimeout, Self::DataCrc, Self::Status];

    /// Its name, as in an order.
    pub fn name(self) -> &'static str {
        match self {
            Self::CommandTimeout => "command-timeout",
            Self::CommandCrc => "command-crc",
            Self::DataTimeout => "data-timeout",
            Self::DataCrc => "data-crc",
            Self::Status => "status",
        }
    }

    /// Whether a command can meet it, where none was named.
    fn may_meet(self, index: u8) -> bool {
        match self {
            // Reads and writes of sectors, by themselves or by the queue.
            Self::DataTimeout | Self::DataCrc => matches!(index, 17 | 18 | 24 | 25 | 46 | 47),
            Self::CommandTimeout | Self::CommandCrc | Self::Status => true,
        }
    }
}

/// Which commands meet which error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFault {
    /// The error.
    pub error: HostError,
    /// Only this command; absent: every one that can meet it.
    #[serde(default)]
    pub command: Option<u8>,
    /// So many commands that it is meant for pass first.
    #[serde(default)]
    pub after: u64,
    /// So many meet it then; absent: all that follow.
    #[serde(default)]
    pub times: Option<u64>,
}

impl HostFault {
    /// Whether this command is one; counts it.
    fn strikes(&mut self, index: u8) -> bool {
        let is_meant = self.command.map_or_else(|| self.error.may_meet(index), |command| command == index);
        if !is_meant || self.times == Some(0) {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        self.times = self.times.map(|times| times - 1);
        true
    }
}

/// The errors that are to come: orders go in on one thread, commands meet them on another.
#[derive(Clone, Debug, Default)]
pub struct HostFaults(Arc<Armed>);

#[derive(Debug, Default)]
struct Armed {
    /// Whether there are any: asked for every command.
    is_armed: AtomicBool,
    faults: Mutex<Vec<HostFault>>,
}

impl HostFaults {
    /// From now on this one too.
    pub fn inject(&self, fault: HostFault) {
        self.faults().push(fault);
        self.0.is_armed.store(true, Ordering::Release);
    }

    /// None any more.
    pub fn clear(&self) {
        self.faults().clear();
        self.0.is_armed.store(false, Ordering::Release);
    }

    /// Those that are still to come.
    pub fn list(&self) -> Vec<HostFault> {
        self.faults().clone()
    }

    /// What a command meets.
    pub(crate) fn strike(&self, index: u8) -> Option<HostError> {
        if !self.0.is_armed.load(Ordering::Acquire) {
            return None;
        }
        let mut faults = self.faults();
        let error = faults.iter_mut().find_map(|fault| fault.strikes(index).then_some(fault.error));
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

    #[test]
    fn a_fault_strikes_what_it_is_meant_for_and_is_used_up() {
        let faults = HostFaults::default();
        assert_eq!(faults.strike(18), None);
        faults.inject(HostFault { error: HostError::DataCrc, command: None, after: 1, times: Some(2) });
        faults.inject(HostFault { error: HostError::CommandCrc, command: Some(13), after: 0, times: Some(1) });
        let met = [18, 13, 13, 6, 25, 46, 17].map(|index| faults.strike(index));
        let (data, command) = (Some(HostError::DataCrc), Some(HostError::CommandCrc));
        assert_eq!(met, [None, command, None, None, data, data, None]);
        assert!(faults.list().is_empty());
        faults.inject(HostFault { error: HostError::Status, command: None, after: 0, times: None });
        assert_eq!((faults.strike(0), faults.strike(63)), (Some(HostError::Status), Some(HostError::Status)));
        faults.clear();
        assert_eq!(faults.strike(0), None);
    }

    #[test]
    fn names_are_those_of_orders() {
        for error in HostError::ALL {
            assert_eq!(serde_json::to_value(error).unwrap(), error.name());
        }
    }
}
