//! Canonical JSON: one text for one value, byte for byte that of the original's Python package.

use std::fmt::Write;

use super::{PayloadError, Tree, scan};
use crate::Compat;

/// 2^53: from here on not every integer is a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The canonical text of `tree`: no white space, names sorted by UTF-16 units, numbers as Python writes them.
///
/// # Errors
/// [`PayloadError::NotFinite`], unless `compat` is strict: then such a number is the string that names it.
pub(crate) fn canonical(tree: &Tree, compat: Compat) -> Result<String, PayloadError> {
    let mut text = String::new();
    write(tree, compat, &mut text)?;
    Ok(text)
}

fn write(tree: &Tree, compat: Compat, text: &mut String) -> Result<(), PayloadError> {
    match tree {
        Tree::Null => text.push_str("null"),
        Tree::Bool(true) => text.push_str("true"),
        Tree::Bool(false) => text.push_str("false"),
        Tree::Whole(digits) => text.push_str(if digits == "-0" { "0" } else { digits }),
        Tree::Float(float) if !float.is_finite() => match compat {
            Compat::Mended => return Err(PayloadError::NotFinite),
            Compat::Strict => text.push_str(&scan::quoted(name(*float))),
        },
        Tree::Float(float) => write_float(*float, text),
        Tree::Text(inside) => text.push_str(&scan::quoted(inside)),
        Tree::List(items) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write(item, compat, text)?;
            }
            text.push(']');
        }
        Tree::Map(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            text.push('{');
            for (number, (name, value)) in sorted.into_iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                text.push_str(&scan::quoted(name));
                text.push(':');
                write(value, compat, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

const fn name(float: f64) -> &'static str {
    if float.is_nan() {
        "NaN"
    } else if float > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// A whole double is written out to its last digit; any other has the fewest digits that lead back to it, and of two such
/// endings that are equally near the even one, which the standard library does not promise.
fn write_float(float: f64, text: &mut String) {
    let written = if float == 0.0 {
        write!(text, "0")
    } else if float.fract() == 0.0 {
        write!(text, "{float:.0}")
    } else if float.abs() >= 1e-4 {
        write!(text, "{}", ryu_js::Buffer::new().format_finite(float))
    } else {
        let shortest = format!("{float:e}");
        let (mantissa, exponent) = shortest.split_once("e-").unwrap_or((&shortest, "0"));
        write!(text, "{mantissa}e-{exponent:0>2}")
    };
    debug_assert!(written.is_ok(), "a string takes any text");
}

/// Whether every language that writes the same keys writes this number alike: whole up to 2^53, or a fraction from 1e-4.
pub(super) fn is_portable_float(float: f64) -> bool {
    let size = float.abs();
    if float.fract() == 0.0 { size < EXACT } else { size >= 1e-4 }
}

/// As [`is_portable_float`], of an integer's digits.
pub(super) fn is_portable_whole(digits: &str) -> bool {
    digits.parse::<i64>().is_ok_and(|whole| whole.unsigned_abs() <= 1 << 53)
}
