"""What a renderer makes of the stored requests: token counts, and how a pipeline that renders every turn
anew splits.

Each request is rendered once. Invariant: nothing is sampled; replies are those of the session.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sessions_app.insight.what_if.asked import Asked
from sessions_app.insight.what_if.simulate import Placed
from sessions_app.packing import Ids
from sessions_app.rendering.protocol import Renderer


@dataclass(frozen=True, slots=True)
class Rendered:
    """One request under a renderer."""

    prompt: Ids
    whole: int
    """Ids of the request and its reply."""


def render_all(requests: Sequence[Asked], renderer: Renderer) -> dict[int, Rendered]:
    """Every request by node seq. Raises what rendering raises."""
    return {asked.seq: _rendered(asked, renderer) for asked in requests}


def _rendered(asked: Asked, renderer: Renderer) -> Rendered:
    bound = (
        renderer.with_kwargs(json.loads(asked.template_kwargs)) if asked.template_kwargs != "{}" else renderer
    )
    tools = json.loads(asked.tools) if asked.tools else None
    whole = bound.render([*asked.messages, asked.reply], tools, add_generation_prompt=False)
    return Rendered(bound.render(asked.messages, tools), len(whole))


def reused(placed: Sequence[Placed], rendered: Mapping[int, Rendered]) -> int:
    """Ids that need not be tokenised again: of the paths that requests continue."""
    return sum(
        min(rendered[one.parent].whole, len(rendered[one.seq].prompt))
        for one in placed
        if one.parent is not None and one.kind is not None
    )


def rows_of_rerendering(
    requests: Sequence[Asked], placed: Sequence[Placed], rendered: Mapping[int, Rendered]
) -> int:
    """Training rows of a pipeline without healing: a turn goes on with the row of the turn before it only
    if its fresh render starts with the very ids of that row."""
    by_seq = {asked.seq: asked for asked in requests}
    continued = set()
    for one in placed:
        if one.parent is None or one.kind is None:
            continue
        before = np.concatenate([rendered[one.parent].prompt, by_seq[one.parent].completion])
        prompt = rendered[one.seq].prompt
        if len(prompt) >= len(before) and np.array_equal(prompt[: len(before)], before):
            continued.add(one.parent)
    return sum(one.kind is not None for one in placed) - len(continued)
