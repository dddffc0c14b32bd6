"""Why a turn attached where it did: the closed lists of attach kinds and causes.

Every fork, rollback, reset, passthrough, refused extension and trim carries one of these. A new row joins
the code, the documentation and the admin together.
"""

from enum import StrEnum
from typing import Self


class _Explained(StrEnum):
    """Names that carry their meaning in one sentence, for the admin and the documentation."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class AttachKind(_Explained):
    """How a turn's node hangs in the forest."""

    ROOT = "root", "The first node of a conversation that shares nothing with the stored ones."
    APPEND = "append", "Continues its parent, which had no child."
    RETRY = "retry", "The request of a stored node, sent again: its sibling."
    FORK = "fork", "Branches from a node that has been continued already, or is a root that is not the first."
    ROLLBACK = "rollback", "Policy `rollback`: the active path went back to an earlier checkpoint."
    RESET = "reset", "Policy `linear`: a new root; healing starts anew from it."
    PASSTHROUGH = (
        "passthrough",
        "Policy `linear`: healing ended for this session; rendered from the client's messages.",
    )


class Cause(_Explained):
    """Why a turn was no plain continuation, or what else happened to it."""

    FIRST_TURN = "first_turn", "The session was empty; no event is written."
    HISTORY_SHORTER = "history_shorter", "A prefix of a stored path was sent again."
    MESSAGE_EDITED = (
        "message_edited",
        "A message that is neither system nor a reply came back with another content.",
    )
    MESSAGE_REMOVED = (
        "message_removed",
        "A stored message is missing in the replay, and what follows it is there.",
    )
    MESSAGE_INSERTED = "message_inserted", "The replay has a message between two that were neighbours."
    ASSISTANT_EDITED = "assistant_edited", "A reply came back changed."
    TOOL_ARGUMENTS_SPELLING = (
        "tool_arguments_spelling",
        "Tool arguments came back in another spelling; a looser built-in matcher would have matched.",
    )
    REASONING_DROPPED = "reasoning_dropped", "A reply came back without its reasoning."
    CONTENT_BLANK_DIFFERENCE = "content_blank_difference", "A content differs in white space only."
    ROLE_CHANGED = "role_changed", "A message came back unchanged but for its role."
    SYSTEM_CHANGED = "system_changed", "The system prompt was changed, added or dropped."
    UNRELATED_HISTORY = "unrelated_history", "Nothing but a system prompt is shared with any stored path."
    SUBAGENT = "subagent", "An unrelated history that a sub-agent sent."
    SIDE_CALL = (
        "side_call",
        "An unrelated history that belongs to a side call: a title, a quota probe, a summary.",
    )
    COMPACTION = "compaction", "An unrelated history that starts from a summary of a stored one."
    TWIN = "twin", "A sibling with the same messages, reply included, exists."
    RETRY = "retry", "The same request was sent again after its reply."
    TOOLS_CHANGED = (
        "tools_changed",
        "The tools differ from those at the head of the matched path; key order does not count.",
    )
    TEMPLATE_KWARGS_CHANGED = (
        "template_kwargs_changed",
        "Template kwargs that change the rendered head differ.",
    )
    TEMPLATE_CHANGED = "template_changed", "The chat template differs."
    TOKENIZER_CHANGED = "tokenizer_changed", "The tokenizer differs."
    MODEL_CHANGED = "model_changed", "The request names another model; never forks."
    ADAPTER_CHANGED = "adapter_changed", "The request names another adapter; never forks."
    ROLE_NOT_APPENDABLE = "role_not_appendable", "A new message has a role that the renderer cannot append."
    CLOSE_UNRESOLVED = "close_unresolved", "The template's close of the last turn could not be isolated."
    TEMPLATE_NOT_APPEND_ONLY = (
        "template_not_append_only",
        "The template renders earlier turns anew, for instance without their reasoning.",
    )
    RENDERER_REFUSED = "renderer_refused", "The renderer cannot continue this history token by token."
    ENGINE_RERENDER = (
        "engine_rerender",
        "The engine renders the messages itself and its ids do not continue the served ones.",
    )
    TRUNCATED_PARENT = "truncated_parent", "The matched generation was cut by length."
    CONCURRENT = "concurrent", "Another turn was committed while this one was generating."
    LATE_REPLY = (
        "late_reply",
        "The reply came after its session closed or its head moved: kept, not attached.",
    )
    NODE_LIMIT = "node_limit", "The session holds as many nodes as it may."
    HARNESS_REWRITE = "harness_rewrite", "A harness profile rewrote the replay for matching."
    BOUNDARY_TRIM = "boundary_trim", "Ambiguous boundary ids of the matched path were dropped."
    ILL_FORMED = "ill_formed", "The reply breaks the grammar of tool calls or reasoning; kept as plain text."
