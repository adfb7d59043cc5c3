//! Reading `Retry-After`.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};

/// How long the answer asks to wait: seconds, or a date as seen from `now`. A date gone by is no wait; a value of
/// another form asks for nothing.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a very long time too.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<Duration> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let headers = [(header::RETRY_AFTER, value.parse().unwrap())].into_iter().collect();
        retry_after(&headers, now)
    }

    #[test]
    fn seconds_and_dates_are_read() {
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("0"), Some(Duration::ZERO));
        assert_eq!(read("99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:00 GMT"), Some(Duration::from_secs(23)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_neither_asks_for_nothing() {
        for value in ["", "-1", "1.5", "+3", "soon", "Sun, 06 Nov 1994"] {
            assert_eq!(read(value), None, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), SystemTime::UNIX_EPOCH), None);
    }
}
