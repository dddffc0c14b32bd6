"""Every TITO_… setting, typed, in one frozen value. The table of the README is checked against it by a test.

Invariant: a Configuration that exists is a valid one; what is nonsense stopped the start.
"""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tito_project.env import Environment

HISTORY_POLICIES = ("rollback", "tree", "linear")
ON_NONLINEAR = ("reset", "error", "passthrough")
RETRY_POLICIES = ("resample", "replay")
ON_TRUNCATED = ("refuse", "close", "join")
LOG_FORMATS = ("line", "json")
BACKENDS = ("sglang", "sglang-generate", "vllm", "vllm-completions", "vllm-chat", "local", "demo")
ALERTS = (
    "fork", "heal", "rollback", "retry", "reset", "truncated", "ill_formed", "glue_unresolved",
    "upstream_error", "refused", "unattached",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the operator set. Field names are the variable names in lower case, without `TITO_`."""

    home: Path
    bind: str
    port: int

    model: str
    """Tokenizer folder or hub name; "" = the demo tokenizer shipped with the project."""
    chat_template: Path | None
    chat_template_kwargs: dict[str, Any]
    renderer: str
    tool_parser: str
    """How calls are read from ids; "" = as the renderer's family does, else `qwen3`."""
    reasoning_parser: str
    """The same for reasoning; "" = as the family does, else `think`."""

    backend: str
    backend_url: tuple[str, ...]
    engine_timeout: float
    """Seconds for one generation, connect included."""
    lora_name: str | None

    history_policy: str
    on_nonlinear: str
    max_rollback: int
    message_matcher: str
    retry_policy: str
    on_truncated: str | None
    """None = by policy: refuse (tree), close (linear), join (rollback)."""
    healing: bool
    harness: str | None
    harness_profiles: dict[str, Any]
    """Profiles of the operator's own: name to a list of rules."""
    max_context_tokens: int | None
    max_turns: int | None
    max_nodes: int
    idle_timeout_s: float | None

    auth: str
    allow_open: bool
    admin_token: str | None
    auto_sessions: bool
    key_rate: float | None
    """Requests a second and key; None = no limit."""
    max_body_mb: int
    max_in_flight: int
    max_in_flight_per_session: int
    read_timeout_s: float
    """Longest wait for a request to arrive whole, and for a client to take a piece of an answer."""
    behind_tls: bool
    """A proxy in front speaks TLS and says so in X-Forwarded-Proto."""
    engine_hosts: tuple[str, ...]
    """Hosts and networks that profiles edited in the admin may name; () = any outside a few ranges."""

    on_disconnect: str
    keepalive_s: float
    json_keepalive: bool
    idempotency_ttl_s: int
    replay_window_s: int
    proxy_paths: tuple[str, ...]
    proxy_credentials: bool

    sample_picker: str
    sample_postprocessor: str
    export_url: str
    export_every_s: float | None
    """Seconds between periodic exports; None = none are made."""
    export_request: dict[str, Any]
    """Format, shape, filters and rules of periodic exports."""
    fork_threshold_tokens: int | None
    retention_days: int | None
    audit_days: int
    """Days that reads of conversations in the admin stay on record."""
    debug_messages: bool
    routing_replay: bool
    indexer_replay: bool
    addition_r3: bool
    r3_layers: int | None

    drift_audit_nodes: int
    """Leaves that one run of the drift audit compares; 0 = no audit."""
    metrics_open: bool
    otlp_endpoint: str | None
    """Where our own spans go, as OTLP over HTTP; None = none are made."""
    otlp_headers: dict[str, Any]
    """Sent along, for instance a collector's key."""
    otlp_every_s: float
    log_format: str
    """`line` for eyes, `json` for collectors: then each turn is a line too."""
    alerts: dict[str, float]
    """Rates above which the health page raises an alarm, by metric."""
    instance_id: str
    checkpoint_cache_mb: int
    """Byte budget of the in-process cache of immutable token arrays."""
    db_pool: int
    """Most Postgres connections of one web process's hot path."""
    prepared_statements: bool
    """Off for a connection pooler that knows none."""
    lease_s: float
    """A web process that does not say for so long that it lives counts as dead."""
    drain_s: float
    """Longest wait for generations in flight at shutdown."""

    pinned: frozenset[str]
    """Names of the variables that were set."""

    @property
    def max_body_bytes(self) -> int:
        """The limit of a request body in bytes."""
        return self.max_body_mb * 1024 * 1024

    def truncation_rule(self, policy: str) -> str:
        """`on_truncated` in force for a session of this policy that names none."""
        return self.on_truncated or {"tree": "refuse", "linear": "close", "rollback": "join"}[policy]


def read(env: Environment) -> Configuration:
    """The configuration of an environment. Raises ImproperlyConfigured on the first nonsense value."""
    home = Path(env.text("TITO_HOME", ".tito")).absolute()
    template = env.optional_text("TITO_CHAT_TEMPLATE")
    on_truncated = env.text("TITO_ON_TRUNCATED", "")
    if on_truncated:
        env.choice("TITO_ON_TRUNCATED", "", ON_TRUNCATED)
    return Configuration(
        home=home,
        bind=env.text("TITO_BIND", "127.0.0.1"),
        port=env.integer("TITO_PORT", 8000, least=0, most=65535),
        model=env.text("TITO_MODEL", ""),
        chat_template=Path(template) if template else None,
        chat_template_kwargs=env.json_object("TITO_CHAT_TEMPLATE_KWARGS"),
        renderer=env.text("TITO_RENDERER", "auto"),
        tool_parser=env.text("TITO_TOOL_PARSER", ""),
        reasoning_parser=env.text("TITO_REASONING_PARSER", ""),
        backend=env.choice("TITO_BACKEND", "demo", BACKENDS),
        backend_url=env.listing("TITO_BACKEND_URL", ""),
        engine_timeout=env.number("TITO_ENGINE_TIMEOUT", 600.0, least=0.001),
        lora_name=env.optional_text("TITO_LORA_NAME"),
        history_policy=env.choice("TITO_HISTORY_POLICY", "tree", HISTORY_POLICIES),
        on_nonlinear=env.choice("TITO_ON_NONLINEAR", "reset", ON_NONLINEAR),
        max_rollback=env.integer("TITO_MAX_ROLLBACK", 1),
        message_matcher=env.text("TITO_MESSAGE_MATCHER", "strict"),
        retry_policy=env.choice("TITO_RETRY_POLICY", "resample", RETRY_POLICIES),
        on_truncated=on_truncated or None,
        healing=env.flag("TITO_HEALING", True),
        harness=env.optional_text("TITO_HARNESS"),
        harness_profiles=env.json_object("TITO_HARNESS_PROFILES"),
        max_context_tokens=env.optional_integer("TITO_MAX_CONTEXT_TOKENS", least=1),
        max_turns=env.optional_integer("TITO_MAX_TURNS", least=1),
        max_nodes=env.integer("TITO_MAX_NODES", 100_000, least=1),
        idle_timeout_s=env.optional_number("TITO_IDLE_TIMEOUT_S", least=1.0),
        auth=env.choice("TITO_AUTH", "off", ("off", "token")),
        allow_open=env.flag("TITO_ALLOW_OPEN", False),
        admin_token=env.optional_text("TITO_ADMIN_TOKEN"),
        auto_sessions=env.flag("TITO_AUTO_SESSIONS", False),
        key_rate=env.optional_number("TITO_KEY_RATE", least=0.001),
        max_body_mb=env.integer("TITO_MAX_BODY_MB", 64, least=1, most=1024),
        max_in_flight=env.integer("TITO_MAX_IN_FLIGHT", 4096, least=1),
        max_in_flight_per_session=env.integer("TITO_MAX_IN_FLIGHT_PER_SESSION", 256, least=1),
        read_timeout_s=env.number("TITO_READ_TIMEOUT_S", 60.0, least=0.1),
        behind_tls=env.flag("TITO_BEHIND_TLS", False),
        engine_hosts=env.listing("TITO_ENGINE_HOSTS", ""),
        on_disconnect=env.choice("TITO_ON_DISCONNECT", "finish", ("finish", "abort")),
        keepalive_s=env.number("TITO_KEEPALIVE_S", 15.0, least=0.05),
        json_keepalive=env.flag("TITO_JSON_KEEPALIVE", False),
        idempotency_ttl_s=env.integer("TITO_IDEMPOTENCY_TTL_S", 86_400, least=1),
        replay_window_s=env.integer("TITO_REPLAY_WINDOW_S", 600, least=1),
        proxy_paths=env.listing("TITO_PROXY_PATHS", "tokenize,v1/embeddings"),
        proxy_credentials=env.flag("TITO_PROXY_CREDENTIALS", False),
        sample_picker=env.text("TITO_SAMPLE_PICKER", "drop_superseded"),
        sample_postprocessor=env.text("TITO_SAMPLE_POSTPROCESSOR", "default"),
        export_url=env.text("TITO_EXPORT_URL", str(home / "exports")),
        export_every_s=env.optional_number("TITO_EXPORT_EVERY_S", least=10.0),
        export_request=env.json_object("TITO_EXPORT_REQUEST"),
        fork_threshold_tokens=env.optional_integer("TITO_FORK_THRESHOLD_TOKENS"),
        retention_days=env.optional_integer("TITO_RETENTION_DAYS", least=1),
        audit_days=env.integer("TITO_AUDIT_DAYS", 90, least=1),
        debug_messages=env.flag("TITO_DEBUG_MESSAGES", False),
        routing_replay=env.flag("TITO_ROUTING_REPLAY", False),
        indexer_replay=env.flag("TITO_INDEXER_REPLAY", False),
        addition_r3=env.flag("TITO_ADDITION_R3", False),
        r3_layers=env.optional_integer("TITO_R3_LAYERS", least=1),
        drift_audit_nodes=env.integer("TITO_DRIFT_AUDIT_NODES", 500),
        metrics_open=env.flag("TITO_METRICS_OPEN", False),
        otlp_endpoint=env.optional_url("TITO_OTLP_ENDPOINT"),
        otlp_headers=env.json_object("TITO_OTLP_HEADERS"),
        otlp_every_s=env.number("TITO_OTLP_EVERY_S", 5.0, least=0.05),
        log_format=env.choice("TITO_LOG_FORMAT", "line", LOG_FORMATS),
        alerts=env.shares("TITO_ALERTS", ALERTS),
        instance_id=env.text("TITO_INSTANCE_ID", uuid.uuid4().hex),
        checkpoint_cache_mb=env.integer("TITO_CHECKPOINT_CACHE_MB", 256),
        db_pool=env.integer("TITO_DB_POOL", 16, least=1),
        prepared_statements=env.flag("TITO_PREPARED_STATEMENTS", True),
        lease_s=env.number("TITO_LEASE_S", 30.0, least=0.5),
        drain_s=env.number("TITO_DRAIN_S", 30.0),
        pinned=frozenset(env.pinned),
    )
