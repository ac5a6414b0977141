//! What holds for every reader of a recording: events come in the order of time, the spans of a request add up to its
//! whole time, and damage has a place within the input.

use emmc_trace::{Correlator, EventSource, Merge, Request};

/// Reads all of `source`, whose input has `bytes`.
pub fn check<S: EventSource>(source: S, bytes: usize) {
    let mut merge = Merge::new(vec![source]);
    let mut last = emmc_units::Nanos::ZERO;
    let mut correlator = Correlator::default();
    let mut check = |request: &Request| {
        let spans = request.spans();
        let all = [spans.vfs, spans.block, spans.issue, spans.hardware, spans.post];
        let sum: u64 = all.into_iter().flatten().map(|span| span.0).sum();
        assert!(sum == request.total().0 || spans.hardware.is_none(), "{request:?}");
    };
    merge.run(|event| {
        assert!(last <= event.at, "{event:?}");
        last = event.at;
        correlator.take(event, &mut check);
    });
    correlator.end(&mut check);
    assert!(merge.notes().damage.iter().all(|damage| damage.offset <= bytes as u64));
}
