//! The processors of the machine take turns in a way that does not depend on when the host runs QEMU's threads.
//!
//! With instructions as the clock one thread executes all processors, each for a share of the time until the next
//! event. Other threads of QEMU may end such a turn early. That is harmless with one processor, but moves the next one
//! to another instruction of its neighbour. Three such places were found with QEMU 11.1:
//!
//! - A processor is marked as halted some time before its last instructions are added to the clock. QEMU's main loop
//!   may look in between, and then jumps to the next event from a clock that is behind.
//! - It may jump too before the thread of the processors waits, or again after that has been woken. The turns then
//!   begin with another processor, and end at another time.
//! - The thread that frees memory interrupts the processors, after a BAR has moved for example.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use crate::qemu::Functions;

static QEMU: OnceLock<Functions> = OnceLock::new();

/// The thread of the processors waits, and nobody has moved the clock since.
static WAITS: AtomicBool = AtomicBool::new(false);

/// Looks at the blocks of instructions that are translated from now on. Called in the plugin's installation.
pub(crate) fn install(id: u64, qemu: Functions) {
    QEMU.get_or_init(|| qemu).on_translation(id, translated);
}

/// Decides from now on when the clock may jump. Called for each device, when the accelerator is set up.
///
/// Errors: this QEMU's accelerator has an unknown layout.
pub(crate) fn settle() -> Result<(), String> {
    static SETTLED: OnceLock<Result<(), String>> = OnceLock::new();
    SETTLED.get_or_init(|| qemu().on_idle(is_idle)).clone()
}

fn qemu() -> &'static Functions {
    QEMU.get().expect("the plugin was installed")
}

extern "C" fn translated(block: *const c_void, _: *mut c_void) {
    const HLT: [u8; 1] = [0xf4];
    const MWAIT: [u8; 3] = [0x0f, 0x01, 0xc9];
    qemu().before_instructions(block, |code| code == HLT || code == MWAIT, halting);
}

/// Before a processor halts: the clock gets all its instructions, and waits for the thread of the processors.
extern "C" fn halting(processor: c_uint, _: *mut c_void) {
    static ON_THIS_THREAD: Once = Once::new();
    ON_THIS_THREAD.call_once(|| qemu().defer_freeing());
    WAITS.store(false, Ordering::SeqCst);
    qemu().count_instructions(processor);
}

/// Asked for each processor in turn, until one has something to do: by the thread of the processors, which waits if
/// all are idle, and by the main loop, which then moves the clock. QEMU's lock is held.
extern "C" fn is_idle(processor: *const c_void) -> bool {
    let is_last = qemu().is_last(processor);
    if qemu().is_processors_thread() {
        if is_last {
            WAITS.store(true, Ordering::SeqCst);
        }
        return true;
    }
    let waits = WAITS.load(Ordering::SeqCst);
    if waits && is_last {
        // It is moved once for each wait.
        WAITS.store(false, Ordering::SeqCst);
    }
    waits
}
