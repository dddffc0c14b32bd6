"""`python -m tests.audit`: asks a public database whether anything installed has a known hole.

Fails on a finding. What could not be asked (no network, a mirror that knows no holes) is said loudly and is
no failure: an audit that did not happen must not look like one that found nothing.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_SERVICES = ("pypi", "osv")
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit came to."""

    holes: tuple[str, ...]
    asked: int
    """Dependencies that the database knows."""
    unknown: int
    """Those that it could not tell anything of."""

    @property
    def text(self) -> str:
        """For the log."""
        if self.holes:
            return "KNOWN HOLES:\n" + "\n".join(f"  {hole}" for hole in self.holes)
        if not self.asked:
            return "!!! NOT AUDITED: no database of known holes could be asked from here"
        left_out = f"; !!! {self.unknown} COULD NOT BE ASKED ABOUT" if self.unknown else ""
        return f"no known hole in {self.asked} dependencies{left_out}"

    @property
    def status(self) -> int:
        """Exit status: 1 on a finding."""
        return 1 if self.holes else 0


def verdict_of(dependencies: Iterable[Mapping[str, Any]]) -> Verdict:
    """What the entries of pip-audit's JSON come to."""
    found = list(dependencies)
    holes = tuple(
        f"{entry['name']} {entry['version']}: {hole['id']}, fixed in {', '.join(hole['fix_versions']) or '?'}"
        for entry in found
        for hole in entry.get("vulns", ())
    )
    unknown = sum("skip_reason" in entry for entry in found)
    return Verdict(holes, len(found) - unknown, unknown)


def audited() -> Verdict:
    """Everything that is installed, as the first database that answers knows it."""
    for service in _SERVICES if find_spec("pip_audit") else ():
        verdict = verdict_of(_asked(service))
        if verdict.asked:
            return verdict
    return Verdict((), 0, 0)


def _asked(service: str) -> list[Mapping[str, Any]]:
    """What one database says; nothing where it does not answer."""
    command = [
        sys.executable, "-m", "pip_audit", "--local", "--format", "json", "--progress-spinner", "off",
        "--vulnerability-service", service,
    ]  # fmt: skip
    try:
        ended = subprocess.run(
            command, cwd=_ROOT, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
        dependencies: list[Mapping[str, Any]] = json.loads(ended.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return []
    return dependencies


if __name__ == "__main__":
    told = audited()
    print(told.text, flush=True)
    sys.exit(told.status)
