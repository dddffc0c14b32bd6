"""Prepare: from a request to an intent. Reads the forest, writes one record, changes nothing else.

Order of checks: template kwargs, attach point (rollback or attach), empty list, appended roles, template.
What is refused leaves a record that says so, and the tree as it was.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from sessions_app import errors
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.history.matchers.base import MessageMatcher
from sessions_app.history.roots import RootLabel
from sessions_app.json_text import storable
from sessions_app.packing import EMPTY_IDS, Ids
from sessions_app.rendering.protocol import Renderer, RendererRefused
from sessions_app.store import attach, records
from sessions_app.store.pool import Database
from sessions_app.store.values import (
    AttachRow,
    Counters,
    Head,
    Intent,
    NewEvent,
    NodeRow,
    SessionSettings,
    SessionState,
)
from sessions_app.turns import explaining, prompting, recording, rooting
from sessions_app.turns.checkpoints import CheckpointCache
from sessions_app.turns.positioning import Attachment, History, position
from sessions_app.turns.profiles import Profile
from sessions_app.turns.prompting import Prompt
from sessions_app.turns.recording import RawDelta
from sessions_app.turns.rewrites import rewrite_events
from sessions_app.turns.values import ChatRequest

CUT = "length"
"""Finish reason of a generation that ended by its token limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the configuration that prepare enforces."""

    max_nodes: int
    max_rollback: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A turn ready to be generated: nothing of it is in the forest yet."""

    settings: SessionSettings
    request: ChatRequest
    state: SessionState
    parent: AttachRow | None
    kind: AttachKind
    cause: Cause | None
    history: History
    head: Head
    prompt: Prompt
    raw: RawDelta
    retry_of: int | None
    retried_key: bytes | None
    events: tuple[NewEvent, ...]
    counters: Counters
    passthrough: bool
    """Committing this turn ends healing for the session."""
    max_new_tokens: int | None
    """Room left by the session's context limit; None = no limit."""
    root: RootLabel | None
    """What a new root is taken for; None for a turn that continues a node."""

    @property
    def parent_node(self) -> NodeRow | None:
        """The node it continues."""
        return self.parent.node if self.parent else None


class Preparation:
    """What preparing takes; one per process."""

    def __init__(self, db: Database, cache: CheckpointCache, limits: Limits) -> None:
        self._db = db
        self._cache = cache
        self._limits = limits

    async def prepare(
        self, settings: SessionSettings, profile: Profile, matcher: MessageMatcher, request: ChatRequest
    ) -> Prepared:
        """The prepared turn. Raises what refuses it; the caller records that."""
        renderer = profile.renderer.with_kwargs(request.template_kwargs)
        history = History.of(request.messages, matcher)
        rollback = settings.history_policy == "rollback"
        head = None if rollback else profile.heads.head_of(renderer, request.tools)
        stopwatch = request.arrival.stopwatch
        stopwatch.lap("match")
        attachment = await self._position(settings, history, head)
        stopwatch.lap("load")
        self._check_session(settings, attachment.state)
        if not request.messages:
            raise errors.InvalidMessages("messages must not be empty")
        head = head or profile.heads.head_of(renderer, request.tools)
        attachment, prompt, refused = await self._prompt(settings, renderer, attachment, request)
        return await self._describe(settings, request, history, head, attachment, prompt, refused)

    async def _position(self, settings: SessionSettings, history: History, head: Head | None) -> Attachment:
        identity = head.identity if head else None
        return await position(self._db, settings, history, identity, max_rollback=self._limits.max_rollback)

    def _check_session(self, settings: SessionSettings, state: SessionState) -> None:
        if state.status != "open":
            raise errors.SessionClosed(f"session is {state.status}: it no longer serves turns")
        if settings.max_turns is not None and state.next_seq >= settings.max_turns:
            raise errors.MaxTurnsExceeded(f"session exceeded max_turns={settings.max_turns}")
        if state.next_seq >= self._limits.max_nodes:
            raise errors.NodeLimit(
                f"session holds {state.next_seq} nodes, the limit is {self._limits.max_nodes}"
            )

    async def _prompt(
        self, settings: SessionSettings, renderer: Renderer, attachment: Attachment, request: ChatRequest
    ) -> tuple[Attachment, Prompt, RendererRefused | None]:
        """The ids to feed; a renderer that cannot continue the path makes the turn a new root."""
        size = len(request.arrival.body)
        if attachment.parent is None:
            return attachment, await prompting.render(renderer, request.messages, request.tools, size), None
        if not settings.healing or attachment.state.passthrough:
            return await self._rerender(settings, renderer, attachment, attachment.parent, request)
        try:
            return (
                attachment,
                await self._extend(settings, renderer, attachment, attachment.parent, request),
                None,
            )
        except RendererRefused as refused:
            if settings.history_policy == "rollback":
                raise errors.TemplateError(str(refused)) from None
            fallen = _unattached(settings, attachment)
            return fallen, await prompting.render(renderer, request.messages, request.tools, size), refused

    async def _rerender(
        self,
        settings: SessionSettings,
        renderer: Renderer,
        attachment: Attachment,
        parent: AttachRow,
        request: ChatRequest,
    ) -> tuple[Attachment, Prompt, RendererRefused | None]:
        """No healing: what the client sent, attached where its ids happen to go on from the served ones."""
        prompt = await prompting.render(renderer, request.messages, request.tools, len(request.arrival.body))
        served = await self.tokens(settings, parent.node)
        if prompting.continues(served, prompt.ids):
            delta = prompt.ids[len(served) :]
            return attachment, Prompt(prompt.ids, delta, 0, 0, len(served)), None
        refused = RendererRefused(Cause.ENGINE_RERENDER, "the rendered ids do not continue the served ones")
        return replace(attachment, parent=None, kind=AttachKind.FORK), prompt, refused

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

    async def _describe(
        self,
        settings: SessionSettings,
        request: ChatRequest,
        history: History,
        head: Head,
        attachment: Attachment,
        prompt: Prompt,
        refused: RendererRefused | None,
    ) -> Prepared:
        why = await self._why(settings, history, head, attachment, prompt, refused)
        root = await rooting.root_label(self._db, settings, request, attachment, why.cause, why.events)
        kind, (cause, told) = attachment.kind, rooting.refined(root, why.cause, why.events)
        raw, events = recording.raw_delta(request, attachment.parent), list(told)
        if kind is AttachKind.FORK and cause is Cause.RETRY:
            kind = AttachKind.RETRY
        if prompt.trim:
            events.append(
                NewEvent("trim", Cause.BOUNDARY_TRIM, detail=f"{prompt.trim} boundary id(s) dropped")
            )
        events += await self._notices(settings, request, head, attachment)
        events += await rewrite_events(self._db, settings.id, history, attachment.parent, raw)
        return Prepared(
            settings=settings,
            request=request,
            state=attachment.state,
            parent=attachment.parent,
            kind=kind,
            cause=cause,
            history=history,
            head=head,
            prompt=prompt,
            raw=raw,
            retry_of=why.retry_of,
            retried_key=why.retried_key,
            events=tuple(events),
            counters=counters_of(settings, kind, cause, prompt, attachment),
            passthrough=kind is AttachKind.PASSTHROUGH,
            max_new_tokens=room(settings, prompt),
            root=root,
        )

    async def _why(
        self,
        settings: SessionSettings,
        history: History,
        head: Head,
        attachment: Attachment,
        prompt: Prompt,
        refused: RendererRefused | None,
    ) -> "_Why":
        if refused is not None:
            cause = Cause(refused.cause)
            event = NewEvent(str(attachment.kind), cause, detail=str(refused))
            return _Why(cause, (event,))
        if attachment.plain:
            return _Why(Cause.FIRST_TURN if attachment.kind is AttachKind.ROOT else None, ())
        found = await explaining.explain(self._db, settings.id, history, attachment, head)
        event = found.event
        if event.compared_seq is not None:
            event = replace(
                event, token_index=await self._token_index(settings, event.compared_seq, prompt.ids)
            )
        if attachment.discarded:
            event = replace(event, detail=f"{attachment.discarded} checkpoint(s) left the active path")
        return _Why(found.cause, (event,), found.retry_of, found.retried_key)

    async def _token_index(self, settings: SessionSettings, seq: int, fed: Ids) -> int | None:
        """The first id in which what is fed differs from the compared path; None where one begins the
        other.
        """
        stored = self._cache.get(settings.id, seq)
        if stored is None:
            stored = await attach.load_tokens(self._db, settings.id, seq)
        shared = prompting.common_prefix(stored, fed)
        return shared if shared < min(len(stored), len(fed)) else None

    async def _notices(
        self, settings: SessionSettings, request: ChatRequest, head: Head, attachment: Attachment
    ) -> list[NewEvent]:
        """Changes that are recorded and do not fork: model, adapter, and what else `rollback` accepts."""
        if attachment.parent is None:
            return []
        node = attachment.parent.node
        notices = []
        for cause, before, after in (
            (Cause.MODEL_CHANGED, node.model_name, text_field(request, "model")),
            (Cause.ADAPTER_CHANGED, node.adapter_name, text_field(request, "lora_path")),
        ):
            if before != after:
                notices.append(
                    NewEvent(
                        "notice", cause, node.seq, stored_value=_json(before), replayed_value=_json(after)
                    )
                )
        if node.head_digest != head.digest:
            notices += await self._head_notice(settings, head, node)
        return notices

    async def _head_notice(self, settings: SessionSettings, head: Head, node: NodeRow) -> list[NewEvent]:
        cause, before, after = await explaining.head_difference(self._db, settings.id, node, head)
        if before == after:
            return []
        return [NewEvent("notice", cause, node.seq, stored_value=before, replayed_value=after)]

    async def rerendered(self, prepared: Prepared, fed: Ids) -> Prepared:
        """The turn of an engine that rendered the messages itself: a fork where its ids do not go on."""
        parent = prepared.parent_node
        served = await self.tokens(prepared.settings, parent) if parent else EMPTY_IDS
        if parent is not None and prompting.continues(served, fed):
            return replace(prepared, prompt=Prompt(fed, fed[len(served) :], 0, 0, len(served)))
        prompt = Prompt(fed, fed, 0, 0, 0)
        if parent is None:
            return replace(prepared, prompt=prompt)
        shared = prompting.common_prefix(served, fed)
        event = NewEvent(
            "fork",
            Cause.ENGINE_RERENDER,
            compared_seq=parent.seq,
            token_index=shared,
            detail=f"the first {shared} of {len(served)} served ids were fed again",
        )
        return replace(
            prepared,
            parent=None,
            kind=AttachKind.FORK,
            cause=Cause.ENGINE_RERENDER,
            prompt=prompt,
            raw=recording.raw_delta(prepared.request, None),
            events=(*prepared.events, event),
            counters=replace(prepared.counters, forks=1, healed_turns=0, healed_prefix_tokens=0),
        )

    async def write_intent(self, prepared: Prepared, intent: Intent) -> int:
        """Store the intent; its record id."""
        parent = prepared.parent_node
        known = parent is not None and parent.head_digest == prepared.head.digest
        return await records.insert(self._db, intent, with_head=not known)


@dataclass(frozen=True, slots=True)
class _Why:
    cause: Cause | None
    events: tuple[NewEvent, ...]
    retry_of: int | None = None
    retried_key: bytes | None = None


def _unattached(settings: SessionSettings, attachment: Attachment) -> Attachment:
    """The attachment of a turn whose path the renderer cannot continue: a new root, by the session's
    policy.
    """
    kind = AttachKind.FORK
    if settings.history_policy == "linear":
        from sessions_app.history.policies.linear import nonlinear

        kind = nonlinear(settings.on_nonlinear, settings.id.hex).kind
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


def counters_of(
    settings: SessionSettings, kind: AttachKind, cause: Cause | None, prompt: Prompt, attachment: Attachment
) -> Counters:
    """What committing the turn adds to the session's counters (reference gateway 5.1)."""
    healed = attachment.parent is not None and settings.healing and not attachment.state.passthrough
    linear = settings.history_policy == "linear"
    return Counters(
        healed_turns=int(healed),
        healed_prefix_tokens=prompt.reused + prompt.glue if healed else 0,
        nonlinear=int(linear and kind in (AttachKind.RESET, AttachKind.PASSTHROUGH)),
        close_unresolved=int(cause is Cause.CLOSE_UNRESOLVED),
        forks=int(kind in (AttachKind.FORK, AttachKind.RETRY)),
        rollbacks=int(kind is AttachKind.ROLLBACK),
        retries=int(cause is Cause.RETRY),
        resets=int(kind is AttachKind.RESET),
    )


def room(settings: SessionSettings, prompt: Prompt) -> int | None:
    """Tokens that may still be generated. Raises ContextLengthExceeded where none may."""
    limit = settings.max_context_tokens
    if limit is None:
        return None
    if len(prompt.ids) >= limit:
        raise errors.ContextLengthExceeded(
            f"This model's maximum context length is {limit} tokens. However, your prompt contains "
            f"{len(prompt.ids)} input tokens, which leaves no room for output tokens. Please reduce the "
            "length of the messages."
        )
    return limit - len(prompt.ids)


def text_field(request: ChatRequest, name: str) -> str | None:
    """A text the request's body names, as a column can hold it."""
    value = request.body.get(name)
    return storable(value) if isinstance(value, str) else None


def _json(value: str | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
