//! Header fields picked by name, in an order that does not depend on how they were sent or listed.

/// Headers chosen by name. Their case and the order in which they are given do not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelectedHeaders(Vec<Box<str>>);

impl SelectedHeaders {
    /// The headers of these names.
    pub fn new<I>(names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Self(in_order(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase())))
    }

    /// The names in lower case, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// Every line of these headers, in a fixed order; `lines` gives the values of all lines of a header by its lower-case
    /// name. Nothing is allocated for a request that has none of them.
    pub fn read<'n, 'a, L>(&'n self, lines: impl Fn(&str) -> L) -> Vec<(&'n str, &'a [u8])>
    where
        L: IntoIterator<Item = &'a [u8]>,
    {
        let of = |name: &'n str| lines(name).into_iter().map(move |value| (name, value));
        self.names().flat_map(of).collect()
    }
}

/// Each name once, in a fixed order.
pub(super) fn in_order(names: impl Iterator<Item = String>) -> Vec<Box<str>> {
    let mut names: Vec<_> = names.map(String::into_boxed_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_the_order_of_names_and_then_as_they_were_sent() {
        let lines = |name: &str| match name {
            "accept-language" => vec![&b"de"[..]],
            "x-shop" => vec![&b"2"[..], b"1"],
            _ => vec![],
        };
        let selected = SelectedHeaders::new(["X-Shop", "absent", "Accept-Language", "x-shop"]);
        assert_eq!(selected.names().collect::<Vec<_>>(), ["absent", "accept-language", "x-shop"]);
        let read = selected.read(lines);
        assert_eq!(read, [("accept-language", &b"de"[..]), ("x-shop", b"2"), ("x-shop", b"1")]);
    }
}
