//! What an event costs the processor that has it: system calls with and without it.

use std::fs::File;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Recorder;

/// Calls in the calibration: some milliseconds.
const CALLS: u32 = 20_000;
/// The call's event, whose sums are calibrated.
const CALL: &str = "events/syscalls/sys_enter_getppid";

impl Recorder {
    /// The processor time of an event, by system calls with and without events. Unit: ns; `None` if it cannot be known.
    pub(super) fn calibrate(&self) -> Option<f64> {
        let events = ["events/syscalls/sys_enter_getppid/enable", "events/syscalls/sys_exit_getppid/enable"];
        let without = calls();
        events.iter().try_for_each(|event| self.set(event, "1")).ok()?;
        self.set("tracing_on", "1").ok()?;
        let with = calls();
        let ended = ["tracing_on", events[0], events[1]].iter().try_for_each(|file| self.set(file, "0"));
        // An empty write to `trace` clears the buffer.
        let cleared = File::create(self.instance.join("trace"));
        ended.ok().and(cleared.ok())?;
        let cost: Duration = with.saturating_sub(without);
        Some(cost.as_nanos() as f64 / f64::from(2 * CALLS))
    }

    /// The processor time of an event that the kernel adds to a sum, as above.
    pub(super) fn calibrate_sums(&self) -> Option<f64> {
        let trigger = "hist:keys=common_pid.execname:vals=hitcount";
        let without = calls();
        self.set(&format!("{CALL}/trigger"), trigger).ok()?;
        let with = calls();
        // Not `set`: opening the file to replace it removes the trigger, and then there is none to remove.
        self.add(&format!("{CALL}/trigger"), &format!("!{trigger}")).ok()?;
        Some(with.saturating_sub(without).as_nanos() as f64 / f64::from(CALLS))
    }
}

/// The processor time of the calls.
fn calls() -> Duration {
    let began = processor_time();
    for _ in 0..CALLS {
        std::hint::black_box(rustix::process::getppid());
    }
    processor_time().saturating_sub(began)
}

/// What this thread has had of its processor: other load does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
