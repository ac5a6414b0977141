//! Whether standard output was open when the process began.
//!
//! Rust's runtime opens /dev/null in place of a closed standard output before `main`, so that `emmclab show x >&-`
//! would print into nothing and succeed. Only a function that the loader calls before can see the difference.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the loader before Rust's runtime.
extern "C" fn look() {
    // SAFETY: the call reads the flags of a descriptor, which need not be open; it touches no memory.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions without arguments, which the C runtime calls once; this one uses
// nothing that Rust's runtime prepares.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look;

/// Whether standard output was closed when the process began.
pub fn stdout_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
