"""The page of a node: why it hangs where it does, the messages it added, and the ids of its path."""

from dataclasses import dataclass

from django.db.models import F
from django.db.models.functions import Abs
from django.http import HttpRequest, HttpResponse

from sessions_app.admin.pages.serving import Missing, node_seq, number, page, read_session, shown
from sessions_app.admin.pages.tables import (
    EventLine,
    RecordLine,
    RewardLine,
    event_lines,
    record_lines,
    reward_lines,
)
from sessions_app.admin.pages.token_view import (
    SIGNALS,
    STRETCH,
    Stretch,
    TurnMark,
    asked_signal,
    reading_of,
    stretch_of,
    turn_marks,
)
from sessions_app.admin.pages.training import fates_of, training_of
from sessions_app.admin.roles import may_operate
from sessions_app.insight.forest import NodeLine, load_leaf_tokens, load_lines
from sessions_app.insight.message_view import MessageView, view_of
from sessions_app.insight.messages import StoredMessage, load_above, load_own
from sessions_app.insight.paths import load_path
from sessions_app.models import Node, RequestHead, Session
from sessions_app.presentation.addresses import node_url, session_url

_ABOVE = 20
"""Messages of the path above that are on the page."""
_ABOVE_WIDTH = 400
_RELATIVES = 8
"""Nodes beside it, and below it, that the page names."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as stored, and as read."""

    stored: StoredMessage
    view: MessageView


@dataclass(frozen=True, slots=True)
class Relatives:
    """Nodes around it."""

    siblings: list[int]
    """Seqs of other nodes with the same parent, those committed closest to it."""
    siblings_total: int
    children: list[int]
    """Seqs of the first nodes that continue it."""
    children_total: int


@dataclass(frozen=True, slots=True)
class HeadView:
    """What the engine was shown before the conversation."""

    tools: str | None
    template_kwargs: str
    template_fingerprint: str
    tokenizer_fingerprint: str


@dataclass(frozen=True, slots=True)
class NodePage:
    """Everything on the page."""

    session_id: str
    history_policy: str
    matcher: str
    node: NodeLine
    trim: int
    glue: int
    relatives: Relatives
    events: list[EventLine]
    """Why it is no plain continuation, and what else happened to it."""
    records: list[RecordLine]
    rewards: list[RewardLine]
    head: HeadView
    above: list[StoredMessage]
    """The last messages of the path before its own, cut."""
    above_hidden: int
    """Messages of the path before those."""
    messages: list[Shown]
    turns: list[TurnMark]
    """Every turn of its path."""
    tokens: Stretch
    untrained: str | None
    """Why it is not known what would be trained."""


@page
def node_page(request: HttpRequest, session_id: str, seq: int) -> HttpResponse:
    """The page, or its twin. `?at=N` begins the token view at id N, `?signal=` colours it."""
    session = read_session(request, session_id, "node")
    value = build(session, node_seq(session, seq), number(request, "at", -1), asked_signal(request))
    address = node_url(session.id, seq)
    return shown(
        request,
        "node.html",
        f"Node {seq}",
        value,
        url=address,
        session_url=session_url(session.id),
        tokens_url=f"{address}tokens/",
        diff_url=f"{address}diff/",
        case_url=f"{address}case/",
        class_url=f"{address}class/",
        may=may_operate(request.user),
        signals=SIGNALS,
    )


@page
def token_page(request: HttpRequest, session_id: str, seq: int) -> HttpResponse:
    """One stretch of the token view, for scrolling; or its twin."""
    session = read_session(request, session_id, "token view")
    path = load_path(session.id, node_seq(session, seq))
    if not path.spans:
        raise Missing(f"There is no node {seq} in session {session.id.hex}.")
    at = number(request, "at", path.spans[-1].start)
    reading = reading_of(session.profile, path)
    most = min(max(1, number(request, "to", at + STRETCH) - at), STRETCH)
    fates = fates_of(training_of(session, load_leaf_tokens(session.id)), seq)
    signal = asked_signal(request)
    value = stretch_of(path, 0, len(path.ids), at, reading, signal, most=most, fates=fates)
    return shown(request, "stretch.html", f"Ids of node {seq}", value, session_id=session.id.hex)


def build(session: Session, seq: int, at: int, signal: str) -> NodePage:
    """The page's value. A negative `at` begins the token view where the node's own ids begin."""
    lines = load_lines(session.id, seq, seq + 1)
    if not lines:
        raise Missing(f"There is no node {seq} in session {session.id.hex}.")
    node = lines[0]
    path = load_path(session.id, seq)
    span = path.spans[-1]
    above = load_above(session.id, seq, node.message_start, most=_ABOVE, width=_ABOVE_WIDTH)
    own = load_own(session.id, seq)
    reading = reading_of(session.profile, path)
    training = training_of(session, load_leaf_tokens(session.id))
    return NodePage(
        session_id=session.id.hex,
        history_policy=session.history_policy,
        matcher=session.message_matcher,
        node=node,
        trim=span.turn.trim,
        glue=span.turn.glue,
        relatives=_relatives(session, node),
        events=event_lines(session.id, node_seq=seq),
        records=record_lines(session.id, node_seq=seq),
        rewards=reward_lines(session.id, node_seq=seq),
        head=_head(session, seq),
        above=above,
        above_hidden=node.message_start - len(above),
        messages=[Shown(message, view_of(message.body)) for message in own],
        turns=turn_marks(path),
        tokens=stretch_of(
            path,
            0,
            len(path.ids),
            span.start if at < 0 else at,
            reading,
            signal,
            fates=fates_of(training, seq),
        ),
        untrained=training.unavailable,
    )


def _relatives(session: Session, node: NodeLine) -> Relatives:
    nodes = Node.objects.filter(session=session).order_by("seq").values_list("seq", flat=True)
    beside = {"parent_seq__isnull": True} if node.parent is None else {"parent_seq": node.parent}
    siblings = nodes.filter(**beside).exclude(seq=node.seq)
    children = nodes.filter(parent_seq=node.seq)
    closest = siblings.order_by(Abs(F("seq") - node.seq))[:_RELATIVES]
    return Relatives(sorted(closest), siblings.count(), list(children[:_RELATIVES]), children.count())


def _head(session: Session, seq: int) -> HeadView:
    digest = Node.objects.filter(session=session, seq=seq).values("head_digest")
    head = RequestHead.objects.filter(session=session, digest__in=digest)
    columns = ("tools", "template_kwargs", "template_fingerprint", "tokenizer_fingerprint")
    return HeadView(*head.values_list(*columns)[0])
