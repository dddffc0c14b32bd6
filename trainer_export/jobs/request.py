"""What an export is asked for: filters, rules, format, shape, destination. Checked before it is stored."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from sessions_app.errors import InvalidArgument
from tito_project.configuration import Configuration
from trainer_export.arguments import Arguments
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.values import FORMATS, SHAPES
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.spans.rules import TraceRules

SHARD_TOKENS = 16_000_000
_KEYS = ("path", "format", "shape", "filters", "rules")
_SEGMENT = re.compile(r"[A-Za-z0-9_=][A-Za-z0-9._=-]*\Z")


@dataclass(frozen=True, slots=True)
class ExportRules:
    """How rows are made; the same rules on the same input give the same bytes."""

    picker: str = "drop_superseded"
    postprocessor: str = "default"
    max_seq_len: int | None = None
    fork_threshold_tokens: int | None = None
    drift: bool = False
    """Render every path again, so that `tito_session_mismatch` stands in metadata. Slow."""
    shard_tokens: int = SHARD_TOKENS
    """Stored tokens after which a shard is full; a rollout group is never divided."""
    traces: Mapping[str, Any] = field(default_factory=dict)
    """Of the shapes that come from traces; see TraceRules."""

    @property
    def trace_rules(self) -> TraceRules:
        """Checked."""
        return TraceRules.of(Arguments(self.traces, "traces."))

    @classmethod
    def of(cls, arguments: Arguments, configuration: Configuration, *, allow_dotted: bool) -> "ExportRules":
        """The rules of a request; what it does not say is said by the settings. Raises InvalidArgument."""
        arguments.refuse_unknown(one.name for one in fields(cls))
        rules = cls(
            picker=arguments.text("picker", configuration.sample_picker) or "",
            postprocessor=arguments.text("postprocessor", configuration.sample_postprocessor) or "",
            max_seq_len=arguments.integer("max_seq_len", least=1),
            fork_threshold_tokens=arguments.integer("fork_threshold_tokens")
            if arguments.given("fork_threshold_tokens")
            else configuration.fork_threshold_tokens,
            drift=arguments.flag("drift"),
            shard_tokens=arguments.integer("shard_tokens", least=1) or SHARD_TOKENS,
            traces=arguments.mapping("traces") or {},
        )
        TraceRules.of(Arguments(rules.traces, "traces."))
        rules.check_hooks(configuration, allow_dotted=allow_dotted)
        return rules

    def check_hooks(self, configuration: Configuration, *, allow_dotted: bool) -> None:
        """Code is named by settings and operators only."""
        picker_trusted = allow_dotted or self.picker == configuration.sample_picker
        postprocessor_trusted = allow_dotted or self.postprocessor == configuration.sample_postprocessor
        try:
            resolve_hooks(self.picker, "default", allow_dotted=picker_trusted)
            resolve_hooks("keep_all", self.postprocessor, allow_dotted=postprocessor_trusted)
        except ValueError as error:
            raise InvalidArgument(str(error)) from None

    def as_json(self) -> dict[str, Any]:
        """For the job's row."""
        stored = asdict(self)
        return stored if self.traces else {name: stored[name] for name in stored if name != "traces"}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """An export to make."""

    destination: str
    format: str = "parquet"
    shape: str = "native"
    filters: Filters = field(default_factory=Filters)
    rules: ExportRules = field(default_factory=ExportRules)


def read_request(arguments: Arguments, configuration: Configuration) -> ExportRequest:
    """The export that an HTTP request describes. Raises InvalidArgument."""
    arguments.refuse_unknown(_KEYS)
    filters = Arguments.of(arguments.mapping("filters") or {}, "filters", "filters.")
    rules = Arguments.of(arguments.mapping("rules") or {}, "rules", "rules.")
    return ExportRequest(
        destination=below(configuration.export_url, arguments.text("path")),
        format=arguments.choice("format", FORMATS, "parquet"),
        shape=arguments.choice("shape", SHAPES, "native"),
        filters=Filters.of(filters),
        rules=ExportRules.of(rules, configuration, allow_dotted=False),
    )


def below(base: str, path: str | None) -> str:
    """A folder below the configured one. Raises InvalidArgument for a path that could lead elsewhere."""
    if path is None:
        raise InvalidArgument("path must be given: a folder relative to TITO_EXPORT_URL")
    if not all(_SEGMENT.match(segment) for segment in path.split("/")):
        raise InvalidArgument(
            "path must be a relative folder: segments of letters, digits, '.', '_', '=' and '-', "
            "none of which begins with a dot"
        )
    return f"{base.rstrip('/')}/{path}"
