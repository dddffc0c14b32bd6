"""URLs answered by sessions_app. The table serves Django's resolver and the direct dispatch of the ASGI
entry.
"""

from django.urls import URLPattern, URLResolver, re_path

from sessions_app.api.anthropic import (
    AttemptCountTokensView,
    AttemptMessagesView,
    CountTokensView,
    KeyCountTokensView,
    KeyMessagesView,
    MessagesView,
)
from sessions_app.api.chat import AttemptChatView, ChatView, KeyChatView
from sessions_app.api.direct import DirectView
from sessions_app.api.dump import SessionDumpView
from sessions_app.api.exports import ExportCancelView, ExportResumeView, ExportsView, ExportView
from sessions_app.api.health import HealthView, ReadyView
from sessions_app.api.inspect import (
    EventsView,
    NodesView,
    NodeView,
    RecordsView,
    SessionDetailView,
    SessionListView,
)
from sessions_app.api.keys import KeysView
from sessions_app.api.lifecycle import FinishView
from sessions_app.api.metrics import MetricsView
from sessions_app.api.models import (
    AttemptModelsView,
    AttemptModelView,
    KeyModelsView,
    KeyModelView,
    ModelsView,
    ModelView,
)
from sessions_app.api.otlp import (
    AttemptLogsView,
    AttemptTracesView,
    KeyLogsView,
    KeyTracesView,
    OtlpView,
    SessionLogsView,
    SessionTracesView,
)
from sessions_app.api.proxy import ProxyView
from sessions_app.api.responses import AttemptResponsesView, KeyResponsesView, ResponsesView
from sessions_app.api.rewards import RewardsView
from sessions_app.api.samples import SamplesView
from sessions_app.api.sessions import SessionsView, SessionView
from sessions_app.api.stored_responses import (
    AttemptCancelResponseView,
    AttemptInputItemsView,
    AttemptStoredResponseView,
    CancelResponseView,
    InputItemsView,
    KeyCancelResponseView,
    KeyInputItemsView,
    KeyStoredResponseView,
    StoredResponseView,
)
from sessions_app.api.stream import SamplesAckView, SamplesStreamView
from sessions_app.api.weights import PauseView, ResumeView, VersionView

_SESSION = r"sessions/(?P<session_id>[^/]+)"
_ATTEMPT = r"rollout/(?P<rollout_id>[^/]+)/attempt/(?P<attempt_id>[^/]+)"
_MODEL = r"/v1/models/(?P<model>.+)"
_RESPONSE = r"/v1/responses/(?P<response_id>[^/]+)"

ROUTES: list[tuple[str, type[DirectView]]] = [
    (r"health", HealthView),
    (r"ready", ReadyView),
    (r"sessions", SessionsView),
    (_SESSION, SessionView),
    (_SESSION + r"/v1/chat/completions", ChatView),
    (r"v1/chat/completions", KeyChatView),
    (_ATTEMPT + r"/v1/chat/completions", AttemptChatView),
    (_SESSION + r"/v1/messages", MessagesView),
    (r"v1/messages", KeyMessagesView),
    (_ATTEMPT + r"/v1/messages", AttemptMessagesView),
    (_SESSION + r"/v1/messages/count_tokens", CountTokensView),
    (r"v1/messages/count_tokens", KeyCountTokensView),
    (_ATTEMPT + r"/v1/messages/count_tokens", AttemptCountTokensView),
    (_SESSION + r"/v1/responses", ResponsesView),
    (r"v1/responses", KeyResponsesView),
    (_ATTEMPT + r"/v1/responses", AttemptResponsesView),
    (_SESSION + _RESPONSE, StoredResponseView),
    (_RESPONSE.lstrip("/"), KeyStoredResponseView),
    (_ATTEMPT + _RESPONSE, AttemptStoredResponseView),
    (_SESSION + _RESPONSE + r"/input_items", InputItemsView),
    (_RESPONSE.lstrip("/") + r"/input_items", KeyInputItemsView),
    (_ATTEMPT + _RESPONSE + r"/input_items", AttemptInputItemsView),
    (_SESSION + _RESPONSE + r"/cancel", CancelResponseView),
    (_RESPONSE.lstrip("/") + r"/cancel", KeyCancelResponseView),
    (_ATTEMPT + _RESPONSE + r"/cancel", AttemptCancelResponseView),
    (_SESSION + r"/v1/models", ModelsView),
    (r"v1/models", KeyModelsView),
    (_ATTEMPT + r"/v1/models", AttemptModelsView),
    (_SESSION + _MODEL, ModelView),
    (_MODEL.lstrip("/"), KeyModelView),
    (_ATTEMPT + _MODEL, AttemptModelView),
    (_SESSION + r"/v1/traces", SessionTracesView),
    (r"v1/traces", KeyTracesView),
    (_ATTEMPT + r"/v1/traces", AttemptTracesView),
    (_SESSION + r"/v1/logs", SessionLogsView),
    (r"v1/logs", KeyLogsView),
    (_ATTEMPT + r"/v1/logs", AttemptLogsView),
    (_SESSION + r"/samples", SamplesView),
    (_SESSION + r"/rewards", RewardsView),
    (_SESSION + r"/finish", FinishView),
    (r"metrics", MetricsView),
    (r"api/sessions", SessionListView),
    (r"api/sessions/(?P<session_id>[^/]+)", SessionDetailView),
    (r"api/sessions/(?P<session_id>[^/]+)/keys", KeysView),
    (r"api/sessions/(?P<session_id>[^/]+)/nodes", NodesView),
    (r"api/sessions/(?P<session_id>[^/]+)/records", RecordsView),
    (r"api/sessions/(?P<session_id>[^/]+)/events", EventsView),
    (r"api/nodes/(?P<node_id>[^/]+)", NodeView),
    (r"api/sessions/(?P<session_id>[^/]+)/dump", SessionDumpView),
    (r"exports", ExportsView),
    (r"exports/(?P<job_id>[^/]+)", ExportView),
    (r"exports/(?P<job_id>[^/]+)/cancel", ExportCancelView),
    (r"exports/(?P<job_id>[^/]+)/resume", ExportResumeView),
    (r"samples/stream", SamplesStreamView),
    (r"samples/ack", SamplesAckView),
    (r"admin-api/pause", PauseView),
    (r"admin-api/resume", ResumeView),
    (r"admin-api/weights", VersionView),
    (_SESSION + r"/(?P<path>.+)", ProxyView),
]
"""Patterns and views; the first that matches answers."""

SLASHED = [(pattern + "/", view) for pattern, view in ROUTES if issubclass(view, OtlpView)]
"""The same paths as exporters may spell them; they count a redirect as success and lose what they sent."""

urlpatterns: list[URLPattern | URLResolver] = [
    *(re_path(rf"^{pattern}$", view.as_view(schema=None)) for pattern, view in SLASHED),
    *(re_path(rf"^{pattern}$", view.as_view()) for pattern, view in ROUTES),
]
