"""OpenAI Chat Completions, by session, by key and by attempt."""

from sessions_app.api.addressing import BY_ATTEMPT, BY_KEY, BY_URL
from sessions_app.api.proxy import ProxyView
from sessions_app.api.turn import TurnView
from sessions_app.protocols.openai_chat import CHAT


class ChatView(TurnView, ProxyView):
    """POST /sessions/{id}/v1/chat/completions: the reference's path, unless the policy is `linear`.

    Other methods are the raw proxy's.
    """

    protocol = CHAT
    addressing = BY_URL
    path = CHAT.path.lstrip("/")
    reference = True


class KeyChatView(TurnView):
    """POST /v1/chat/completions."""

    protocol = CHAT
    addressing = BY_KEY


class AttemptChatView(TurnView):
    """POST /rollout/{rollout_id}/attempt/{attempt_id}/v1/chat/completions."""

    protocol = CHAT
    addressing = BY_ATTEMPT
