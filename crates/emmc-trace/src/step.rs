//! Functions of the MMC layer and of its controllers' drivers, by the kernel's table of symbols.
//!
//! A recording has addresses. `/proc/kallsyms` names them: a section of `trace.dat`, or lines in the file with the
//! formats.

use crate::text::{hex, words};

/// A step of the MMC layer or of a controller's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The driver starts the time limit of a command with data: the next that it does is to write the command.
    Limit,
    /// The driver has written a command: the function that does it returns.
    Written,
}

impl Step {
    /// By the name of an event that the user defined (fprobe), as the kernel and perf name it without a name given.
    ///
    /// Source: `sdhci_send_command` in drivers/mmc/host/sdhci.c; Documentation/trace/fprobetrace.rst.
    pub(crate) fn of_probe(event: &[u8]) -> Option<Self> {
        (event == b"sdhci_send_command__exit").then_some(Self::Written)
    }

    /// By the name of the function that a timer calls.
    ///
    /// Source: `sdhci_send_command` and `sdhci_mod_timer` in drivers/mmc/host/sdhci.c.
    pub(crate) fn of_timer(name: &[u8]) -> Option<Self> {
        (name == b"sdhci_timeout_data_timer").then_some(Self::Limit)
    }
}

/// Addresses of the functions that are steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols(Vec<(u64, Step)>);

impl Symbols {
    /// Adds a line of `/proc/kallsyms`: `ffffffffc03a1b20 t sdhci_timeout_data_timer\t[sdhci]`. Others are not kept.
    pub(crate) fn add(&mut self, line: &[u8]) {
        let mut words = words(line);
        let (Some(address), Some([_]), Some(name)) = (words.next(), words.next(), words.next()) else { return };
        let Some(step) = Step::of_timer(name) else { return };
        if let Some(address) = hex(address).filter(|address| *address != 0) {
            self.0.push((address, step));
        }
    }

    /// The step at an address.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<Step> {
        self.0.iter().find(|(start, _)| *start == address).map(|(_, step)| *step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_needs_an_address_that_the_kernel_shows() {
        let mut symbols = Symbols::default();
        symbols.add(b"0000000000000000 t sdhci_timeout_data_timer\t[sdhci]");
        symbols.add(b"ffffffffc0000010 t sdhci_timeout_timer\t[sdhci]");
        symbols.add(b"ffffffffc0000020 t");
        assert_eq!(symbols.find(0), None);
        symbols.add(b"ffffffffc0000040 t sdhci_timeout_data_timer\t[sdhci]");
        assert_eq!(symbols.find(0xffff_ffff_c000_0040), Some(Step::Limit));
        assert_eq!(symbols.find(0xffff_ffff_c000_0010), None);
    }
}
