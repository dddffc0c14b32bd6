"""`python -m tests`: everything that has to pass. All checks run; arguments go to pytest."""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_TYPED = ("manage.py", "tito_project", "sessions_app", "trainer_export", "tests")


def main(pytest_arguments: list[str]) -> int:
    """The exit status: 0 only if all passed."""
    checks = {
        "ruff": ["ruff", "check", "."],
        "mypy": ["mypy", *_TYPED],
        "audit": ["tests.audit"],
        "pytest": ["pytest", *pytest_arguments],
    }
    failed = [name for name, command in checks.items() if not _passes(command)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _passes(command: list[str]) -> bool:
    print(f"== {' '.join(command)}", flush=True)
    # Checking types reads the settings, which must not depend on the caller's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TITO_")}
    run = subprocess.run([sys.executable, "-m", *command], cwd=_ROOT, env=environment, check=False)
    return run.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
