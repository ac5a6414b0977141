//! Statistics that a few outliers do not move.

/// The median; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// A quantile between the nearest values; NaN without values.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if sorted.is_empty() {
        return f64::NAN;
    }
    sorted.sort_by(f64::total_cmp);
    let place = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// The median absolute deviation, scaled to the standard deviation of a normal distribution.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    let apart: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.4826 * median(&apart)
}

/// The mean without the highest quarter and the lowest quarter: unlike the median it averages two equal modes, such as
/// the program times of a word line's two pages.
pub(crate) fn middle_mean(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let kept = &sorted[cut..sorted.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// A line through points by the median of all pairs' slopes (Theil and Sen): slope and intercept.
pub(crate) fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut slopes = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[index + 1..].iter().filter(|(other, _)| other != x).map(|(u, v)| (v - y) / (u - x)));
    }
    let slope = median(&slopes);
    let rests: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    slope.is_finite().then(|| (slope, median(&rests)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_move_them() {
        let values = [10.0, 11.0, 9.0, 10.5, 9.5, 1000.0];
        assert!((median(&values) - 10.25).abs() < 1e-9 && spread(&values) < 2.0);
        assert!((middle_mean(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 900.0]) - 2.0).abs() < 1e-9);
        let mut points: Vec<(f64, f64)> = (1..20).map(|x| (f64::from(x), 5.0 + 2.0 * f64::from(x))).collect();
        points[3].1 = 5000.0;
        points[9].1 = 9000.0;
        let (slope, start) = line(&points).unwrap();
        assert!((slope - 2.0).abs() < 1e-9 && (start - 5.0).abs() < 1e-9);
        assert!(median(&[]).is_nan() && line(&[(1.0, 1.0)]).is_none());
    }
}
