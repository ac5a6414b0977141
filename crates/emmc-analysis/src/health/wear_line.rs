//! Constant wear rates that fit the observed life time registers, and when they reach 100 %.
//!
//! A register that shows `n` says only that between 10 x (n - 1) and 10 x n percent are used. A constant rate is a
//! line; it fits if it passes through every such band. The fitting lines form a polygon of (start, rate), and the
//! time of 100 % is smallest and largest at two of its corners. A corner is a line through two band edges, so all of
//! them can be tried. The arithmetic is exact, in integers: rounding would invalidate the bounds.
//!
//! Wear in bursts is no line. If it repeats with a period, a line of its mean rate exists that is never above the wear,
//! and one period later never below it. So a lower edge counts one period later, and the end may come one period before
//! that of the line.
//! Absent on purpose: the unit of the axis. It may be nanoseconds or bytes written.

/// A register value, 1 to 11, and its position on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) at: i128,
    pub(super) value: u8,
}

/// What a fit is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// The used life whose time is sought.
    pub(super) percent: i128,
    /// The wear of each such length of the axis is the same; within it, wear may come at any time. 0: a line.
    pub(super) period: i128,
}

/// When 100 % are used, by a line.
pub(super) const USED_UP: Goal = Goal { percent: 100, period: 0 };

/// The bounds over all fitting lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    /// Slowest and fastest rate, the latter absent where nothing limits it.
    ///
    /// Unit: percent per axis unit.
    pub(super) rate_min: f64,
    pub(super) rate_max: Option<f64>,
    /// Earliest position of the goal, rounded down; absent if nothing limits the rate.
    pub(super) end_min: Option<i128>,
    /// Latest position of the goal, rounded up; absent if zero wear also fits.
    pub(super) end_max: Option<i128>,
}

/// A position and a percentage: an edge of a band.
#[derive(Clone, Copy)]
struct Edge {
    at: i128,
    percent: i128,
}

/// Lower and upper edges that limit every line: at most one of each for each register value.
struct Bands {
    floors: Vec<Edge>,
    ceilings: Vec<Edge>,
}

/// Fits lines through all observations, ordered along the axis; `new_at` is where the part was new, 0 % used.
///
/// Returns `None` if no constant rate fits or there are no observations. A goal below the last observation has no lower
/// bound here: a line without wear may have passed it at any time.
pub(super) fn fit(seen: &[Seen], new_at: Option<i128>, goal: Goal) -> Option<Fit> {
    let bands = Bands::of(seen, new_at, goal.period)?;
    let mut found: Option<Fit> = None;
    for (a, b) in bands.corner_candidates() {
        if bands.admit(a, b) {
            let corner = corner(a, b, goal.percent);
            found = Some(found.map_or(corner, |fit| fit.widened(corner)));
        }
    }
    let mut fit = found?;
    if !bands.limit_the_rate() {
        (fit.rate_max, fit.end_min) = (None, None);
    }
    if fit.rate_min == 0.0 {
        fit.end_max = None;
    }
    fit.end_min = fit.end_min.map(|end| end - goal.period);
    Some(fit)
}

impl Bands {
    fn of(seen: &[Seen], new_at: Option<i128>, period: i128) -> Option<Self> {
        let mut bands = Self { floors: Vec::new(), ceilings: Vec::new() };
        if let Some(at) = new_at {
            bands.floors.push(Edge { at: at + period, percent: 0 });
            bands.ceilings.push(Edge { at, percent: 0 });
        }
        // Wear never decreases, so a floor binds where its value is first seen and a ceiling where it is last seen.
        for value in 1..=11u8 {
            let mut places = seen.iter().filter(|seen| seen.value == value).map(|seen| seen.at);
            let Some(first) = places.next() else { continue };
            let (first, last) = places.fold((first, first), |(low, high), at| (low.min(at), high.max(at)));
            let percent = 10 * i128::from(value);
            bands.floors.push(Edge { at: first + period, percent: percent - 10 });
            if value < 11 {
                bands.ceilings.push(Edge { at: last, percent });
            }
        }
        (!seen.is_empty()).then_some(bands)
    }

    fn edges(&self) -> impl Iterator<Item = Edge> + Clone + '_ {
        self.floors.iter().chain(&self.ceilings).copied()
    }

    /// Candidate corners: horizontal lines through an edge, and rising lines through two edges.
    fn corner_candidates(&self) -> impl Iterator<Item = (Edge, Edge)> + '_ {
        let level = self.edges().map(|edge| (edge, Edge { at: edge.at + 1, ..edge }));
        let rising = self.edges().flat_map(|a| self.edges().map(move |b| (a, b)));
        level.chain(rising.filter(|(a, b)| a.at < b.at && a.percent < b.percent))
    }

    /// Whether the line through `a` and `b`, which is right of it, passes through every band.
    fn admit(&self, a: Edge, b: Edge) -> bool {
        let run = b.at - a.at;
        // Both sides times `run`, which is positive: no division, no rounding.
        let above = |edge: &Edge| a.percent * run + (b.percent - a.percent) * (edge.at - a.at) - edge.percent * run;
        self.floors.iter().all(|floor| above(floor) >= 0) && self.ceilings.iter().all(|ceiling| above(ceiling) <= 0)
    }

    /// Whether a floor is left of a ceiling, which limits the slope.
    fn limit_the_rate(&self) -> bool {
        let first_floor = self.floors.iter().map(|edge| edge.at).min();
        let last_ceiling = self.ceilings.iter().map(|edge| edge.at).max();
        matches!((first_floor, last_ceiling), (Some(floor), Some(ceiling)) if floor < ceiling)
    }
}

fn corner(a: Edge, b: Edge, percent: i128) -> Fit {
    let (rise, run) = (b.percent - a.percent, b.at - a.at);
    let rate = rise as f64 / run as f64;
    let way = (percent - a.percent) * run;
    let end =
        (rise > 0).then(|| (a.at + way.div_euclid(rise), a.at + way.div_euclid(rise) + i128::from(way % rise != 0)));
    Fit {
        rate_min: rate,
        rate_max: Some(rate),
        end_min: end.map(|(floor, _)| floor),
        end_max: end.map(|(_, ceiling)| ceiling),
    }
}

impl Fit {
    fn widened(self, other: Self) -> Self {
        let wider = |ours: Option<i128>, theirs: Option<i128>, pick: fn(i128, i128) -> i128| match (ours, theirs) {
            (Some(ours), Some(theirs)) => Some(pick(ours, theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        Self {
            rate_min: self.rate_min.min(other.rate_min),
            rate_max: self.rate_max.zip(other.rate_max).map(|(ours, theirs)| ours.max(theirs)),
            end_min: wider(self.end_min, other.end_min, i128::min),
            end_max: wider(self.end_max, other.end_max, i128::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible pseudo-random numbers.
    struct Noise(u64);

    impl Noise {
        fn below(&mut self, limit: i128) -> i128 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            i128::from(self.0 >> 1) % limit
        }
    }

    fn seen(pairs: &[(i128, u8)]) -> Vec<Seen> {
        pairs.iter().map(|&(at, value)| Seen { at, value }).collect()
    }

    /// True wear: `start / SCALE` percent at 0 and `rate / SCALE` percent per unit of the axis.
    #[derive(Clone, Copy, Debug)]
    struct Truth {
        start: i128,
        rate: i128,
    }

    const SCALE: i128 = 1_000_000;

    impl Truth {
        /// The register's value; vendors may assign a full tenth to the band below or above it.
        fn value(self, at: i128, below: bool) -> u8 {
            let used = self.start + self.rate * at;
            let tenths = (used - i128::from(below && used > 0)).div_euclid(10 * SCALE);
            u8::try_from(tenths + 1).unwrap().min(11)
        }

        /// Whether the true end is within the bounds.
        fn ends_within(self, fit: Fit) -> bool {
            let left = |end: i128| 100 * SCALE - (self.start + self.rate * end);
            fit.end_min.is_none_or(|end| left(end) >= 0) && fit.end_max.is_none_or(|end| left(end) <= 0)
        }
    }

    fn random_truth(noise: &mut Noise) -> Truth {
        Truth { start: noise.below(60 * SCALE), rate: 1 + noise.below(SCALE / 10) }
    }

    #[test]
    fn the_bounds_contain_the_true_end_and_rate() {
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        let (mut bounded, mut total) = (0, 0);
        for _ in 0..3000 {
            let (truth, below) = (random_truth(&mut noise), noise.below(2) == 0);
            let mut times: Vec<i128> = (0..1 + noise.below(40)).map(|_| noise.below(2000)).collect();
            times.sort_unstable();
            let points: Vec<Seen> = times
                .iter()
                .map(|&at| Seen { at, value: truth.value(at, below) })
                .filter(|seen| seen.value < 11)
                .collect();
            let Some(fit) = fit(&points, None, USED_UP) else {
                assert!(points.is_empty(), "{truth:?} {points:?}");
                continue;
            };
            assert!(truth.ends_within(fit), "{truth:?} {points:?} {fit:?}");
            let rate = truth.rate as f64 / SCALE as f64;
            assert!(fit.rate_min <= rate * 1.000_001 && fit.rate_max.is_none_or(|max| rate <= max * 1.000_001));
            total += 1;
            bounded += i32::from(fit.end_min.is_some() && fit.end_max.is_some());
        }
        assert!(total > 2900 && bounded > total / 2, "the test must test: {bounded} of {total} had two bounds");
    }

    /// All wear of a period comes at one time in it, so steps of the register are up to a period off the mean rate.
    #[test]
    fn the_bounds_contain_the_true_end_of_wear_in_bursts() {
        let mut noise = Noise(0x2545_f491_4f6c_dd1d);
        let (mut bounded, mut without_period) = (0, 0);
        for _ in 0..2000 {
            let period = 2 + noise.below(100);
            let (start, phase) = (noise.below(60 * SCALE), noise.below(period));
            let a_period = SCALE / 10 + noise.below(6 * SCALE);
            let used = |at: i128| start + a_period * (at + phase).div_euclid(period);
            let percent = [90, 100][usize::from(noise.below(2) == 0)];
            let end = (0..).find(|period| start + a_period * period >= percent * SCALE).unwrap() * period - phase;
            let mut times: Vec<i128> = (0..1 + noise.below(60)).map(|_| noise.below(end.max(1))).collect();
            times.sort_unstable();
            let seen = |at: &i128| Seen { at: *at, value: u8::try_from(used(*at).div_euclid(10 * SCALE) + 1).unwrap() };
            let points: Vec<Seen> =
                times.iter().map(seen).filter(|seen| i128::from(seen.value) <= percent / 10).collect();
            if points.is_empty() {
                continue;
            }
            let found = fit(&points, None, Goal { percent, period }).unwrap();
            let (low, high) = (found.end_min.unwrap_or(i128::MIN), found.end_max.unwrap_or(i128::MAX));
            assert!(low <= end && end <= high, "{points:?} {period} {phase} {a_period}: {end} not in {found:?}");
            bounded += i32::from(found.end_min.is_some() && found.end_max.is_some());
            without_period += i32::from(fit(&points, None, Goal { percent, period: 0 }).is_none());
        }
        assert!(bounded > 1000 && without_period > 100, "{bounded} had two bounds, {without_period} were no line");
    }

    #[test]
    fn every_point_tightens_the_bounds() {
        let mut noise = Noise(42);
        for _ in 0..200 {
            let truth = random_truth(&mut noise);
            let mut points: Vec<Seen> = Vec::new();
            let (mut low, mut high) = (None::<i128>, None::<i128>);
            for at in (0..60).map(|day| day * 50) {
                let value = truth.value(at, false);
                if value == 11 {
                    break;
                }
                points.push(Seen { at, value });
                let fit = fit(&points, None, USED_UP).unwrap();
                assert!(low.is_none_or(|low| fit.end_min.is_some_and(|end| end >= low)), "{truth:?} {points:?}");
                assert!(high.is_none_or(|high| fit.end_max.is_some_and(|end| end <= high)), "{truth:?} {points:?}");
                (low, high) = (fit.end_min, fit.end_max);
            }
        }
    }

    #[test]
    fn corners_give_the_bounds_of_an_exhaustive_search() {
        let mut noise = Noise(7);
        for _ in 0..60 {
            let truth = Truth { start: noise.below(40) * SCALE, rate: (1 + noise.below(20)) * SCALE / 4 };
            let points: Vec<Seen> = (0..=noise.below(12))
                .map(|at| Seen { at, value: truth.value(at, false) })
                .filter(|seen| seen.value < 11)
                .collect();
            let Some(fit) = fit(&points, None, USED_UP) else { continue };
            // Every line from (first, start) with a rate in steps of 1/40 percent that passes the bands.
            let fits = |start: i128, rate: i128| {
                points.iter().all(|seen| {
                    let (used, value) = (start * 4 + rate * seen.at, i128::from(seen.value));
                    (400 * (value - 1)..=400 * value).contains(&used)
                })
            };
            for (start, rate) in (0..=1000).step_by(5).flat_map(|start| (1..=400).map(move |rate| (start, rate))) {
                if fits(start, rate) {
                    let left = |end: i128| 4000 - (start * 4 + rate * end);
                    assert!(fit.end_min.is_none_or(|end| left(end) >= 0), "{points:?} {start} {rate} {fit:?}");
                    assert!(fit.end_max.is_none_or(|end| left(end) <= 0), "{points:?} {start} {rate} {fit:?}");
                }
            }
        }
    }

    #[test]
    fn an_upper_bound_needs_a_second_step() {
        let none = Fit { rate_min: 0.0, rate_max: None, end_min: None, end_max: None };
        assert_eq!(fit(&seen(&[(5, 3)]), None, USED_UP), Some(none));
        assert_eq!(fit(&[], None, USED_UP), None);
        // 10 % per 100 at most: 0 % at 0, 10 % at 100, so 100 % at 1000 at the earliest.
        let flat = fit(&seen(&[(0, 1), (100, 1)]), None, USED_UP).unwrap();
        assert_eq!((flat.end_min, flat.end_max, flat.rate_max), (Some(1000), None, Some(0.1)));
        let one_step = fit(&seen(&[(0, 1), (50, 1), (100, 2)]), None, USED_UP).unwrap();
        assert_eq!((one_step.end_min, one_step.end_max, one_step.rate_min), (Some(500), None, 0.0));
        // Two steps: from at most 10 % at 0 to at least 20 % at 100, so at least 10 % per 100.
        let two_steps = fit(&seen(&[(0, 1), (100, 3)]), None, USED_UP).unwrap();
        assert_eq!((two_steps.end_max, two_steps.rate_min), (Some(900), 0.1));
    }

    #[test]
    fn a_known_start_of_service_gives_both_bounds() {
        let fit = fit(&seen(&[(730, 2)]), Some(0), USED_UP).unwrap();
        assert_eq!((fit.end_min, fit.end_max), (Some(3650), Some(7300)));
    }

    #[test]
    fn a_changed_rate_fits_no_line() {
        assert_eq!(fit(&seen(&[(0, 1), (1000, 1), (1010, 5)]), None, USED_UP), None);
        assert_eq!(fit(&seen(&[(0, 5), (10, 3)]), None, USED_UP), None);
    }

    #[test]
    fn all_times_and_byte_counts_are_computed_exactly() {
        let far = i128::from(u64::MAX) * 1000;
        let fit = fit(&seen(&[(-far, 1), (far, 3)]), None, USED_UP).unwrap();
        assert_eq!(fit.end_max, Some(-far + 9 * 2 * far));
    }
}
