"""Feeding: the prompt of a positioned turn, from stored ids where its path can be continued.

Invariant: a path that the renderer cannot continue token by token is never fed half healed: the turn becomes
a new root with a full render, or is refused, as its session's policy says.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from sessions_app import errors
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.history.policies.linear import nonlinear
from sessions_app.packing import Ids
from sessions_app.rendering.protocol import Renderer, RendererRefused
from sessions_app.store import attach
from sessions_app.store.pool import Database
from sessions_app.store.values import AttachRow, NodeRow, SessionSettings
from sessions_app.turns import prompting
from sessions_app.turns.checkpoints import CheckpointCache
from sessions_app.turns.positioning import Attachment
from sessions_app.turns.prompting import Prompt
from sessions_app.turns.values import ChatRequest

CUT = "length"
"""Finish reason of a generation that ended by its token limit."""


@dataclass(frozen=True, slots=True)
class Fed:
    """A prompt, and the attachment it ended with."""

    attachment: Attachment
    prompt: Prompt
    refused: RendererRefused | None = None
    """Why the path was not continued after all."""


class Feeding:
    """Assembles prompts; holds nothing but the cache of token arrays."""

    def __init__(self, db: Database, cache: CheckpointCache) -> None:
        self._db = db
        self._cache = cache

    async def feed(
        self, settings: SessionSettings, renderer: Renderer, attachment: Attachment, request: ChatRequest
    ) -> Fed:
        """The ids to feed; a renderer that cannot continue the path makes the turn a new root."""
        size = len(request.arrival.body)
        if attachment.parent is None:
            return Fed(attachment, await prompting.render(renderer, request.messages, request.tools, size))
        if not settings.healing or attachment.state.passthrough:
            return await self._rerender(settings, renderer, attachment, attachment.parent, request)
        try:
            prompt = await self._extend(settings, renderer, attachment, attachment.parent, request)
            return Fed(attachment, prompt)
        except RendererRefused as refused:
            if settings.history_policy == "rollback":
                raise errors.TemplateError(str(refused)) from refused
            prompt = await prompting.render(renderer, request.messages, request.tools, size)
            return Fed(_unattached(settings, attachment, refused), prompt, refused)

    async def _rerender(
        self,
        settings: SessionSettings,
        renderer: Renderer,
        attachment: Attachment,
        parent: AttachRow,
        request: ChatRequest,
    ) -> Fed:
        """No healing: what the client sent, attached where its ids happen to go on from the served ones."""
        prompt = await prompting.render(renderer, request.messages, request.tools, len(request.arrival.body))
        served = await self.tokens(settings, parent.node)
        if prompting.continues(served, prompt.ids):
            delta = prompt.ids[len(served) :]
            return Fed(attachment, Prompt(prompt.ids, delta, 0, 0, len(served)))
        refused = RendererRefused(Cause.ENGINE_RERENDER, "the rendered ids do not continue the served ones")
        return Fed(replace(attachment, parent=None, kind=AttachKind.FORK), prompt, refused)

    async def _extend(
        self,
        settings: SessionSettings,
        renderer: Renderer,
        attachment: Attachment,
        parent: AttachRow,
        request: ChatRequest,
    ) -> Prompt:
        cut = parent.node.finish_reason == CUT
        if cut and settings.on_truncated == "refuse":
            raise errors.TruncatedGeneration(
                "truncated generation cannot be extended: the matched node ended with finish_reason='length' "
                "and truncation closes that path for good; branch before the cut instead"
            )
        new_messages = request.messages[attachment.first_new :]
        check_roles(settings.history_policy, renderer, new_messages, attachment.first_new)
        served = await self.tokens(settings, parent.node)
        request.arrival.stopwatch.lap("load")
        return await prompting.extend(
            renderer,
            served,
            json.loads(parent.reply_body),
            new_messages,
            request.tools,
            cut=cut and settings.on_truncated == "close",
            size=sum(
                len(request.texts.text(index)) for index in range(attachment.first_new, len(request.messages))
            ),
        )

    async def tokens(self, settings: SessionSettings, node: NodeRow) -> Ids:
        """Every id up to and including a node, from the cache or from Postgres."""
        tokens = self._cache.get(settings.id, node.seq)
        if tokens is None:
            tokens = await attach.load_tokens(self._db, settings.id, node.seq)
            self._cache.put(settings.id, node.seq, tokens)
        return tokens

    async def first_difference(self, settings: SessionSettings, seq: int, fed: Ids) -> int | None:
        """The first id in which what is fed differs from the compared path; None where one begins the
        other.
        """
        stored = self._cache.get(settings.id, seq)
        if stored is None:
            stored = await attach.load_tokens(self._db, settings.id, seq)
        shared = prompting.common_prefix(stored, fed)
        return shared if shared < min(len(stored), len(fed)) else None


def _unattached(settings: SessionSettings, attachment: Attachment, refused: RendererRefused) -> Attachment:
    """The attachment of a turn whose path the renderer cannot continue: a new root, by the session's
    policy.
    """
    kind = AttachKind.FORK
    if settings.history_policy == "linear":
        try:
            kind = nonlinear(settings.on_nonlinear, settings.id.hex).kind
        except errors.NonlinearHistory as error:
            raise error from refused
    return replace(attachment, parent=None, kind=kind)


def check_roles(policy: str, renderer: Renderer, new_messages: list[dict[str, Any]], first_new: int) -> None:
    """Whether every new message may follow served tokens. Policy `linear` leaves that to the template.

    Raises RoleNotAppendable with the reference's text of the policy.
    """
    if policy == "linear":
        return
    allowed = renderer.append_roles
    for index, message in enumerate(new_messages, first_new):
        role = message.get("role")
        if isinstance(role, str) and role in allowed:
            continue
        tail = "; the selected TITO fixed template does not support appending this role"
        if policy == "rollback":
            raise errors.RoleNotAppendable(
                f"appended message at index {index} has role={role!r}, allowed={allowed!r}{tail}"
            )
        raise errors.RoleNotAppendable(
            f"appended message role={role!r} not allowed (allowed={sorted(allowed)!r}){tail}"
        )
