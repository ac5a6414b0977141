//! The processor's work in User-Mode Linux, as parameters of its kernel.
//!
//! The kernel charges time where work passes it: at system calls, at registers, at interrupts, and at the trace points
//! of the block layer, the page cache and the scheduler (`xtask/guest/uml/simulated.c`). The sums of a request's
//! instructions were measured, their shares were not: docs/lab.md.

use std::ffi::OsString;

/// Instructions of one of each: the kernel's parameter, and how many. Source: the guest in QEMU, which counts them,
/// with the same workload at 1 and 4 ns an instruction (docs/lab.md); those of one request are spread over its steps by
/// judgement, only their sums are measured. Assumed: a copy moves 8 bytes an instruction, because QEMU counts each byte
/// of a string instruction as one.
const INSTRUCTIONS: [(&str, f64); 11] = [
    // With the program's own work between two calls.
    ("cost_syscall_ns", 2000.0),
    ("cost_read_ns", 15.0),
    ("cost_write_ns", 15.0),
    ("cost_irq_ns", 1000.0),
    ("cost_copy_ns", 128.0),
    ("cost_page_ns", 2300.0),
    ("cost_bio_ns", 6000.0),
    ("cost_mapped_ns", 560.0),
    ("cost_issue_ns", 6000.0),
    ("cost_done_ns", 600.0),
    ("cost_switch_ns", 1000.0),
];

/// The kernel's parameters for a processor that needs `ns` for an instruction; of 0 there are none: its work is free.
pub fn parameters(ns: f64) -> Vec<OsString> {
    let cost = |(name, instructions): (&str, f64)| format!("{name}={:.0}", instructions * ns).into();
    if ns > 0.0 { INSTRUCTIONS.into_iter().map(cost).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_proportional() {
        assert!(parameters(0.0).is_empty());
        let number = |text: &OsString| text.to_string_lossy().rsplit_once('=').unwrap().1.parse::<f64>().unwrap();
        for (one, four) in parameters(1.0).iter().zip(parameters(4.0)) {
            assert!((number(one) * 4.0 - number(&four)).abs() < 0.5, "{one:?} {four:?}");
        }
    }
}
