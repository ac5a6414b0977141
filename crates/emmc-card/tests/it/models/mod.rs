//! Write amplification in closed form: the expected value of a layer under uniform and skewed random writes.
//!
//! Notation: `rho` logical over physical size, `alpha` = 1 / rho, `np` units a block. The physical size excludes free
//! and open blocks.

/// Principal branch of Lambert's W for -1/e <= x < 0, by Halley's iteration.
pub(crate) fn lambert_w(x: f64) -> f64 {
    let e = std::f64::consts::E;
    // Near the branch point from its series, elsewhere from the logarithm's.
    let root = (2.0 * (e * x + 1.0)).max(0.0).sqrt();
    let mut w = -1.0 + root - root * root / 3.0;
    for _ in 0..60 {
        let exp = w.exp();
        let error = w * exp - x;
        let step = error / (exp * (w + 1.0) - (w + 2.0) * error / (2.0 * w + 2.0));
        if !step.is_finite() || step.abs() < 1e-15 {
            break;
        }
        w -= step;
    }
    w
}

/// First in, first out; also the limit of greedy for large blocks.
///
/// Source: Desnoyers, SYSTOR 2012; Xiang and Kurkoski, arXiv 1110.4245.
pub(crate) fn fifo(rho: f64) -> f64 {
    let alpha = 1.0 / rho;
    alpha / (alpha + lambert_w(-alpha * (-alpha).exp()))
}

/// Greedy, for blocks of `units` units.
///
/// Source: Desnoyers, SYSTOR 2012.
pub(crate) fn greedy(rho: f64, np: f64) -> f64 {
    let alpha = 1.0 / rho;
    let k = (1.0 + 1.0 / (2.0 * np)) * alpha;
    let x0 = 0.5 - np / alpha * lambert_w(-k * (-k).exp());
    np / (np - (x0 - 1.0))
}

/// A random block, with any content.
pub(crate) fn random(rho: f64) -> f64 {
    1.0 / (1.0 - rho)
}

/// The best of `d` random blocks, for many blocks.
///
/// Source: Van Houdt, SIGMETRICS 2013 (mean field).
pub(crate) fn d_choices(rho: f64, np: u32, d: i32) -> f64 {
    // Host writes a collection, by bisection: how many slots a victim has free on average must be as many.
    let (mut low, mut high) = (1e-9, f64::from(np));
    for _ in 0..100 {
        let writes = 0.5 * (low + high);
        if slots_freed(writes, rho, np, d) > writes { low = writes } else { high = writes }
    }
    f64::from(np) / (0.5 * (low + high))
}

/// Free slots of a victim on average, with this number of host writes between two collections.
fn slots_freed(writes: f64, rho: f64, np: u32, d: i32) -> f64 {
    // Share of blocks with more than k valid units, from the top down.
    let (mut above, mut sum) = (0.0f64, 0.0);
    for k in (0..np).rev() {
        let rate = writes * f64::from(k + 1) / (f64::from(np) * rho);
        let (mut low, mut high) = (0.0, 1.0 - above);
        for _ in 0..60 {
            let share = 0.5 * (low + high);
            if rate * share < 1.0 - (above + share).powi(d) { low = share } else { high = share }
        }
        above += 0.5 * (low + high);
        sum += 1.0 - above.powi(d);
    }
    sum
}

/// First in, first out, when unit `i` of `units` takes a share `p` of the writes, given as (share each, number of such
/// units).
pub(crate) fn fifo_skewed(rho: f64, units: f64, shares: impl Fn() -> Box<dyn Iterator<Item = (f64, f64)>>) -> f64 {
    let next = |a: f64| -> f64 { shares().map(|(p, count)| count * p / (1.0 - (-p * units / (rho * a)).exp())).sum() };
    // The right side falls short of its argument above the fixed point.
    let (mut low, mut high) = (1.0, 1000.0);
    for _ in 0..60 {
        let a = 0.5 * (low + high);
        if next(a) > a { low = a } else { high = a }
    }
    0.5 * (low + high)
}

/// First in, first out, with a share `r` of the writes to a share `f` of the units.
pub(crate) fn fifo_hot_cold(rho: f64, r: f64, f: f64) -> f64 {
    fifo_skewed(rho, 1.0, move || Box::new([(r / f, f), ((1.0 - r) / (1.0 - f), 1.0 - f)].into_iter()))
}

/// Shares of writes by Zipf's law with exponent `s`, the most popular first.
pub(crate) fn zipf(units: u32, s: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=units).map(|rank| f64::from(rank).powf(-s)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// First in, first out under Zipf's law.
pub(crate) fn fifo_zipf(rho: f64, units: u32, s: f64) -> f64 {
    let shares = std::sync::Arc::new(zipf(units, s));
    fifo_skewed(rho, f64::from(units), move || {
        let shares = shares.clone();
        Box::new((0..shares.len()).map(move |rank| (shares[rank], 1.0)))
    })
}

/// What a share `q` of requests that trim a random unit in use leave of `rho`.
///
/// Source: Frankie, Hughes, Kreutz-Delgado, arXiv 1210.5975.
pub(crate) fn trimmed(rho: f64, q: f64) -> f64 {
    rho * (1.0 - 2.0 * q) / (1.0 - q)
}
