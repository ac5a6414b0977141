//! Sums of writes into files that the kernel keeps itself (hist triggers): no event is recorded, nothing can overflow.

use super::events::FILE_EVENTS;
use super::{Recorder, TracefsError};

/// Pairs of thread and file for each event that the kernel has room for.
const ENTRIES: u32 = 16_384;

/// Sums by thread and file, in an instance of their own. They end when it is dropped.
#[derive(Debug)]
pub struct FileSums {
    recorder: Recorder,
    /// The event, and its trigger.
    events: Vec<(&'static str, String)>,
    /// What an event costs. Unit: nanoseconds; `None` if it could not be measured.
    pub event_ns: Option<f64>,
}

impl FileSums {
    /// Begins to sum up; `None` if this kernel has no hist triggers, or no event of writes into files.
    ///
    /// Errors: no tracefs, no permission.
    pub fn new() -> Result<Option<Self>, TracefsError> {
        // Nothing is written into its buffer.
        let recorder = Recorder::empty(0)?;
        let event_ns = recorder.calibrate_sums();
        let mut events = Vec::new();
        for event in FILE_EVENTS {
            let (place, values) =
                if event.starts_with("writeback/") { ("name", "hitcount") } else { ("dev", "copied") };
            let trigger = format!("hist:keys=common_pid.execname,{place},ino:vals={values}:size={ENTRIES}");
            if recorder.set(&format!("events/{event}/trigger"), &trigger).is_ok() {
                events.push((event, trigger));
            }
        }
        Ok((!events.is_empty()).then_some(Self { recorder, events, event_ns }))
    }

    /// Pairs that the kernel has room for, of each event.
    pub fn room(&self) -> u64 {
        u64::from(ENTRIES)
    }

    /// What each event has summed up, as the kernel's text.
    ///
    /// Errors: those of the system.
    pub fn read(&self) -> Result<Vec<Vec<u8>>, TracefsError> {
        let one = |(event, _): &(&str, String)| {
            let place = format!("events/{event}/hist");
            let failed = |error| TracefsError::System { place: self.recorder.instance.join(&place), error };
            self.recorder.read(&place).map_err(failed)
        };
        self.events.iter().map(one).collect()
    }

    /// Empties the table of one event, in the order of [`read`](Self::read). Writes since it was read are lost.
    ///
    /// Errors: those of the system.
    pub fn clear(&self, number: usize) -> Result<(), TracefsError> {
        let Some((event, trigger)) = self.events.get(number) else { return Ok(()) };
        self.recorder.add(&format!("events/{event}/trigger"), &format!("{trigger}:clear"))
    }
}

impl Drop for FileSums {
    fn drop(&mut self) {
        for (event, trigger) in &self.events {
            // An instance with triggers is removed too; without them its tables are free at once.
            drop(self.recorder.add(&format!("events/{event}/trigger"), &format!("!{trigger}")));
        }
    }
}
