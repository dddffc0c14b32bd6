"""Prepare: from a request to an intent. Reads the forest, writes one record, changes nothing else.

Order of checks: template kwargs, attach point (rollback or attach), empty list, appended roles, template.
What is refused leaves a record that says so, and the tree as it was.
"""

import json
from dataclasses import dataclass, replace
from functools import partial

from sessions_app import errors
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.history.matchers.base import MessageMatcher
from sessions_app.history.passing import aligned
from sessions_app.history.roots import RootLabel
from sessions_app.packing import EMPTY_IDS, Ids
from sessions_app.store import attach, leases, records
from sessions_app.store.leases import Lease
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
from sessions_app.turns.beginnings import Beginnings, Read
from sessions_app.turns.checkpoints import CheckpointCache
from sessions_app.turns.feeding import Fed, Feeding
from sessions_app.turns.positioning import Attachment, History, as_spelled, position
from sessions_app.turns.profiles import Profile
from sessions_app.turns.prompting import Prompt
from sessions_app.turns.reasons import Reasons
from sessions_app.turns.recording import RawDelta
from sessions_app.turns.rewrites import rewrite_events
from sessions_app.turns.values import ChatRequest


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
    matched: int
    """Messages of the request that replay the parent's path."""
    root: RootLabel | None
    """What a new root is taken for; None for a turn that continues a node."""
    max_nodes: int
    """Nodes that the session may hold."""

    @property
    def parent_node(self) -> NodeRow | None:
        """The node it continues."""
        return self.parent.node if self.parent else None

    @property
    def first_new(self) -> int:
        """Index of the first message that the parent's path does not hold."""
        return self.matched if self.parent else 0


class Preparation:
    """What preparing takes; one per process."""

    def __init__(
        self, db: Database, cache: CheckpointCache, limits: Limits, lease: Lease | None = None
    ) -> None:
        self._db = db
        self._lease = lease
        self._limits = limits
        self._beginnings = Beginnings()
        self._feeding = Feeding(db, cache)
        self._reasons = Reasons(db, self._feeding)

    async def prepare(
        self, settings: SessionSettings, profile: Profile, matcher: MessageMatcher, request: ChatRequest
    ) -> Prepared:
        """The prepared turn. Raises what refuses it; the caller records that."""
        renderer = profile.renderer.with_kwargs(request.template_kwargs)
        read = self._beginnings.read(settings.id, request.messages, matcher, request.spelled)
        history = read.history
        rollback = settings.history_policy == "rollback"
        head = None if rollback else profile.heads.head_of(renderer, request.tools)
        stopwatch = request.arrival.stopwatch
        stopwatch.lap("match")
        attachment = await self._position(settings, history, head)
        if settings.history_policy == "tree" and read.spelling is not None:
            told = partial(read.spelling.of_leading, request.spelled)
            attachment = await as_spelled(self._db, settings.id, history, attachment, told)
        stopwatch.lap("load")
        self._check_session(settings, attachment.state)
        if not request.messages:
            raise errors.InvalidMessages("messages must not be empty")
        head = head or profile.heads.head_of(renderer, request.tools)
        fed = await self._feeding.feed(settings, renderer, attachment, request)
        return await self._describe(settings, request, read, head, fed)

    async def _position(self, settings: SessionSettings, history: History, head: Head | None) -> Attachment:
        identity = head.identity if head else None
        try:
            return await position(
                self._db, settings, history, identity, max_rollback=self._limits.max_rollback
            )
        except errors.NonlinearHistory as error:
            assert head is not None  # only `linear` raises it
            error.cause = await explaining.changed_head(self._db, settings.id, head)
            raise

    def _check_session(self, settings: SessionSettings, state: SessionState) -> None:
        if settings.max_turns is not None and state.next_seq >= settings.max_turns:
            raise errors.MaxTurnsExceeded(f"session exceeded max_turns={settings.max_turns}")
        if state.next_seq >= self._limits.max_nodes:
            raise errors.NodeLimit(
                f"session holds {state.next_seq} nodes, the limit is {self._limits.max_nodes}"
            )

    async def _describe(
        self,
        settings: SessionSettings,
        request: ChatRequest,
        read: Read,
        head: Head,
        fed: Fed,
    ) -> Prepared:
        attachment, prompt, history = fed.attachment, fed.prompt, read.history
        why = await self._reasons.why(settings, history, head, fed)
        root = await rooting.root_label(self._db, settings, request, attachment, why.cause, why.events)
        kind, (cause, told) = attachment.kind, rooting.refined(root, why.cause, why.events)
        raw, events = await self._spelled(settings, request, attachment, read), list(told)
        if kind is AttachKind.FORK and cause is Cause.RETRY:
            kind = AttachKind.RETRY
        if prompt.trim:
            events.append(prompting.trim_event(prompt))
        events += await self._reasons.notices(settings, request, head, attachment)
        events += await rewrite_events(self._db, settings.id, history, attachment, raw)
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
            events=tuple(explaining.in_force(event, history) for event in events),
            counters=counters_of(settings, kind, cause, prompt, attachment),
            passthrough=kind is AttachKind.PASSTHROUGH,
            max_new_tokens=room(settings, prompt),
            matched=attachment.matched,
            root=root,
            max_nodes=self._limits.max_nodes,
        )

    async def _spelled(
        self, settings: SessionSettings, request: ChatRequest, attachment: Attachment, read: Read
    ) -> RawDelta:
        """How the history was spelled; the stored path is loaded only where it was respelled."""
        raw = recording.raw_delta(request, attachment.parent, attachment.first_new, read.spelling)
        if raw.leading is None or attachment.parent is None:
            return raw
        stored = await attach.load_path_messages(self._db, settings.id, attachment.parent.node.seq)
        told = request.messages[: attachment.first_new]
        pairs = aligned([json.loads(message.body) for message in stored], told, read.history.matcher)
        return replace(
            raw,
            leading=recording.respelled(told, stored, pairs),
            beyond=recording.beyond(request, stored, pairs),
        )

    async def served(self, prepared: Prepared) -> Ids:
        """The ids of the attach point."""
        parent = prepared.parent_node
        return await self._feeding.tokens(prepared.settings, parent) if parent else EMPTY_IDS

    async def write_intent(self, prepared: Prepared, intent: Intent) -> int:
        """Store the intent, of which this process says that it lives; its record id."""
        parent = prepared.parent_node
        known = parent is not None and parent.head_digest == prepared.head.digest
        intent = replace(intent, lease=self._lease.id if self._lease else None)
        written = await records.insert(self._db, intent, with_head=not known)
        if self._lease is not None and not written.leased:
            await leases.renew(self._db, self._lease)
        return written.id


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
