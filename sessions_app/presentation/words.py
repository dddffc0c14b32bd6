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
    "late": (
        "bad",
        "Generated, but attached nowhere: the session had closed, its head had moved, or storing it failed.",
    ),
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

MASK_REASONS = {
    "trained_elsewhere": "Another row owns the completion.",
    "logprob": "Its logprob is missing, not finite, or not the one the engine reported.",
    "context": "What stands before it cannot be proven to be what the engine was shown.",
    "postprocessor": "The post-processor masked it.",
    "boundary_trim": "The next prompt put another id in its place.",
    "realigned": "The next, un-healed prompt put its own spelling in its place.",
    "max_seq_len": "The token budget ends the row before it.",
    "after_truncated": "An earlier turn was cut by length and the row ends there.",
    "after_aborted": "An earlier turn was aborted.",
    "after_pending": "An earlier turn ended with a finish reason that completes nothing.",
    "replay_missing": "Its turn, or one before it, came without replay rows.",
    "postprocessor_dropped": "The post-processor left out every row it stands in.",
    "superseded": "The same request was answered again later.",
    "rolled_back": "It left the active path.",
    "not_picked": "The picker kept no row it stands in.",
}
"""Why a sampled id is not trained."""

JOB_TONES = {"pending": "warn", "running": "warn", "done": "good", "failed": "bad", "cancelled": "plain"}

DRIFT = {
    "same": ("good", "A fresh render gives the served ids."),
    "expected": ("plain", "Only text of assistant turns differs, as it does after healing."),
    "defect": ("bad", "Something differs that no model sampled: special tokens, or text of other roles."),
    "unknown": ("warn", "Nothing can be said; the reason stands with it."),
}
"""Tone and meaning of each outcome of the drift audit."""
