use super::*;
use crate::run::Options;

fn report() -> Report {
    let suite = Suite { name: "a suite".to_owned(), vectors: Vec::new() };
    let graded = |id: &str, outcome, reason: Option<&str>| Graded {
        id: id.to_owned(),
        tier: "core",
        section: (outcome == Outcome::Pass).then(|| "2.6".to_owned()),
        kind: "normative",
        title: "A claim".to_owned(),
        outcome,
        reason: reason.map(str::to_owned),
    };
    let results = vec![
        graded("core/a", Outcome::Pass, None),
        graded("core/b", Outcome::Fail, Some("got \"<a|b>\"\u{1}\n")),
        graded("core/c", Outcome::NotApplicable, Some("it needs short-ttl")),
        graded("core/d", Outcome::Error, Some("closed")),
    ];
    Report::new(&suite, &"http://localhost:1".parse().unwrap(), &Options::default(), None, results)
}

#[test]
fn the_form_for_programs_is_the_documented_one() {
    let value: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
    assert_eq!(value["format"], 1);
    let totals = serde_json::json!({ "pass": 1, "fail": 1, "not_applicable": 1, "error": 1 });
    assert_eq!(value["totals"], totals);
    let first = serde_json::json!({
        "id": "core/a", "tier": "core", "section": "2.6", "kind": "normative", "title": "A claim",
        "outcome": "pass", "reason": null
    });
    assert_eq!(value["results"][0], first);
    assert_eq!(value["results"][2]["outcome"], "not_applicable");
    assert!(!report().is_clean());
}

#[test]
fn the_form_for_people_keeps_its_table() {
    let text = report().markdown();
    assert!(text.contains("1 passed, 1 failed, 1 not applicable, 1 errors."), "{text}");
    assert!(text.contains("| core/b | normative | – | fail | got \"<a\\|b>\"\u{1}  |\n"), "{text}");
    assert!(text.contains("07#section-2.6) | pass |  |\n"), "{text}");
}

#[test]
fn the_form_for_ci_is_xml_whatever_an_answer_held() {
    assert_eq!(
        report().junit(),
        r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="a suite" tests="4" failures="1" errors="1" skipped="1">
  <testcase classname="core" name="core/a"/>
  <testcase classname="core" name="core/b">
    <failure message="got &quot;&lt;a|b&gt;&quot;��"/>
  </testcase>
  <testcase classname="core" name="core/c">
    <skipped message="it needs short-ttl"/>
  </testcase>
  <testcase classname="core" name="core/d">
    <error message="closed"/>
  </testcase>
</testsuite>
"#
    );
}
