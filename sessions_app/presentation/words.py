"""The closed lists as the screens show them: tone and meaning. The tone only repeats what the word says."""

from sessions_app.history.causes import AttachKind

KIND_TONES = {
    AttachKind.ROOT: "plain",
    AttachKind.APPEND: "good",
    AttachKind.RETRY: "warn",
    AttachKind.FORK: "warn",
    AttachKind.ROLLBACK: "bad",
    AttachKind.RESET: "bad",
    AttachKind.PASSTHROUGH: "bad",
}

STATES = {
    "intent": ("warn", "Sent to the engine; nothing came back yet."),
    "answered": ("warn", "The engine answered; not stored yet."),
    "committed": ("good", "Its reply is a node; no later request contained the reply yet."),
    "confirmed": ("good", "A later request contained the reply: the client has it."),
    "refused": ("bad", "Refused by us before the engine was called."),
    "upstream_error": ("bad", "The engine failed or answered nonsense."),
    "cancelled": ("bad", "The client left and TITO_ON_DISCONNECT is abort."),
    "late": ("bad", "Generated, but attached nowhere: the session had closed or its head had moved."),
    "replayed": ("plain", "Answered with a stored reply."),
    "lost": ("bad", "The process that held it died."),
}
"""Tone and meaning of each record state."""

EVENT_KINDS = {
    "fork": ("warn", "The request branched from a node that had been continued, or began a further root."),
    "retry": ("warn", "The request of a stored node was sent again."),
    "rollback": ("bad", "The active path went back to an earlier checkpoint."),
    "reset": ("bad", "Policy linear: a new root, healing starts anew."),
    "passthrough": ("bad", "Policy linear: healing ended for the session."),
    "refused": ("bad", "The request was refused because of its history."),
    "late": ("bad", "A generated reply was attached nowhere."),
    "trim": ("plain", "Ambiguous boundary ids were dropped."),
    "rewrite": ("plain", "A harness profile rewrote the replay for matching."),
    "notice": ("plain", "Something changed that does not fork."),
}
"""Tone and meaning of each kind of event."""
