//! One processor for the machine and its server.
//!
//! Only one of the two works at a time: each access is a message and its answer. On one processor that is a switch
//! between two threads; on two, each message also has to wake a processor that sleeps, which takes many times as long.

use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Binds this thread and the machine at the other end of a socket to the same processor, which depends on the machine:
/// several machines share the processors. Where the system does not allow it, both run anywhere.
pub(super) fn share(machine: &UnixStream) {
    let Ok(peer) = socket_peercred(machine) else { return };
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let number = Pid::as_raw(Some(peer.pid)).unsigned_abs() as usize;
    let Some(processor) = processors.get(number % processors.len().max(1)) else { return };
    let mut one = CpuSet::new();
    one.set(*processor);
    // A machine of another user cannot be bound; the server alone then would gain nothing.
    if sched_setaffinity(Some(peer.pid), &one).is_ok() {
        let _ = sched_setaffinity(None, &one);
    }
}
