"""The limit of open files is raised as far as the system allows, and never lowered."""

import resource

import pytest

from tito_project import open_files


@pytest.mark.parametrize(
    ("limits", "raised"),
    [
        ((1024, 4096), (4096, 4096)),
        ((1024, 1_000_000), (65_536, 1_000_000)),
        ((256, resource.RLIM_INFINITY), (65_536, resource.RLIM_INFINITY)),
        ((100_000, 1_000_000), None),
        ((4096, 4096), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
    ],
)
def test_it_is_raised_and_never_lowered(monkeypatch, limits, raised):
    set_to = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: set_to.append(new))
    assert open_files.raise_limit() == (raised or limits)[0]
    assert set_to == ([raised] if raised else [])


def test_a_system_that_refuses_is_left_alone(monkeypatch):
    def refuse(_: int, new: tuple[int, int]) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert open_files.raise_limit() == 1024
