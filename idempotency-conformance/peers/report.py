"""Renders the report from what the gradings left. The same results give the same bytes."""

import json

from grading import TIERS

DRAFT = "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07"
MARKS = {"pass": "✓", "fail": "✗", "not_applicable": "–", "error": "!"}
GROUPS = {"ours": "This project's", "foreign": "Others", "control": "The pages alone"}
HEAD = f"""# Conformance of implementations

What the conformance suite in this folder finds of implementations of the [Idempotency-Key draft]: this project's, others
as they install from their package registries at pinned versions, and, as a control, the same pages without any layer.
Each stands behind the same routes in a small application in `peers/`, which sets an implementation as the
[contract](README.md#the-fixture-contract) needs it where there is an option for it, works around nothing, and says what is
unlike the defaults; those deviations are listed below.

`peers/run NAME` installs, starts and grades one and renders this page; `peers/run` all of them. Results are in
`peers/results/`. Reading them: the draft mostly says SHOULD, and the suite grades its SHOULDs as if they were MUSTs;
`profile` vectors are about what the draft leaves open, where an implementation may choose otherwise with good reason; each
vector says which it is. A vector that needs a [capability](README.md#the-fixture-contract) which an implementation has no
option for does not apply to it, and counts for nothing.

[Idempotency-Key draft]: {DRAFT}
"""


def graded(peers, results):
    """The implementations that were graded, each with what was found."""
    files = [(peer, results / f"{peer.name}.json") for peer in peers]
    return [(peer, json.loads(path.read_text())) for peer, path in files if path.exists()]


def render(graded):
    vectors = {result["id"]: result for _, found in graded for result in found["results"]}
    order = sorted(vectors, key=lambda id: (TIERS.index(vectors[id]["tier"]), id))
    sections = [HEAD, summary(graded), matrix(graded, vectors, order)]
    sections += [details(peer, found) for peer, found in graded]
    return "\n".join([*sections, links(vectors)])


def table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(lines) + "\n"


def summary(graded):
    """How many of the vectors that apply each one passes, by tier."""
    rows = [["", "implementation", "stands on", *TIERS, "does not apply"]]
    for number, (peer, found) in enumerate(graded, 1):
        counts = [passed(found, tier) for tier in TIERS]
        rows.append([str(number), f"[{peer.label}](#{peer.name})", peer.stands_on, *counts, str(found["totals"]["not_applicable"])])
    suites = sorted({found["suite"] for _, found in graded})
    return f"## Passed, of the vectors that apply\n\n{table(rows)}\nGraded with {', '.join(suites)}.\n"


def passed(found, tier):
    outcomes = [result["outcome"] for result in found["results"] if result["tier"] == tier]
    applicable = [outcome for outcome in outcomes if outcome != "not_applicable"]
    return f"{applicable.count('pass')} of {len(applicable)}"


def matrix(graded, vectors, order):
    """Every vector against every implementation, which the summary numbers."""
    rows = [["vector", "section", *(str(number) for number in range(1, len(graded) + 1))]]
    outcomes = [{result["id"]: result["outcome"] for result in found["results"]} for _, found in graded]
    for id in order:
        vector = vectors[id]
        marks = [MARKS[found[id]] if id in found else " " for found in outcomes]
        rows.append([f"[{id}](vectors/{id}.json)", section(vector), *marks])
    legend = "✓ passes, ✗ fails, – does not apply, ! could not be judged, empty: not graded with it yet."
    return f"## Every vector\n\nColumns are numbered as above. {legend}\n\n{table(rows)}"


def section(vector):
    """The section of the draft, which `links` makes a link, or the kind where there is none."""
    if vector["section"] is None:
        return vector["kind"]
    return f"[{vector['section']}]" if vector["kind"] == "normative" else f"[{vector['section']}], {vector['kind']}"


def links(vectors):
    """Where the sections are."""
    sections = sorted({vector["section"] for vector in vectors.values() if vector["section"]})
    return "\n".join(f"[{section}]: {DRAFT}#section-{section}" for section in sections) + "\n"


def details(peer, found):
    """What is unlike the defaults, and what failed and how."""
    parts = [f"<a id=\"{peer.name}\"></a>\n\n## {peer.label}\n"]
    parts.append(f"{GROUPS[peer.group]}. {peer.package}, on {peer.stands_on}. `peers/run {peer.name}`\n")
    parts.append(f"Declared: {', '.join(found['capabilities']) or 'nothing'}.\n")
    if found["deviations"]:
        parts.append("Unlike the defaults, and worth knowing:\n")
        parts.append("\n".join(f"- {plain(deviation)}" for deviation in found["deviations"]) + "\n")
    if found["gone"]:
        parts.append(f"It stopped answering: {plain(found['gone'])}.\n")
    wrong = [result for result in found["results"] if result["outcome"] in ("fail", "error")]
    if wrong:
        rows = [["vector", "section", "what was seen"]]
        rows += [[result["id"], section(result), plain(result["reason"])] for result in wrong]
        parts.append(table(rows))
    else:
        parts.append("Nothing failed.\n")
    return "\n".join(parts)


def plain(text):
    """Text that Markdown takes as it is, in one cell."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())
