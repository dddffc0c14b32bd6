"""Picker and post-processor as configured, and the contract around them.

A name without a dot is a built-in, one with a dot is imported. What does not resolve to a synchronous
callable is refused before any sample is made; what a hook raises or breaks becomes one SamplesFailed that
names both hooks.
"""

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sessions_app.errors import SamplesFailed
from trainer_export.samples.pickers import PICKERS, Picker
from trainer_export.samples.postprocessors import PATTERNED, POSTPROCESSORS, Postprocessor
from trainer_export.samples.returned import check_returned, facts_of
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject

_LONGEST_TEXT = 10_000
MOST_ROWS = 2**20
"""Of one session: what numbers of rows have room for."""
Hook = TypeVar("Hook", Picker, Postprocessor)


@dataclass(frozen=True, slots=True)
class HookResult:
    """What a picker kept and a post-processor made of it."""

    picked: frozenset[int]
    """Leaves, by seq."""
    rows: list[Sample]


@dataclass(frozen=True, slots=True)
class Hooks:
    """A resolved pair, with the names error texts show."""

    picker_name: str
    picker: Picker
    postprocessor_name: str
    postprocessor: Postprocessor

    def run(self, samples: list[Sample], session_metadata: JsonObject) -> HookResult:
        """Picks and post-processes. Raises SamplesFailed for whatever a hook does wrong."""
        facts = {id(sample): facts_of(sample) for sample in samples}
        try:
            picked = pick(self.picker, samples, session_metadata)
            known = {facts[id(sample)].leaf.last.seq: facts[id(sample)] for sample in picked}
            rows = _returned(self.postprocessor(picked, session_metadata))
            for row in rows:
                check_returned(row, known)
        except BaseException as error:  # hooks run in threads: what ends a thread must not end the server
            raise SamplesFailed(
                f"session sample hook failed (picker={self.picker_name}, "
                f"postprocessor={self.postprocessor_name}): {_text_of(error)}"
            ) from error
        return HookResult(frozenset(known), rows)


def _text_of(error: BaseException) -> str:
    """What an exception says, cut; its name where it cannot even say it."""
    try:
        return str(error)[:_LONGEST_TEXT]
    except Exception:
        return type(error).__name__


def pick(picker: Picker, samples: list[Sample], session_metadata: JsonObject) -> list[Sample]:
    """A picker's choice, if it is one. Raises ValueError and TypeError in the contract's words."""
    picked = _iterated(picker(list(samples), session_metadata), len(samples))
    chosen = [id(sample) for sample in picked]
    if len(set(chosen)) != len(chosen) or not {id(sample) for sample in samples}.issuperset(chosen):
        raise ValueError(
            "pick hook must return a subset of its input samples without duplicates (pure selection)"
        )
    return picked


def _iterated(result: Any, most: int) -> list[Any]:
    """The items of a result, one more than it may have at most: a generator need not end."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("hook returned a coroutine; a synchronous hook is required")
    return list(islice(result, most + 1))


def _returned(result: Any) -> list[Any]:
    """What a post-processor returned; None and other empty values mean no rows. Raises ValueError for too
    many."""
    rows = _iterated(result, MOST_ROWS) if inspect.iscoroutine(result) or result else []
    if len(rows) > MOST_ROWS:
        raise ValueError(f"postprocessor returned more than {MOST_ROWS} samples")
    return rows


def resolve_hooks(picker: str, postprocessor: str, *, allow_dotted: bool = True) -> Hooks:
    """The hooks of two names. Raises ValueError that names the setting, the choices and the cause.

    `allow_dotted=False` is for names that came with a request: code is named by settings and operators only.
    """
    return Hooks(
        picker,
        _resolve("TITO_SAMPLE_PICKER", picker, PICKERS, allow_dotted),
        postprocessor,
        _patterned(postprocessor)
        or _resolve("TITO_SAMPLE_POSTPROCESSOR", postprocessor, POSTPROCESSORS, allow_dotted),
    )


def _patterned(selector: str) -> Postprocessor | None:
    name, colon, value = selector.partition(":")
    return PATTERNED[name](value) if colon and name in PATTERNED else None


def _resolve(setting: str, selector: str, builtin: Mapping[str, Hook], allow_dotted: bool) -> Hook:
    if selector in builtin:
        return builtin[selector]
    choices = ", ".join(sorted(builtin))
    if allow_dotted:
        choices += ", or a dotted import path such as package.module.hook"
    if not allow_dotted or "." not in selector:
        raise ValueError(f"invalid {setting} {selector!r}; use one of {choices}")
    try:
        return _imported(selector)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"failed to resolve {setting} {selector!r}; use one of {choices}: {error}"
        ) from error


def _imported(selector: str) -> Any:
    module, _, name = selector.rpartition(".")
    hook = getattr(importlib.import_module(module), name)
    if not callable(hook):
        raise TypeError(f"load_function({selector!r}) did not resolve to a callable")
    if any(_is_async(part) for part in (hook, getattr(hook, "__call__", None))):  # noqa: B004
        raise TypeError(
            f"load_function({selector!r}) resolved to an async function; a synchronous one is required"
        )
    return hook


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
