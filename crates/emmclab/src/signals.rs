//! Signals during a bench or a simulation: before the process ends, results are printed, saved content is restored and
//! temporary files are removed.
//!
//! Absent on purpose: SIGKILL and SIGSTOP, which cannot be handled, and signals of faults in the program (SIGSEGV,
//! SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS), after which it cannot go on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(feature = "trace")]
use std::sync::atomic::AtomicUsize;

use anyhow::Context;
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
};

/// Every signal that users or systems send and that ends a process by default; the real-time signals are more.
///
/// Source: signal(7).
const ENDING: [i32; 13] = [
    SIGINT,
    SIGTERM,
    SIGHUP,
    SIGQUIT,
    SIGALRM,
    SIGUSR1,
    SIGUSR2,
    SIGXCPU,
    SIGVTALRM,
    SIGPROF,
    SIGIO,
    SIGABRT,
    libc::SIGPWR,
];

/// Unused by Linux, and not everywhere.
#[cfg(not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc", target_arch = "sparc64")))]
const STACK_FAULT: Option<i32> = Some(libc::SIGSTKFLT);
#[cfg(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc", target_arch = "sparc64"))]
const STACK_FAULT: Option<i32> = None;

/// Makes Ctrl-C, SIGTERM, SIGHUP and similar signals set `stop` instead of ending the process, so that results are
/// printed and saved content is restored. Signals that the process was started to ignore (`nohup`) stay ignored.
///
/// Errors: those of the kernel.
pub(crate) fn stop_by_signal(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for signal in ending() {
        signal_hook::flag::register(signal, Arc::clone(stop)).context("signals")?;
    }
    Ok(())
}

/// Keeps the number of such a signal when one comes; 0 until then.
///
/// Errors: those of the kernel.
#[cfg(feature = "trace")]
pub(crate) fn keep_signal(last: &Arc<AtomicUsize>) -> anyhow::Result<()> {
    for signal in ending() {
        signal_hook::flag::register_usize(signal, Arc::clone(last), signal as usize).context("signals")?;
    }
    Ok(())
}

/// Wakes a thread at such a signal and at the end of a child: a recorder that looked again and again would be work on
/// the processors that it records; a bench waits with it for a place for saved content.
#[cfg(any(feature = "bench", feature = "trace"))]
pub(crate) struct Wakes(std::os::unix::net::UnixStream);

#[cfg(any(feature = "bench", feature = "trace"))]
impl Wakes {
    /// From now on, and after [`stop_by_signal`] or [`keep_signal`], whose flag is set when a signal wakes.
    ///
    /// Errors: those of the kernel.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let (woken, wakes) = std::os::unix::net::UnixStream::pair().context("signals")?;
        woken.set_nonblocking(true).context("signals")?;
        for signal in ending().chain([signal_hook::consts::SIGCHLD]) {
            let wakes = wakes.try_clone().context("signals")?;
            signal_hook::low_level::pipe::register(signal, wakes).context("signals")?;
        }
        Ok(Self(woken))
    }

    /// Until a signal comes, or came since the last call, or this time is over.
    ///
    /// Errors: those of the kernel.
    pub(crate) fn wait(&self, time: Option<std::time::Duration>) -> anyhow::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], time.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("waiting for a signal"),
        }
        while std::io::Read::read(&mut &self.0, &mut [0; 64]).is_ok_and(|count| count > 0) {}
        Ok(())
    }
}

/// The signals that end a process, without those that it was started to ignore.
fn ending() -> impl Iterator<Item = i32> {
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    let all = ENDING.into_iter().chain(STACK_FAULT).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
    // The kernel's mask has 64 signals.
    all.filter(move |signal| ignored.checked_shr(signal.unsigned_abs() - 1).unwrap_or(0) & 1 == 0)
}

/// Makes a write beyond `ulimit -f` fail with an error instead of ending the process.
///
/// Errors: those of the kernel.
#[cfg(feature = "bench")]
pub(crate) fn outlive_file_limits() -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).context("signals").map(drop)
}

/// The ignored signals, one bit each.
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
    fn ignored_signals_are_read_from_the_kernel_mask() {
        assert_eq!(ignored("Name:\tx\nSigBlk:\tff\nSigIgn:\t0000000000001001\nSigCgt:\tf\n"), 1 | 1 << 12);
        assert_eq!((ignored(""), ignored("SigIgn:\tno number")), (0, 0));
    }
}
