//! Medians, which a few disturbed samples do not move.

/// The middle of `samples`, between the two middle ones where their number is even; NaN of none.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The value that the share `at` of `samples` is below; NaN of none.
pub fn quantile(samples: &[f64], at: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = at * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_sample_moves_no_median() {
        assert_eq!(median(&[3.0, 1.0, 900.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 900.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn quantiles_lie_between_samples() {
        let samples = [10.0, 20.0, 30.0, 40.0, 50.0];
        assert_eq!(quantile(&samples, 0.25), 20.0);
        assert_eq!(quantile(&samples, 0.875), 45.0);
        assert_eq!(quantile(&samples, 1.0), 50.0);
    }
}
