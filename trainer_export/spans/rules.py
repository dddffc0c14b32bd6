"""How traces are converted and cut into rows: the options of exports and of the command."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessions_app.errors import InvalidArgument
from trainer_export.arguments import Arguments
from trainer_export.traces.adapters.better import BETTER, COMPAT
from trainer_export.traces.compat import ADAPTERS, PROXY, TRACER, TRAJECTORY
from trainer_export.traces.rows.branches import EqualPrompts

MAX_PROMPT, MAX_RESPONSE = 2048, 8192

_SHARED = ("llm_call_match", "agent_match", "exclude_llm_call_in_reward")
_OF_ADAPTER = {
    TRACER: (*_SHARED, "repair_hierarchy", "reward_match", "_skip_empty_token_spans"),
    TRAJECTORY: (*_SHARED, "dedup_llm_call", "reward_match", "_skip_empty_token_spans"),
    PROXY: (),
}
_OF_BETTER = (*_SHARED, "repair_hierarchy")
_TEXTS = ("llm_call_match", "agent_match", "reward_match")
_FLAGS = ("exclude_llm_call_in_reward", "repair_hierarchy", "dedup_llm_call", "_skip_empty_token_spans")


@dataclass(frozen=True, slots=True)
class TraceRules:
    """Checked options."""

    mode: str = COMPAT
    adapter: str | None = None
    """None: the tracer's where spans were received, else the proxy's."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the adapter, as `manage.py triplets` names them."""
    max_prompt_length: int = MAX_PROMPT
    max_response_length: int = MAX_RESPONSE
    reward_fillna_value: float = 0.0
    equal_prompts: EqualPrompts = EqualPrompts.ALL
    """`better`, shape trajectory: which calls with the very same prompt are rows."""

    @property
    def better(self) -> dict[str, Any]:
        """The options that mode `better` knows."""
        return {name: value for name, value in self.options.items() if name in _OF_BETTER}

    def compat(self, adapter: str) -> dict[str, Any]:
        """The options that an adapter knows."""
        return {name: value for name, value in self.options.items() if name in _OF_ADAPTER[adapter]}

    @classmethod
    def of(cls, arguments: Arguments) -> "TraceRules":
        """Raises InvalidArgument for what is unknown or of the wrong kind."""
        arguments.refuse_unknown(
            ("mode", "adapter", "max_prompt_length", "max_response_length", "reward_fillna_value",
             "equal_prompts", *_TEXTS, *_FLAGS)
        )  # fmt: skip
        adapter = arguments.text("adapter")
        if adapter is not None and adapter not in ADAPTERS:
            raise InvalidArgument(f"traces.adapter must be one of {', '.join(ADAPTERS)}")
        options: dict[str, Any] = {name: arguments.text(name) for name in _TEXTS if arguments.given(name)}
        for name in ("llm_call_match", "agent_match"):
            _check_pattern(name, options.get(name))
        options |= {name: arguments.flag(name) for name in _FLAGS if arguments.given(name)}
        return cls(
            mode=arguments.choice("mode", (COMPAT, BETTER), COMPAT),
            adapter=adapter,
            options=options,
            max_prompt_length=arguments.integer("max_prompt_length", least=1) or MAX_PROMPT,
            max_response_length=arguments.integer("max_response_length", least=1) or MAX_RESPONSE,
            reward_fillna_value=arguments.number("reward_fillna_value", 0.0) or 0.0,
            equal_prompts=EqualPrompts(
                arguments.choice("equal_prompts", tuple(EqualPrompts), EqualPrompts.ALL)
            ),
        )


def _check_pattern(name: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise InvalidArgument(f"traces.{name} is no regular expression: {error}") from None
