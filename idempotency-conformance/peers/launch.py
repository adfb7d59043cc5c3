"""Installs implementations outside the repository, and starts them."""

import contextlib
import dataclasses
import functools
import os
import pathlib
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import threading

# How long a server may take until it listens, in seconds.
PATIENCE = 120
# How long it may take to end, in seconds.
FAREWELL = 10
# What this project's own layer is set to: what the suite's capabilities speak of. The header is one that nobody verified.
OUR_SETTINGS = '{"ttl_ms":2000,"lease_ms":1000,"require_key":true,"oversized":"omit_body","scope_header":"X-Caller"}'


def cache():
    """Where things are installed."""
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    path = pathlib.Path(os.environ.get("CONFORMANCE_PEERS_DIR", default / "idempotency-conformance-peers"))
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def cargo_build(manifest, package, binary, target, *arguments):
    """Builds one program into the folder `target`, and says where it is."""
    words = ["--quiet", "--locked", "--manifest-path", manifest, "--target-dir", target, "-p", package, *arguments]
    subprocess.run(["cargo", "build", *words], check=True)
    return target / "debug" / binary


@functools.cache
def of_the_workspace(here, package, binary):
    """One of this project's own programs: built where it is built anyway, or found in CONFORMANCE_PROGRAMS."""
    if "CONFORMANCE_PROGRAMS" in os.environ:
        return pathlib.Path(os.environ["CONFORMANCE_PROGRAMS"]) / binary
    root = here.parent.parent
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return cargo_build(root / "Cargo.toml", package, binary, target)


def suite(here):
    """The program that grades."""
    return of_the_workspace(here, "idempotency-cli", "idempotency")


def command(peer, here):
    """Installs `peer`, and says how it is started."""
    match peer.language:
        case "rust-workspace":
            fixture = of_the_workspace(here, "idempotency-fixture", "fixture")
            return [fixture, *with_a_new_file(peer), "--config", OUR_SETTINGS]
        case "rust":
            return [rust(here, *peer.start)]
        case "node":
            return ["node", node(here) / peer.start[0]]
        case "python":
            return [python(here), "-B", here / "python" / peer.start[0]]
        case language:
            raise SystemExit(f"{peer.name}: nothing is known of {language}")


def with_a_new_file(peer):
    """Its arguments, with a file that nobody used before for SQLite."""
    records = cache() / "records" / peer.name
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
    return [f"sqlite:{records}/records.db" if word == "sqlite" else word for word in peer.start]


def rust(here, package):
    # One of them declares a newer rustc than it needs.
    return cargo_build(here / "rust" / "Cargo.toml", package, package, cache() / "rust-target", "--ignore-rust-version")


def node(here):
    """A copy of the sources beside what they need."""
    home = cache() / "node"
    home.mkdir(exist_ok=True)
    for source in sorted((here / "node").iterdir()):
        shutil.copy(source, home)
    once(home, (here / "node" / "package-lock.json").read_text(), ["npm", "ci", "--no-audit", "--no-fund", "--silent"])
    return home


def python(here):
    """The interpreter of an environment that has what is required."""
    home = cache() / "python"
    home.mkdir(exist_ok=True)
    interpreter = home / "bin" / "python"
    required = here / "python" / "requirements.txt"
    if not interpreter.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
    once(home, required.read_text(), [interpreter, "-m", "pip", "install", "--quiet", "--requirement", required])
    return interpreter


def once(home, wanted, installation):
    """Runs `installation` in `home`, unless the last one there was of the same."""
    mark = home / "installed"
    if mark.exists() and mark.read_text() == wanted:
        return
    subprocess.run(installation, cwd=home, check=True)
    mark.write_text(wanted)


@dataclasses.dataclass(frozen=True)
class Server:
    """A server that listens."""

    url: str
    # What it said before that.
    said: list[str]
    # A command for a shell that kills it and starts it again where it was.
    restart: str


@contextlib.contextmanager
def server(words, log):
    """Runs a server until the end of the block."""
    words = [str(word) for word in words]
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            [*words, "--port", "0"], stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True
        )
    lines = queue.Queue()
    # Reads to the end, so that a server that goes on talking is not held up.
    threading.Thread(target=pass_on, args=(process.stdout, lines), daemon=True).start()
    mark = log.with_suffix(".pid")
    mark.write_text(str(process.pid))
    try:
        url, said = until_it_listens(lines, log)
        yield Server(url, said, restart_of(words, url, mark, log))
    finally:
        process.terminate()
        try:
            process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if mark.read_text().strip() != str(process.pid):
            # The suite started it again, and it is no child of ours.
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(mark.read_text()), signal.SIGKILL)


def pass_on(stream, lines):
    for line in stream:
        lines.put(line.strip())
    lines.put(None)


def restart_of(words, url, mark, log):
    again = shlex.join([*words, "--port", url.rpartition(":")[2]])
    mark, log = shlex.quote(str(mark)), shlex.quote(str(log))
    return f"kill -9 $(cat {mark}); {again} </dev/null >>{log} 2>&1 & echo $! >{mark}"


def until_it_listens(lines, log):
    said = []
    while True:
        try:
            line = lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise SystemExit(f"the server does not listen; see {log}") from None
        if line is None:
            raise SystemExit(f"the server ended before it listened; see {log}")
        if line.startswith("listening on "):
            return line.removeprefix("listening on "), said
        said.append(line)
