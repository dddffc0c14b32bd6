"""Makes the folders of a TITO_HOME, and guards it against a second `up`.

Invariant: what holds secrets, logs or data is closed to other accounts; no folder above the home is changed.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tito_project.embedded.errors import ServiceError
from tito_project.embedded.places import Places

_REACHABLE_STATE = Path("/var/lib")


def prepare_home(places: Places) -> None:
    """Creates what is missing. Raises ServiceError where the home cannot be used."""
    try:
        _make_home(places)
        for private in (places.logs, places.home / "exports"):
            private.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        reason = f"{error.strerror} ({error.filename})"
        raise ServiceError(f"cannot use TITO_HOME {places.home}: {reason}") from error


def prepare_service_folders(places: Places) -> None:
    """Creates the data folder and the sockets' folder, where the server account reaches them."""
    if not places.data_name.exists():
        _make_data(places)
    _open_for_passage(places.data, places)
    (places.data / "programs").mkdir(exist_ok=True)
    own_folder(places.sockets, places)


def own_folder(folder: Path, places: Places) -> None:
    """A private folder of the server account; refuses one that belongs to somebody else."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        places.account.own(folder)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != places.account.uid:
        raise ServiceError(f"{folder} belongs to uid {status.st_uid}, not to {places.account.uid}: not used")
    folder.chmod(0o700)


@contextmanager
def home_lock(places: Places) -> Iterator[None]:
    """Held for the life of one `up`; the system releases it even after kill -9."""
    with (places.home / "up.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ServiceError(f"another `up` (pid {holder}) is using {places.home}") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _make_home(places: Places) -> None:
    """Private, or open for passage only when the servers run as another account."""
    missing = [each for each in (places.home, *places.home.parents) if not each.exists()]
    for folder in reversed(missing):
        folder.mkdir()
        folder.chmod(0o755 if folder != places.home else 0o700)
    _open_for_passage(places.home, places)


def _open_for_passage(folder: Path, places: Places) -> None:
    """Lets the server account walk through a folder of ours, without listing it."""
    mode = folder.stat().st_mode & 0o777
    if places.account.switched and not mode & 0o001 and folder.stat().st_uid == os.geteuid():
        folder.chmod(mode | 0o011)


def _make_data(places: Places) -> None:
    """Inside the home; a link to a folder elsewhere if the account cannot come in (a home below /root)."""
    if places.data_name.is_symlink():
        raise ServiceError(f"{places.data} is gone: put it back, or remove {places.data_name} to begin anew")
    if places.account.reaches(places.home):
        places.data_name.mkdir(mode=0o700)
        return
    elsewhere = _REACHABLE_STATE / f"tito-{secrets.token_hex(6)}"
    elsewhere.mkdir(mode=0o711)
    places.data_name.symlink_to(elsewhere)
