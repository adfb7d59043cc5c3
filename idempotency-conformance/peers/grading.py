"""Grades one implementation, and keeps of the suite's report what is the same each time."""

import json
import re
import subprocess

import launch

# From the draft outwards, as the suite sorts.
TIERS = ["core", "profile", "attack"]
# The header that tells callers apart, for implementations that can.
CALLER = "X-Caller"
# How long records answer, in milliseconds, where that can be set.
TTL_MS = "2000"
# How long claims last without renewal, in milliseconds, where that can be set.
LEASE_MS = "1000"
# What differs from run to run and says nothing.
VOLATILE = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "…"),
    (re.compile(r"https?://127\.0\.0\.1:\d+"), "the target"),
    (re.compile(r"^turn \d+: "), ""),
    (re.compile(r"(time: expected at most \d+ ms), got \d+"), r"\1, got more"),
    (re.compile(r"(time: expected at least \d+ ms), got \d+"), r"\1, got less"),
    (re.compile(r"(expected within \d+ ms), got it after \d+"), r"\1, got it later"),
    (re.compile(r"(runs: expected (?:at most )?)(\d+), got (\d+)"), lambda found: f"{found[1]}{found[2]}, got {compared(found)}"),
    (re.compile(r"(answers of success at least), got (?!0\b)\d+"), r"\1, got fewer"),
    (re.compile(r"got \d+ different ones"), "got several"),
    (re.compile(r'(count\\?":) ?\d+'), r"\1…"),
    (re.compile(r'W/\\"[^"]*\\"'), "…"),
    # How long a random body is, compressed or not, is another number each time.
    (re.compile(r'(body: expected as in "[^"]+"), \d+ bytes, got \d+ bytes'), r"\1, got another one"),
    # What differed may be just what was taken away.
    (re.compile(r'(body: expected as in "[^"]+"), (.+), got \2'), r"\1, got another one"),
    # Error pages name files, and these are elsewhere on each machine.
    (re.compile(r"got \d+ bytes"), "got another length"),
]


def compared(found):
    """How many runs there were, where a race may make it another number each time."""
    wanted, got = int(found[2]), int(found[3])
    return "none" if got == 0 else "more" if got > wanted else "fewer"


def grade(peer, here, only):
    """Installs, starts and grades `peer`, and writes down what was found: of `only` these vectors beside what is known of
    the others, unless there are none."""
    print(f"== {peer.name}: {peer.label}", flush=True)
    program = launch.suite(here)
    command = launch.command(peer, here)
    found = launch.cache() / f"{peer.name}.report.json"
    found.unlink(missing_ok=True)
    with launch.server(command, launch.cache() / f"{peer.name}.log") as server:
        print("\n".join(server.said), flush=True)
        ended = subprocess.run([program, "conformance", *arguments(peer, server, found, only)]).returncode
    if ended not in (0, 1):
        raise SystemExit(f"{peer.name}: the suite ended with {ended}")
    judged = lasting(peer, server.said, json.loads(found.read_text()))
    kept = here / "results" / f"{peer.name}.json"
    if only:
        judged = beside(judged, json.loads(kept.read_text()))
    kept.write_text(json.dumps(judged, indent=1, ensure_ascii=False) + "\n")
    print(judged["totals"], flush=True)


def beside(judged, earlier):
    """All that was found earlier, but for the vectors that were judged again."""
    results = {result["id"]: result for result in [*earlier["results"], *judged["results"]]}
    results = sorted(results.values(), key=lambda result: (TIERS.index(result["tier"]), result["id"]))
    outcomes = [result["outcome"] for result in results]
    totals = {outcome: outcomes.count(outcome) for outcome in judged["totals"]}
    return {**judged, "gone": judged["gone"] or earlier["gone"], "totals": totals, "results": results}


def arguments(peer, server, found, only):
    words = ["--url", server.url, "--report", "json", "--out", str(found)]
    for capability in peer.capabilities:
        words += ["--capability", capability]
    for vector in only:
        words += ["--only", vector]
    if "short-ttl" in peer.capabilities:
        words += ["--ttl-ms", TTL_MS]
    if "short-lease" in peer.capabilities:
        words += ["--lease-ms", LEASE_MS]
    if "restart" in peer.capabilities:
        words += ["--restart", server.restart]
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
    if reason is None:
        return None
    for pattern, instead in VOLATILE:
        reason = pattern.sub(instead, reason)
    # Answers of a race that differed in nothing else.
    return "; ".join(dict.fromkeys(reason.split("; ")))
