//! The report for CI, as one test suite with a case a vector.

use quick_xml::{
    Writer,
    events::{BytesDecl, Event},
};

use super::{Graded, Outcome, Report};

pub(super) fn render(report: &Report) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(report, &mut writer).expect("memory can be written to");
    let mut text = String::from_utf8(writer.into_inner()).expect("only text was written");
    text.push('\n');
    text
}

fn write(report: &Report, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    let totals = report.totals;
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let numbers = [
        ("tests", report.results.len()),
        ("failures", totals.fail),
        ("errors", totals.error),
        ("skipped", totals.not_applicable),
    ]
    .map(|(name, number)| (name, number.to_string()));
    let numbers = numbers.iter().map(|(name, number)| (*name, number.as_str()));
    let suite = writer.create_element("testsuite").with_attribute(("name", report.suite.as_str()));
    suite
        .with_attributes(numbers)
        .write_inner_content(|writer| report.results.iter().try_for_each(|graded| case(graded, writer)))?;
    Ok(())
}

fn case(graded: &Graded, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    let names = [("classname", graded.tier), ("name", graded.id.as_str())];
    let case = writer.create_element("testcase").with_attributes(names);
    let what = match graded.outcome {
        Outcome::Pass => return case.write_empty().map(|_| ()),
        Outcome::Fail => "failure",
        Outcome::NotApplicable => "skipped",
        Outcome::Error => "error",
    };
    let reason = visible(graded.reason.as_deref().unwrap_or_default());
    case.write_inner_content(|writer| {
        writer.create_element(what).with_attribute(("message", reason.as_str())).write_empty().map(|_| ())
    })?;
    Ok(())
}

/// XML has no way to write most control characters, not even escaped, and an answer may hold any.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
