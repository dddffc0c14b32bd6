"""Every error a caller can see, in one place; nothing else decides a status or a code.

    TitoError                         status  code                            retryable
    ├─ BadRequest                     400     invalid_body                    no
    │  ├─ InvalidJson                 400     invalid_json
    │  ├─ InvalidMessages             400     invalid_messages
    │  ├─ InvalidTools                400     invalid_tools
    │  ├─ InvalidSampling             400     invalid_sampling
    │  ├─ InvalidArgument             400     invalid_argument
    │  ├─ InvalidTemplateKwargs       400     invalid_template_kwargs
    │  ├─ TemplateError               400     template_error
    │  │  └─ NotAppendOnly            400     template_error
    │  ├─ InputIdsNotAllowed          400     input_ids_not_allowed
    │  ├─ NNotSupported               400     n_not_supported
    │  ├─ RoleNotAppendable           400     role_not_appendable
    │  ├─ RollbackTooDeep             400     rollback_too_deep
    │  ├─ ContextLengthExceeded       400     context_length_exceeded
    │  ├─ UnsupportedContent          400     unsupported_content
    │  └─ InvalidHost                 400     invalid_host
    ├─ Unauthorized                   401     unauthorized
    ├─ ForbiddenOrigin                403     forbidden_origin
    ├─ SessionNotFound                404     session_not_found
    ├─ NotFound                       404     not_found
    ├─ MethodNotAllowed               405     method_not_allowed
    ├─ Conflict                       409
    │  ├─ TruncatedGeneration         409     truncated_generation
    │  ├─ NonlinearHistory            409     nonlinear_history
    │  ├─ IdempotencyConflict         409     idempotency_conflict
    │  ├─ NodeLimit                   409     node_limit
    │  └─ SessionClosed               409     session_closed
    ├─ BodyTooLarge                   413     body_too_large
    ├─ UnsupportedMediaType           415     unsupported_media_type
    ├─ SamplesFailed                  422     samples_failed
    ├─ MaxTurnsExceeded               429     max_turns_exceeded
    ├─ RateLimited, Overloaded        429     rate_limited, overloaded        yes
    ├─ UnrecordedReply                500     internal_error
    ├─ PrefixMismatch                 500     prefix_mismatch
    ├─ MatcherRaised, MatcherContract 500     matcher_raised, matcher_contract
    ├─ UpstreamError                  502
    │  ├─ UpstreamUnreachable         502     upstream_unreachable            yes
    │  ├─ UpstreamTimeout             502     upstream_timeout                yes
    │  ├─ UpstreamInvalidReply        502     upstream_invalid_reply
    │  ├─ UpstreamMissingTokenIds     502     upstream_missing_token_ids
    │  ├─ UpstreamNullContent         502     upstream_null_content
    │  ├─ UpstreamTokenCountMismatch  502     upstream_token_count_mismatch
    │  ├─ UpstreamInvalidLogprob      502     upstream_invalid_logprob
    │  └─ EngineTokenMismatch         502     engine_token_mismatch
    ├─ UpstreamStatus                 engine's own answer passed through: upstream_status (408, 429, 5xx: yes)
    └─ Paused, Draining, NotReady     503     paused, draining, not_ready     yes

`str(error)` is the text the caller reads. It never holds conversation text.
"""

from collections.abc import Mapping


class TitoError(Exception):
    """Base of all errors that are answered to a caller."""

    status: int = 500
    code: str = "internal_error"
    retryable: bool = False
    retry_after_s: int | None = None


class BadRequest(TitoError):
    """The request cannot be served as it is; sending it again will not help."""

    status = 400
    code = "invalid_body"


class InvalidJson(BadRequest):
    """The body is not JSON that can be read (syntax, depth, number length)."""

    code = "invalid_json"


class InvalidMessages(BadRequest):
    """`messages` is missing, empty, not a list of objects with a role, or holds text that cannot be
    tokenised.
    """

    code = "invalid_messages"


class InvalidTools(BadRequest):
    """`tools` is not a list of objects."""

    code = "invalid_tools"


class InvalidSampling(BadRequest):
    """A sampling field has a value of the wrong type or range."""

    code = "invalid_sampling"


class InvalidArgument(BadRequest):
    """A known key of a management request has a bad value."""

    code = "invalid_argument"


class InvalidTemplateKwargs(BadRequest):
    """`chat_template_kwargs` is no object, or contradicts a constant of the renderer family."""

    code = "invalid_template_kwargs"


class TemplateError(BadRequest):
    """The chat template refused the conversation, or is not append-only where it must be."""

    code = "template_error"


class NotAppendOnly(TemplateError):
    """What the template prints for new messages is no append of what it printed before."""


class InputIdsNotAllowed(BadRequest):
    """The client sent `input_ids`; only the server decides what the engine is fed."""

    code = "input_ids_not_allowed"


class NNotSupported(BadRequest):
    """`n` above 1: one request is one generation."""

    code = "n_not_supported"


class RoleNotAppendable(BadRequest):
    """A new message has a role that the renderer cannot append to served tokens."""

    code = "role_not_appendable"


class RollbackTooDeep(BadRequest):
    """Policy `rollback`: the request would discard more generated checkpoints than allowed."""

    code = "rollback_too_deep"


class ContextLengthExceeded(BadRequest):
    """The prompt leaves no room for output."""

    code = "context_length_exceeded"


class UnsupportedContent(BadRequest):
    """A content part (image, audio) that neither renderer nor engine can take."""

    code = "unsupported_content"


class InvalidHost(BadRequest):
    """The Host header is not in ALLOWED_HOSTS."""

    code = "invalid_host"


class Unauthorized(TitoError):
    """No key, or a key that opens nothing."""

    status = 401
    code = "unauthorized"


class ForbiddenOrigin(TitoError):
    """A browser page of another origin called while authentication is off."""

    status = 403
    code = "forbidden_origin"


class NotFound(TitoError):
    """No such resource, or a path that is not proxied."""

    status = 404
    code = "not_found"


class SessionNotFound(TitoError):
    """Unknown, deleted, or another key's session."""

    status = 404
    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session not found: session_id={session_id}")


class MethodNotAllowed(TitoError):
    """The path exists, the method does not."""

    status = 405
    code = "method_not_allowed"


class Conflict(TitoError):
    """The request contradicts what is stored; nothing was changed."""

    status = 409
    code = "conflict"


class TruncatedGeneration(Conflict):
    """The matched node was cut by length and `on_truncated=refuse`."""

    code = "truncated_generation"


class NonlinearHistory(Conflict):
    """Policy `linear` with `on_nonlinear=error`.

    cause: what differed where the messages went on, and only the head did not.
    """

    code = "nonlinear_history"
    cause: str | None = None


class IdempotencyConflict(Conflict):
    """The same Idempotency-Key came with another body."""

    code = "idempotency_conflict"


class NodeLimit(Conflict):
    """The session holds as many nodes as it may."""

    code = "node_limit"


class SessionClosed(Conflict):
    """The session was finished; it no longer serves turns."""

    code = "session_closed"


class BodyTooLarge(TitoError):
    """The body exceeds TITO_MAX_BODY_MB."""

    status = 413
    code = "body_too_large"


class UnsupportedMediaType(TitoError):
    """A content type other than JSON."""

    status = 415
    code = "unsupported_media_type"


class SamplesFailed(TitoError):
    """Sample assembly or one of its hooks refused."""

    status = 422
    code = "samples_failed"


class MaxTurnsExceeded(TitoError):
    """The session has had as many turns as it may."""

    status = 429
    code = "max_turns_exceeded"


class RateLimited(TitoError):
    """Too many requests with one key."""

    status = 429
    code = "rate_limited"
    retryable = True
    retry_after_s = 1


class Overloaded(TitoError):
    """Too many generations in flight in this process."""

    status = 429
    code = "overloaded"
    retryable = True
    retry_after_s = 1


class UnrecordedReply(TitoError):
    """Storing a reply failed as nothing should; it is kept beside the tree, which is as it was."""


class PrefixMismatch(TitoError):
    """The tokens to commit do not extend the stored checkpoint."""

    code = "prefix_mismatch"


class MatcherRaised(TitoError):
    """A message matcher raised an exception."""

    code = "matcher_raised"

    def __init__(self) -> None:
        super().__init__("session message matcher raised an exception")


class MatcherContract(TitoError):
    """A message matcher returned something that is no bool."""

    code = "matcher_contract"

    def __init__(self, returned: object) -> None:
        super().__init__(f"session message matcher must return bool, got {type(returned).__name__}")


class UpstreamError(TitoError):
    """The engine failed or answered something that must not be stored."""

    status = 502
    code = "upstream_invalid_reply"
    answer: bytes | None = None
    """The 200 that was refused, as it came: nothing that was generated is lost."""


class UpstreamUnreachable(UpstreamError):
    """No connection, or the connection broke before a full answer."""

    code = "upstream_unreachable"
    retryable = True
    retry_after_s = 1


class UpstreamTimeout(UpstreamError):
    """No full answer within TITO_ENGINE_TIMEOUT."""

    code = "upstream_timeout"
    retryable = True
    retry_after_s = 1


class UpstreamInvalidReply(UpstreamError):
    """A 200 whose body is not what the engine's protocol promises; the text names the field."""


class UpstreamMissingTokenIds(UpstreamError):
    """A 200 without token ids or logprobs."""

    code = "upstream_missing_token_ids"


class UpstreamNullContent(UpstreamError):
    """A 200 whose message content is null where the engine promises text."""

    code = "upstream_null_content"


class UpstreamTokenCountMismatch(UpstreamError):
    """Ids, logprobs and counted tokens disagree."""

    code = "upstream_token_count_mismatch"


class UpstreamInvalidLogprob(UpstreamError):
    """A logprob that is null, not a number, NaN or infinite."""

    code = "upstream_invalid_logprob"


class EngineTokenMismatch(UpstreamError):
    """The engine counts other prompt tokens than it was sent, or samples ids outside the vocabulary."""

    code = "engine_token_mismatch"


class UpstreamStatus(TitoError):
    """The engine answered with a status other than 200; passed through as it came.

    body: the bytes received. headers: the engine's response headers, hop-by-hop ones included.
    """

    code = "upstream_status"
    prompt_tokens: int | None = None
    """Ids that the engine was sent."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(f"engine answered status {status}")
        self.status = status
        self.body = body
        self.headers = headers
        self.retryable = status in (408, 429) or status >= 500


class Paused(TitoError):
    """Generation is held for a weight update and the waiting room is full."""

    status = 503
    code = "paused"
    retryable = True
    retry_after_s = 5


SHUT_DOWN = "the server shut down before the turn had ended"
"""Why a turn was cancelled that took longer than a shutdown may."""


class Draining(TitoError):
    """This process is shutting down."""

    status = 503
    code = "draining"
    retryable = True
    retry_after_s = 1


class NotReady(TitoError):
    """A part this request needs (database, tokenizer, engine) is not up."""

    status = 503
    code = "not_ready"
    retryable = True
    retry_after_s = 2


def refused_answer(error: TitoError) -> bytes | None:
    """The generation that an error refused; None where there was none."""
    return error.answer if isinstance(error, UpstreamError) else None
