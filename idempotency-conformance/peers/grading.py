"""Grades one implementation, and keeps of the suite's report what is the same each time."""

import json
import re
import subprocess

import launch

# The header that tells callers apart, for implementations that can.
CALLER = "X-Caller"
# How long records answer, in milliseconds, where that can be set.
TTL_MS = "2000"
# What differs from run to run and says nothing.
VOLATILE = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "…"),
    (re.compile(r"https?://127\.0\.0\.1:\d+"), "the target"),
    (re.compile(r"^turn \d+: "), ""),
    (re.compile(r"(time: expected at most \d+ ms), got \d+"), r"\1, got more"),
    (re.compile(r"(time: expected at least \d+ ms), got \d+"), r"\1, got less"),
    (re.compile(r"(expected within \d+ ms), got it after \d+"), r"\1, got it later"),
    (re.compile(r"(runs: expected (?:at most )?\d+), got (?!0\b)\d+"), r"\1, got another number"),
    (re.compile(r"(answers of success at least), got (?!0\b)\d+"), r"\1, got fewer"),
    (re.compile(r"got \d+ different ones"), "got several"),
    (re.compile(r'(count\\?":) ?\d+'), r"\1…"),
]


def grade(peer, here):
    """Installs, starts and grades `peer`, and writes down what was found."""
    print(f"== {peer.name}: {peer.label}", flush=True)
    program = launch.suite(here)
    command = launch.command(peer, here)
    found = launch.cache() / f"{peer.name}.report.json"
    found.unlink(missing_ok=True)
    with launch.server(command, launch.cache() / f"{peer.name}.log") as (url, said):
        print("\n".join(said), flush=True)
        ended = subprocess.run([program, "conformance", *arguments(peer, url, found)]).returncode
    if ended not in (0, 1):
        raise SystemExit(f"{peer.name}: the suite ended with {ended}")
    judged = lasting(peer, said, json.loads(found.read_text()))
    text = json.dumps(judged, indent=1, ensure_ascii=False) + "\n"
    (here / "results" / f"{peer.name}.json").write_text(text)
    print(judged["totals"], flush=True)


def arguments(peer, url, found):
    words = ["--url", url, "--report", "json", "--out", str(found)]
    for capability in peer.capabilities:
        words += ["--capability", capability]
    if "short-ttl" in peer.capabilities:
        words += ["--ttl-ms", TTL_MS]
    if "principal" in peer.capabilities:
        words += ["--caller-header", CALLER]
    return words


def lasting(peer, said, found):
    """What of a report is the same each time."""
    deviations = [line.removeprefix("deviation: ") for line in said if line.startswith("deviation: ")]
    for result in found["results"]:
        result["reason"] = steady(result["reason"])
    return {
        "name": peer.name,
        "suite": found["suite"],
        "keys": found["keys"],
        "capabilities": sorted(found["capabilities"]),
        "deviations": deviations,
        "gone": steady(found["gone"]),
        "totals": found["totals"],
        "results": found["results"],
    }


def steady(reason):
    for pattern, instead in VOLATILE:
        reason = reason and pattern.sub(instead, reason)
    return reason
