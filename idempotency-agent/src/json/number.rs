//! Numbers as documents hold them: integers, but for what a caller's own clock wrote.

use std::{
    cmp::Ordering,
    fmt,
    ops::{Add, Sub},
};

/// A number of a document: an integer, or a fraction that some clock wrote. Arithmetic saturates.
#[derive(Clone, Copy)]
pub enum Number {
    /// An integer.
    Whole(i128),
    /// Any other finite number, or a whole one written with a point.
    Fraction(f64),
}

impl Number {
    /// Zero.
    pub const ZERO: Self = Self::Whole(0);
    /// One.
    pub const ONE: Self = Self::Whole(1);

    pub(crate) fn read(text: &str) -> Option<Self> {
        if !is_number(text) {
            return None;
        }
        let fraction = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Fraction);
        if is_written_whole(text) { text.parse().ok().map(Self::Whole).or_else(fraction) } else { fraction() }
    }

    /// The nearest float.
    #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Fraction(fraction) => fraction,
        }
    }

    /// The integer part, within what `u64` holds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    pub fn as_u64(self) -> u64 {
        match self {
            Self::Whole(whole) => u64::try_from(whole.max(0)).unwrap_or(u64::MAX),
            Self::Fraction(fraction) => fraction as u64,
        }
    }
}

/// Whether `text` is a JSON number.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(are_digits)
        && exponent.is_none_or(are_digits)
}

/// Whether a number is written as an integer, which is what makes it one in the languages that tell them apart.
pub(super) fn is_written_whole(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

impl From<u64> for Number {
    fn from(whole: u64) -> Self {
        Self::Whole(whole.into())
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one.cmp(other),
            (Self::Whole(whole), Self::Fraction(fraction)) => beside(*whole, *fraction),
            (Self::Fraction(fraction), Self::Whole(whole)) => beside(*whole, *fraction).reverse(),
            // Both are finite, so they compare.
            (Self::Fraction(one), Self::Fraction(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
        }
    }

    /// Of two that are equal the first, as a writer in Python has it: the same number may be written in two ways.
    fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

/// How an integer compares with a fraction, to the last digit: the nearest float of a large one is another number.
#[expect(clippy::cast_possible_truncation, reason = "what is beyond is beyond every integer, too")]
fn beside(whole: i128, fraction: f64) -> Ordering {
    let beyond = Number::Whole(i128::MAX).as_f64();
    if fraction >= beyond {
        return Ordering::Less;
    }
    if fraction < -beyond {
        return Ordering::Greater;
    }
    let part = fraction.fract();
    whole.cmp(&(fraction as i128)).then_with(|| 0.0.partial_cmp(&part).unwrap_or(Ordering::Equal))
}

impl Add for Number {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Self::Whole(one.saturating_add(other)),
            (one, other) => Self::Fraction((one.as_f64() + other.as_f64()).clamp(f64::MIN, f64::MAX)),
        }
    }
}

impl Sub for Number {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Self::Whole(one.saturating_sub(other)),
            (one, other) => Self::Fraction((one.as_f64() - other.as_f64()).clamp(f64::MIN, f64::MAX)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => write!(f, "{whole}"),
            Self::Fraction(fraction) => write!(f, "{fraction:?}"),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
