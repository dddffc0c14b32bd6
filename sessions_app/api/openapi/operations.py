"""What each view takes and gives, by the name of its class and the method.

A view that is not listed is described by its docstrings alone, with open bodies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sessions_app.api.openapi.components import COUNT, NAME, OPEN, TEXT, Shape, listed, named, one_of, shaped

EVENTS = "text/event-stream"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one view."""

    body: Shape | None = None
    """None: it takes none."""
    reply: Shape | None = field(default_factory=lambda: OPEN)
    """None: it has none."""
    error: str = "PlainError"
    status: int = 200
    media: tuple[str, ...] = (JSON,)
    query: Mapping[str, Shape] = field(default_factory=dict)


UNKNOWN = Operation()
_UNKNOWN_POST = Operation(body=OPEN)


def _turn(protocol: str, error: str) -> Operation:
    """A turn of a protocol."""
    return Operation(named(f"{protocol}Request"), named(f"{protocol}Reply"), error, media=(JSON, EVENTS))


_BY_PROTOCOL = {
    "ChatView": _turn("Chat", "ReferenceError"),
    "KeyChatView": _turn("Chat", "OpenAIError"),
    "AttemptChatView": _turn("Chat", "OpenAIError"),
    **{name: _turn("Messages", "AnthropicError")
       for name in ("MessagesView", "KeyMessagesView", "AttemptMessagesView")},
    **{name: Operation(named("MessagesRequest"), named("TokenCount"), "AnthropicError")
       for name in ("CountTokensView", "KeyCountTokensView", "AttemptCountTokensView")},
    **{name: _turn("Responses", "OpenAIError")
       for name in ("ResponsesView", "KeyResponsesView", "AttemptResponsesView")},
}  # fmt: skip

_BYTES: Shape = {"type": "string", "format": "binary"}
_PAGE: dict[str, Shape] = {"limit": {"type": "integer", "minimum": 1, "maximum": 1000}, "cursor": TEXT}
_PROFILE = shaped(profile=NAME)

OPERATIONS: dict[tuple[str, str], Operation] = {
    **{(name, "post"): operation for name, operation in _BY_PROTOCOL.items()},
    **{(name, "get"): Operation(reply=named("ModelList"), error="OpenAIError")
       for name in ("ModelsView", "KeyModelsView", "AttemptModelsView")},
    **{(name, "get"): Operation(reply=shaped("id", id=TEXT), error="OpenAIError")
       for name in ("ModelView", "KeyModelView", "AttemptModelView")},
    **{(f"{by}StoredResponseView", method): Operation(reply=named("ResponsesReply"), error="OpenAIError")
       for by in ("", "Key", "Attempt") for method in ("get", "delete")},
    **{(f"{by}InputItemsView", "get"): Operation(
           reply=named("ResponseItems"), error="OpenAIError",
           query={"limit": {"type": "integer", "minimum": 1, "maximum": 100}, "after": TEXT,
                  "order": one_of("asc", "desc")})
       for by in ("", "Key", "Attempt")},
    **{(f"{by}CancelResponseView", "post"): Operation(error="OpenAIError") for by in ("", "Key", "Attempt")},
    ("HealthView", "get"): Operation(reply=named("Health")),
    ("ReadyView", "get"): Operation(reply=named("Readiness"), error="Readiness"),
    ("MetricsView", "get"): Operation(reply=TEXT, media=("text/plain",)),
    ("SessionsView", "post"): Operation(named("NewSession"), named("SessionCreated"), "ReferenceError"),
    ("SessionView", "get"): Operation(
        reply=named("Session"),
        error="ReferenceError",
        query={"leaf": {"type": "integer", "minimum": 0}, "node": {"type": "integer", "minimum": 0}},
    ),
    ("SessionView", "delete"): Operation(
        reply=None, error="ReferenceError", status=204, query={"discard": {"type": "boolean"}}
    ),
    ("SamplesView", "post"): Operation(
        shaped(max_seq_len=COUNT), _BYTES, "ReferenceError",
        media=("application/octet-stream",),
    ),
    **{(f"{by}{signal}View", "post"): Operation(OPEN, OPEN, "OtlpStatus")
       for by in ("Key", "Session", "Attempt") for signal in ("Traces", "Logs")},
    ("RewardsView", "post"): Operation(OPEN),
    ("FinishView", "post"): Operation(
        shaped(
            status=one_of("completed", "truncated", "aborted", "failed"),
            reward={"type": "number"},
            metadata=OPEN,
        )
    ),
    ("KeysView", "post"): Operation(reply=named("SessionKey")),
    ("KeysView", "delete"): Operation(reply=None, status=204),
    ("SessionListView", "get"): Operation(
        query={**_PAGE, **dict.fromkeys(
            ("id_prefix", "status", "harness", "rollout_id", "group_id", "profile", "history_policy"), TEXT)}
    ),
    **{(name, "get"): Operation(query=_PAGE) for name in ("NodesView", "RecordsView", "EventsView")},
    ("NodeView", "get"): Operation(query={"include": TEXT}),
    ("ExportsView", "post"): Operation(OPEN),
    ("ExportsView", "get"): Operation(query={"limit": _PAGE["limit"], "before": TEXT}),
    ("ExportView", "get"): Operation(query={"diff": TEXT}),
    ("ExportCancelView", "post"): Operation(),
    ("ExportResumeView", "post"): Operation(),
    ("SamplesStreamView", "get"): Operation(
        reply=_BYTES,
        media=("application/octet-stream",),
        query={
            "cursor": {"type": "integer", "minimum": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": 64},
            "lease_s": {"type": "number", "minimum": 0, "maximum": 86400},
            "wait_s": {"type": "number", "minimum": 0, "maximum": 60},
            "consumer": TEXT,
            "shape": TEXT,
            "rewarded": {"type": "boolean"},
            "min_weight_version": {"type": "integer", "minimum": 0},
            "max_staleness": {"type": "integer", "minimum": 0},
        },
    ),
    ("SamplesAckView", "post"): Operation(
        shaped(
            "lease ids",
            lease={"type": "string", "format": "uuid"},
            ids=listed({"type": "integer", "minimum": 0}),
            release={"type": "boolean"},
        )
    ),
    ("PauseView", "post"): Operation(_PROFILE),
    ("ResumeView", "post"): Operation(_PROFILE),
    ("VersionView", "post"): Operation(shaped("weight_version", profile=NAME, weight_version=NAME)),
    **{("ProxyView", method): Operation(
           OPEN if method != "get" else None, OPEN, "ReferenceError")
       for method in ("get", "post", "put", "patch", "delete")},
}  # fmt: skip


def operation_of(view: str, method: str) -> Operation:
    """The operation of a view's method."""
    known = OPERATIONS.get((view, method))
    return known or (_UNKNOWN_POST if method == "post" else UNKNOWN)
