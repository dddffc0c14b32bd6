"""What is kept of a request that its session's policy refused, so that it can be replayed under another one.

A request that became a node left its messages there. A refused one has no node: its messages are kept as a
delta against the active path, which its policy looked at. Other refusals keep none, as no policy would have
served them.
"""

from dataclasses import dataclass

from sessions_app import errors
from sessions_app.store import attach
from sessions_app.store.pool import Database
from sessions_app.store.values import Head, SessionSettings
from sessions_app.turns import recording
from sessions_app.turns.profiles import Profile
from sessions_app.turns.values import ChatRequest

REPLAYABLE = (errors.RollbackTooDeep, errors.NonlinearHistory)


@dataclass(frozen=True, slots=True)
class Kept:
    """A refused request's messages and head."""

    head: Head
    path: int
    """Node whose path the messages are a delta against."""
    leading: str
    """JSON object: messages not spelled as on that path, by index."""
    tail: str
    """JSON list: messages behind the end of that path."""


async def kept_of(
    db: Database, settings: SessionSettings, profile: Profile, request: ChatRequest
) -> Kept | None:
    """What to keep; None where there is no path yet, or what cannot be rendered or stored."""
    lookup = await attach.load_active(db, settings.id)
    if lookup is None or lookup.found is None:
        return None
    seq = lookup.found.node.seq
    stored = await attach.load_path_messages(db, settings.id, seq)
    try:
        renderer = profile.renderer.with_kwargs(request.template_kwargs)
        head = profile.heads.head_of(renderer, request.tools)
        count = min(len(stored), len(request.messages))
        one_to_one = [(index, index) for index in range(count)]
        leading = recording.respelled(request.messages, stored, one_to_one)
        return Kept(head, seq, leading, recording.texts_from(request, len(stored)))
    except errors.TitoError:
        return None
