"""Homes for tests that start services: short paths, reachable for the server account, gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tito_project.embedded.home import prepare_home
from tito_project.embedded.places import Places, places_of


@contextmanager
def temporary_folder(mode: int = 0o755) -> Iterator[Path]:
    """A folder in /tmp; pytest's own is closed to other accounts."""
    folder = Path(tempfile.mkdtemp(prefix="tito-case-", dir="/tmp"))
    folder.chmod(mode)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_home(below: str = "home", mode: int = 0o755) -> Iterator[Places]:
    """A prepared home inside a folder of the given mode."""
    with temporary_folder(mode) as folder:
        places = places_of(folder / below)
        prepare_home(places)
        try:
            yield places
        finally:
            for outside in (places.data, places.sockets):
                shutil.rmtree(outside, ignore_errors=True)
