//! Points at which a test holds a bench or a simulation, so that the test's actions meet it in a known state.
//!
//! `EMMCLAB_HOLD_AT=POINT:COUNT:FILE` holds the process when POINT is reached for the COUNT-th time: FILE is created,
//! and the process waits until FILE is removed or until a signal asks it to stop. Without the variable a point costs
//! one load. Absent on purpose: any use outside of tests.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const VARIABLE: &str = "EMMCLAB_HOLD_AT";

/// The time between two checks of the file by a held process.
const NAP: Duration = Duration::from_millis(5);

/// A state that something outside can depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The user has confirmed, and the target is not yet open for writing.
    Confirmed,
    /// The content of the target is saved, and none of it is overwritten yet.
    Saved,
    /// A write of a suite is complete.
    Written,
    /// The work on the target is over, and nothing is restored yet.
    Worked,
    /// The new file in a folder is filled, before the first measurement.
    Filled,
    /// A new filesystem is mounted.
    Mounted,
    /// A file is about to be renamed.
    Rename,
    /// A step of a plan is about to be sent.
    Step,
    /// A virtual card's life with power cuts is over, and the next one has not begun.
    Life,
}

impl Point {
    const fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Saved => "saved",
            Self::Written => "written",
            Self::Worked => "worked",
            Self::Filled => "filled",
            Self::Mounted => "mounted",
            Self::Rename => "rename",
            Self::Step => "step",
            Self::Life => "life",
        }
    }
}

/// The request in the variable.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    point: String,
    count: u32,
    file: PathBuf,
}

fn parsed(text: &str) -> Option<Request> {
    let mut parts = text.splitn(3, ':');
    let (point, count, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Request { point: point.into(), count: count.parse().ok()?, file: file.into() })
}

/// Marks a point of the program, and waits there if a test requests it.
pub fn reached(point: Point, stop: &AtomicBool) {
    static REQUEST: OnceLock<Option<Request>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let request = REQUEST.get_or_init(|| parsed(&std::env::var(VARIABLE).ok()?));
    let Some(request) = request.as_ref().filter(|request| request.point == point.name()) else { return };
    if PASSED.fetch_add(1, Ordering::Relaxed) + 1 != request.count || std::fs::write(&request.file, "").is_err() {
        return;
    }
    while request.file.exists() && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(NAP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_point_count_and_file() {
        let expected = Request { point: "saved".into(), count: 2, file: "/a:b".into() };
        assert_eq!(parsed("saved:2:/a:b"), Some(expected));
        for text in ["", "saved", "saved:1", "saved:x:/a"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
