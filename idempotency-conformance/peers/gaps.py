"""Writes into ../DRAFT-GAPS.md who differs: below each line that names vectors, which of the others fail them."""

import re

PINNED = "Pinned by: "
UNLIKE = "Unlike it: "
VECTOR = re.compile(r"\]\(vectors/([a-z0-9/-]+)\.json\)")


def refreshed(text, graded):
    paragraphs = [paragraph for paragraph in text.split("\n\n") if not paragraph.startswith(UNLIKE)]
    lines = []
    for paragraph in paragraphs:
        lines.append(paragraph)
        if paragraph.startswith(PINNED):
            lines.append(UNLIKE + unlike(VECTOR.findall(paragraph), graded))
    return "\n\n".join(lines)


def unlike(vectors, graded):
    """The others that fail some of the vectors, and how many of those that apply to them."""
    found, is_judged = [], False
    for peer, grading in graded:
        if peer.group != "foreign":
            continue
        outcomes = [result["outcome"] for result in grading["results"] if result["id"] in vectors]
        applicable = [outcome for outcome in outcomes if outcome != "not_applicable"]
        is_judged = is_judged or bool(applicable)
        failed = len(applicable) - applicable.count("pass")
        if failed and len(vectors) == 1:
            found.append(peer.name)
        elif failed:
            found.append(f"{peer.name} ({failed} of {len(applicable)})")
    return (", ".join(found) or ("nobody who was graded" if is_judged else "nobody; it applies to none that was graded")) + "."
