"""Secrets that nobody set: generated once and kept in TITO_HOME, readable by their owner only.

Invariant: processes that ask at the same time get the same secret; half a secret is never seen.
"""

import os
import secrets
import tempfile
from functools import cache
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


@cache
def stored_secret(path: Path, variable: str) -> str:
    """The secret kept at `path`, made when missing; `variable` is what to set where that fails."""
    try:
        if not path.exists():
            _create(path)
        secret = path.read_text(encoding="ascii").strip()
    except OSError as error:
        reason = f"cannot keep a secret in {path} ({error.strerror}): set {variable}"
        raise ImproperlyConfigured(reason) from error
    if not secret:
        raise ImproperlyConfigured(f"{path} is empty: delete it or set {variable}")
    return secret


def _create(path: Path) -> None:
    """Written under a temporary name (0600) and linked, which fails if another process was first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(name)
