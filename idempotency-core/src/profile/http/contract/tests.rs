use super::*;

#[test]
fn every_status_is_found_where_it_ends() {
    for rule in [OnServerError::Release, OnServerError::Keep, OnServerError::Hold] {
        let statuses = Statuses::of(rule);
        let lists = [
            (&statuses.kept, Ending::Keep),
            (&statuses.released, Ending::NotExecuted),
            (&statuses.in_doubt, Ending::Unknown),
        ];
        for status in 100..600 {
            let naming =
                |name: &String| lists.iter().filter(|(list, _)| list.contains(name)).collect::<Vec<_>>();
            let range = format!("{}XX", status / 100);
            let mut named = naming(&status.to_string());
            if named.is_empty() {
                named = naming(&range);
            }
            assert_eq!(named.len(), 1, "{status} under {rule:?}");
            assert_eq!(named[0].1, ending_of(status, rule), "{status} under {rule:?}");
        }
    }
}

#[test]
fn ranges_keep_the_lists_short() {
    let statuses = Statuses::of(OnServerError::Hold);
    assert_eq!(statuses.kept, ["2XX", "3XX", "4XX"]);
    assert_eq!(statuses.in_doubt, ["408", "5XX"]);
    assert_eq!(statuses.released[..3], ["1XX", "401", "403"]);
}

#[test]
fn durations_are_written_as_iso_8601_has_them() {
    let second = Duration::from_secs;
    for (duration, text) in [
        (Duration::ZERO, "PT0S"),
        (second(1), "PT1S"),
        (second(30), "PT30S"),
        (second(90), "PT1M30S"),
        (second(600), "PT10M"),
        (second(3_600), "PT1H"),
        (second(86_400), "P1D"),
        (second(7 * 86_400), "P7D"),
        (second(86_400 + 2 * 3_600 + 180 + 4), "P1DT2H3M4S"),
        (Duration::from_millis(500), "PT0.5S"),
        (Duration::from_millis(61_050), "PT1M1.05S"),
        (Duration::from_nanos(1), "PT0.000000001S"),
    ] {
        assert_eq!(iso_duration(duration), text);
    }
}

#[test]
fn the_draft_is_one() {
    assert!(DRAFT_URL.ends_with(&format!("{DRAFT_NAME}-{DRAFT_VERSION}")));
}
