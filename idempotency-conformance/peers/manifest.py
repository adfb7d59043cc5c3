"""Which implementations there are."""

import dataclasses
import tomllib


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    # `ours`, `foreign` or `control`.
    group: str
    # What is graded, at which version, and from where.
    package: str
    stands_on: str
    # How it is installed: see launch.py.
    language: str
    start: list[str]
    capabilities: list[str]
    title: str = ""

    @property
    def label(self):
        return self.title or self.package


def peers(path):
    with open(path, "rb") as file:
        return [Peer(**peer) for peer in tomllib.load(file)["peer"]]
