use emmc_units::Nanos;
use serde::Serialize;

use crate::Pipeline;

/// The completion time of a number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Makespan {
    /// From the start of the first request to the end of the last. Unit: microseconds.
    pub us: f64,
    /// Whether the derivation is exact; else it is an estimate from the long-run period and the first request.
    pub is_exact: bool,
}

impl Pipeline {
    /// The time of `requests` requests, all there at the beginning; none takes no time.
    ///
    /// Derivation (symbols as in [`crate::Limits`], N requests):
    /// - N = 1: **R**. Q = 1: each waits for the one before, **N R** (g, a part of a + p, passes within them).
    /// - One core, device bound (h + g >= a + p): the core is done with its work before the next transfer ends, so the
    ///   card starts after the first pre and then pauses for g only: **a + N h + (N-1) g + p**.
    /// - One core, CPU bound: the core works without pause until the last pre is done. If p < h and h + g <= a, the
    ///   last post but one then still waits, and the last transfer runs meanwhile: **N (a + p) + max(0, h - p)**.
    ///   Otherwise the core may have nothing to do during the last transfers, and this is an estimate. N = 2 has no
    ///   post between its two pres: the second transfer starts at t = max(2a, a + h + g), the first post ends at
    ///   u = max(2a, a + h) + p: **max(t + h, u) + p**.
    /// - Several cores, all of pre serial, p <= max(a, h + g): three stations in a row that each serve one at a time:
    ///   the slowest sets the pace, **R + (N-1) P0** with P0 = max(S, h + g). The paper's `Pre x N + T + Post` is this
    ///   with P0 = a; its `(N + 2) D` the case of three equal stages.
    /// - The same with too few in flight (Q P0 < R): request i starts when request i - Q is through. Groups of Q follow
    ///   each other at R, inside a group at P0: **R + floor((N-1) / Q) R + ((N-1) mod Q) P0**.
    /// - Pre partly parallel, or post the longest stage: the same two forms, as estimates.
    pub fn makespan(&self, requests: u64) -> Makespan {
        if requests == 0 {
            return Makespan { us: 0.0, is_exact: true };
        }
        let (n, request) = (requests as f64, self.spans.total().0 as f64);
        let (ns, is_exact) = match (requests, self.depth, self.cores) {
            (1, _, _) => (request, true),
            (_, 1, _) => (n * request, true),
            (2, _, 1) => self.two_on_one_core_ns(),
            (_, _, 1) => self.one_core_ns(n),
            _ => self.several_cores_ns(requests),
        };
        Makespan { us: ns / 1e3, is_exact }
    }

    fn two_on_one_core_ns(&self) -> (f64, bool) {
        let (a, h, p) = (self.spans.pre, self.spans.hw, self.spans.post);
        let second_transfer = (a + a).max(a + h + self.gap_in_effect());
        let first_post_end = (a + a).max(a + h) + p;
        (((second_transfer + h).max(first_post_end) + p).0 as f64, self.serial == a)
    }

    fn one_core_ns(&self, n: f64) -> (f64, bool) {
        let (a, h, p) = (self.spans.pre, self.spans.hw, self.spans.post);
        let gap = self.gap_in_effect();
        if h + gap >= a + p {
            return ((a + p).0 as f64 + n * h.0 as f64 + (n - 1.0) * gap.0 as f64, true);
        }
        let is_exact = self.serial == a && p < h && h + gap <= a;
        (n * (a + p).0 as f64 + (h - p).0 as f64, is_exact)
    }

    fn several_cores_ns(&self, requests: u64) -> (f64, bool) {
        let (request, pace) = (self.spans.total().0 as f64, self.unlimited_period_ns());
        let is_exact = self.serial == self.spans.pre && self.spans.post <= self.slowest_before_post();
        let (after_first, depth) = (requests - 1, u64::from(self.depth));
        let ns = if f64::from(self.depth) * pace < request {
            request * (1 + after_first / depth) as f64 + (after_first % depth) as f64 * pace
        } else {
            request + after_first as f64 * pace
        };
        (ns, is_exact)
    }

    fn slowest_before_post(&self) -> Nanos {
        self.spans.pre.max(self.spans.hw + self.gap_in_effect())
    }
}
