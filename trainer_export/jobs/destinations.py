"""Where shards go: a local folder or any fsspec URL. What can be seen under a final name is complete.

Files are made in a staging folder of this machine; `publish` puts one under its final name in one step: a
rename on file systems that have one, a single upload on object stores, whose objects appear when they are
complete.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import fsspec
from fsspec.core import split_protocol

from sessions_app.errors import InvalidArgument

_UPLOAD_IS_ATOMIC = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "memory"})
PART = ".part-"
"""Begins the names of files that are not complete."""


class Destination(Protocol):
    """A folder that files are published in."""

    @contextmanager
    def staging(self, folder: str) -> Iterator[Path]:
        """A place on this machine to make files in; gone afterwards. `folder`: below the destination, where
        what a killed process leaves may lie until that folder is removed.
        """
        ...

    def publish(self, file: Path, name: str) -> None:
        """Put a finished file under its final name, in place of what is there. Raises OSError."""
        ...

    def move(self, name: str, target: str) -> None:
        """Give a published file another name; done already where only the target is there."""
        ...

    def read(self, name: str) -> bytes | None:
        """A published file; None where there is none."""
        ...

    def clear(self, folder: str, keep: Collection[str] = ()) -> None:
        """Take a folder away with all that is in it, but for the files to keep. One that is not there is
        clear.
        """
        ...


def destination_of(url: str) -> Destination:
    """The destination of a folder or URL. Raises InvalidArgument for a file system that is not there."""
    protocol, path = split_protocol(url)
    if protocol in (None, "file", "local"):
        return LocalFolder(Path(path).expanduser().absolute())
    try:
        system, root = fsspec.url_to_fs(url)
    except (ImportError, ValueError, OSError) as error:
        raise InvalidArgument(f"destination {protocol}://: {error}") from None
    return RemoteFolder(system, root.rstrip("/"), protocol in _UPLOAD_IS_ATOMIC)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder of this machine (or one that looks like it)."""

    folder: Path

    @contextmanager
    def staging(self, folder: str) -> Iterator[Path]:
        """On the same file system, so that publishing is a rename."""
        below = self.folder / folder
        below.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=PART, dir=below) as place:
            yield Path(place)

    def publish(self, file: Path, name: str) -> None:
        """On disk before it has its name."""
        with file.open("rb") as written:
            os.fsync(written.fileno())
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
        _sync(target.parent)

    def read(self, name: str) -> bytes | None:
        """The file."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def move(self, name: str, target: str) -> None:
        """A rename."""
        source, final = self.folder / name, self.folder / target
        if source.exists() or not final.exists():
            source.replace(final)
            _sync(final.parent)

    def clear(self, folder: str, keep: Collection[str] = ()) -> None:
        """Unlink; folders above that are empty then, and that publishing made, stay."""
        place = self.folder / folder
        for entry in place.iterdir() if place.is_dir() else ():
            if entry.name in keep:
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        with suppress(OSError):
            place.rmdir()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """A folder of an fsspec file system."""

    system: Any
    root: str
    atomic_upload: bool
    """An upload is seen in whole or not at all."""

    @contextmanager
    def staging(self, folder: str) -> Iterator[Path]:
        """On the local disk."""
        with tempfile.TemporaryDirectory(prefix="tito-export-") as place:
            yield Path(place)

    def publish(self, file: Path, name: str) -> None:
        """Upload, and rename where the upload itself can be seen half done."""
        target = f"{self.root}/{name}"
        if self.atomic_upload:
            self.system.put_file(str(file), target)
            return
        folder = target.rpartition("/")[0]
        self.system.makedirs(folder, exist_ok=True)
        part = f"{folder}/{PART}{uuid4().hex}"
        try:
            self.system.put_file(str(file), part)
            self.system.mv(part, target)
        except BaseException:
            if self.system.exists(part):
                self.system.rm_file(part)
            raise

    def read(self, name: str) -> bytes | None:
        """The object."""
        try:
            return bytes(self.system.cat_file(f"{self.root}/{name}"))
        except FileNotFoundError:
            return None

    def move(self, name: str, target: str) -> None:
        """The file system's own rename; object stores copy and delete."""
        source, final = f"{self.root}/{name}", f"{self.root}/{target}"
        self.system.invalidate_cache()  # other workers write here, too
        if self.system.exists(source) or not self.system.exists(final):
            self.system.mv(source, final)

    def clear(self, folder: str, keep: Collection[str] = ()) -> None:
        """Delete; on object stores a folder without objects is none."""
        place = f"{self.root}/{folder}"
        self.system.invalidate_cache()
        if not self.system.exists(place):
            return
        gone = [path for path in self.system.ls(place, detail=False) if _last(path) not in keep]
        if len(gone) == len(self.system.ls(place, detail=False)):
            self.system.rm(place, recursive=True)
        elif gone:
            self.system.rm(gone, recursive=True)


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
