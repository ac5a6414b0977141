//! Signals while a bench or a simulation runs: what was measured is printed, what was saved is put back and what was made is
//! removed before the process ends.
//!
//! Absent on purpose: SIGKILL, which nobody can follow, and faults of the program itself.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
};

/// Every signal that ends a process which does not expect it, and that somebody sends.
const ENDING: [i32; 11] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO];

/// From here on Ctrl-C, SIGTERM, a terminal that goes away and the like set `stop` instead of ending the process: what was
/// measured until then is told, and what was saved is put back. What this process was started to ignore (`nohup`) it ignores.
///
/// Errors: the kernel's.
pub(crate) fn stop_by_signal(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    for signal in ENDING.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0) {
        signal_hook::flag::register(signal, Arc::clone(stop)).context("signals")?;
    }
    Ok(())
}

/// From here on a write beyond what `ulimit -f` allows fails as any other does, instead of ending the process.
///
/// Errors: the kernel's.
#[cfg(feature = "bench")]
pub(crate) fn outlive_file_limits() -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).context("signals").map(drop)
}

/// The signals that are ignored, a bit each.
///
/// Source: Linux `Documentation/filesystems/proc.rst`: SigIgn, the lowest bit is signal 1.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_kernels_mask() {
        assert_eq!(ignored("Name:\tx\nSigBlk:\tff\nSigIgn:\t0000000000001001\nSigCgt:\tf\n"), 1 | 1 << 12);
        assert_eq!((ignored(""), ignored("SigIgn:\tno number")), (0, 0));
    }
}
