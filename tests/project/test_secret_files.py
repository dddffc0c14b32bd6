"""Generated secrets."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from tito_project.secret_files import stored_secret


def _secret_of(path: Path) -> str:
    return stored_secret(path, "SECRET_KEY")


@pytest.fixture(autouse=True)
def _forget_secrets() -> None:
    stored_secret.cache_clear()


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "home" / "secret-key"
    first = _secret_of(path)
    stored_secret.cache_clear()
    assert _secret_of(path) == first
    assert len(first) >= 50
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == ["secret-key"]


def test_processes_that_ask_at_once_agree(tmp_path: Path) -> None:
    path = tmp_path / "secret-key"
    with ProcessPoolExecutor(8, mp_context=get_context("fork")) as pool:
        assert len(set(pool.map(_secret_of, [path] * 16))) == 1


def test_an_empty_file_is_not_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "secret-key"
    path.write_text("\n")
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY"):
        _secret_of(path)


def test_where_nothing_can_be_written_the_variable_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(ImproperlyConfigured, match="set SECRET_KEY"):
        _secret_of(blocker / "secret-key")
