//! Recorded requests as a source of requests for a target.

use super::{Trace, TraceRequest};
use crate::drive::source::{Planned, Source};

/// Recorded requests, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    requests: Vec<TraceRequest>,
    done: usize,
    timed: bool,
}

impl Recorded {
    /// At their recorded times, or as fast as the target takes them.
    pub(crate) fn new(requests: Vec<TraceRequest>, timed: bool) -> Self {
        Self { requests, done: 0, timed }
    }
}

impl Source for Recorded {
    const IS_RECORDED: bool = true;

    #[inline]
    fn next(&mut self) -> Option<Planned> {
        let TraceRequest { at, op, offset_bytes, bytes, through, discard } = *self.requests.get(self.done)?;
        self.done += 1;
        Some(Planned { op, offset_bytes, bytes, through, discard, due: self.timed.then_some(at) })
    }

    fn has_more(&self) -> bool {
        self.done < self.requests.len()
    }

    fn done_share(&self) -> f64 {
        self.done as f64 / self.requests.len().max(1) as f64
    }
}

impl Trace {
    /// The requests that are kept, moved into a part of a target; `hint` says how to wrap requests beyond its end.
    ///
    /// Errors: a request that does not fit, or is not of whole sectors.
    pub(crate) fn fitted(
        &self,
        (from_bytes, room): (u64, u64),
        sector: u64,
        wrap: bool,
        hint: &str,
        keep: impl Fn(&TraceRequest) -> bool,
    ) -> Result<Vec<TraceRequest>, String> {
        let mut all = Vec::with_capacity(self.requests.len());
        for (request, number) in self.requests.iter().zip(1..).filter(|(request, _)| keep(request)) {
            let TraceRequest { offset_bytes, bytes, .. } = *request;
            let named = || format!("request {number}: {bytes} bytes at byte {offset_bytes}");
            if offset_bytes % sector != 0 || bytes % sector != 0 {
                return Err(format!("{}; sectors are of {sector}", named()));
            }
            let place = match offset_bytes.checked_add(bytes) {
                Some(end) if end <= room => offset_bytes,
                _ if wrap && bytes <= room => (offset_bytes % room).min(room - bytes),
                _ => return Err(format!("{}; the area has {room} bytes; {hint}", named())),
            };
            all.push(TraceRequest { offset_bytes: from_bytes + place, ..*request });
        }
        Ok(all)
    }
}
