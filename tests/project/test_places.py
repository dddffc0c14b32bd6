"""Where the services keep their things, and who may reach it."""

import os
from pathlib import Path

import pytest

from tests.project.homes import temporary_folder, temporary_home
from tito_project.embedded.account import ServerAccount
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.home import home_lock, own_folder, prepare_home, prepare_service_folders
from tito_project.embedded.places import Places, places_of

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the servers as another account")


def test_computing_places_creates_nothing(tmp_path: Path) -> None:
    places_of(tmp_path / "home")
    assert list(tmp_path.iterdir()) == []


def test_two_spellings_of_a_home_have_the_same_sockets(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home")
    assert places_of(tmp_path / "link").sockets == places_of(tmp_path / "home").sockets


def test_a_deep_home_has_its_sockets_elsewhere() -> None:
    deep = places_of(Path("/srv") / ("d" * 120))
    assert len(bytes(deep.postgres_socket)) < 100
    assert deep.sockets != places_of(Path("/srv") / ("e" * 120)).sockets


def test_secrets_logs_and_data_are_closed_to_others(places: Places) -> None:
    prepare_service_folders(places)
    others = 0o007
    assert places.logs.stat().st_mode & others == 0
    assert (places.home / "exports").stat().st_mode & others == 0
    assert places.sockets.stat().st_mode & others == 0
    assert places.home.stat().st_mode & 0o006 == 0


def test_a_socket_folder_of_somebody_else_is_not_used() -> None:
    with temporary_folder() as folder:
        stranger = ServerAccount(os.geteuid() + 4321, os.getegid(), switched=False)
        (folder / "sockets").mkdir()
        with pytest.raises(ServiceError, match="belongs to uid"):
            own_folder(folder / "sockets", Places(folder, stranger, folder / "sockets"))


def test_a_home_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(ServiceError, match="cannot use TITO_HOME"):
        prepare_home(places_of(tmp_path / "home"))


def test_a_second_holder_of_the_home_is_told_the_first(places: Places) -> None:
    with home_lock(places), pytest.raises(ServiceError, match=f"pid {os.getpid()}"), home_lock(places):
        pass
    with home_lock(places):
        pass


def test_data_that_is_gone_is_never_replaced_by_an_empty_folder(places: Places) -> None:
    places.data_name.symlink_to(places.home / "elsewhere")
    with pytest.raises(ServiceError, match="is gone"):
        prepare_service_folders(places)


@as_root
def test_a_home_closed_to_the_account_keeps_its_data_elsewhere_and_its_folders_closed() -> None:
    with temporary_home(mode=0o700) as places:
        prepare_service_folders(places)
        assert places.home.parent.stat().st_mode & 0o777 == 0o700
        assert places.account.reaches(places.data)
        assert places.account.reaches(places.sockets.parent)
