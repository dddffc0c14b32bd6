"""Replays of chosen sessions: loads them one by one, compares, sums up. Reads only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from sessions_app.history.harness.profiles import HarnessProfile
from sessions_app.insight.what_if.asked import load_requests
from sessions_app.insight.what_if.report import Report, SessionResult, compare, report_of
from sessions_app.insight.what_if.setup import NO_HARNESS, Changes, Own, setup_of
from sessions_app.models import ModelProfile, Session
from sessions_app.rendering.protocol import Renderer

RendererOf = Callable[[Session], Renderer | str | None]
"""The renderer to count with for a session; a text says why there is none, None that none is wanted."""
Progress = Callable[[int, int], None]
"""Called with sessions done and sessions in all."""


@dataclass(frozen=True, slots=True)
class World:
    """What replays take from the server's settings."""

    harnesses: Mapping[str, HarnessProfile]
    max_rollback: int


def check(changes: Changes, world: World) -> None:
    """Raises ValueError for changes that do not resolve."""
    setup_of(Own("tree", "strict", "reset", world.max_rollback, None), changes, world.harnesses)
    if changes.profile is not None and not ModelProfile.objects.filter(name=changes.profile).exists():
        raise ValueError(f"profile {changes.profile!r} does not exist")


def run(
    ids: Sequence[UUID], changes: Changes, world: World, renderer_of: RendererOf, progress: Progress
) -> Report:
    """The report. Raises ValueError for changes that do not resolve, and what `progress` raises."""
    check(changes, world)
    results = []
    for result in _results(ids, changes, world, renderer_of):
        results.append(result)
        progress(len(results), len(ids))
    named = {name: value for name, value in asdict(changes).items() if value is not None}
    return report_of(named, results)


def _results(
    ids: Sequence[UUID], changes: Changes, world: World, renderer_of: RendererOf
) -> Iterator[SessionResult]:
    for session_id in ids:
        session = Session.objects.select_related("profile").filter(pk=session_id).first()
        if session is None:
            continue
        own = own_settings(session, world.max_rollback)
        renderer = renderer_of(session)
        roles = None if renderer is None or isinstance(renderer, str) else renderer.append_roles
        yield compare(
            session.id.hex,
            load_requests(session.id),
            setup_of(own, Changes(), world.harnesses),
            setup_of(own, changes, world.harnesses, roles),
            renderer,
        )


def own_settings(session: Session, max_rollback: int) -> Own:
    """What a session was served under; `max_rollback` is a setting of the server."""
    harness = session.detected_harness if session.harness == "auto" else session.harness
    return Own(
        policy=session.history_policy,
        matcher=session.message_matcher,
        on_nonlinear=session.on_nonlinear,
        max_rollback=max_rollback,
        harness=harness or NO_HARNESS,
        healing=session.healing,
    )
