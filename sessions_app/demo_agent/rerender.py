"""What a server that renders the replayed messages would have fed, compared with what this one served.

The render is the server's own: the last request of every path is sent once more, to a session with `healing`
off, and the ids that were fed there are read back. Such a session is discarded: no export shall find it.
For a template that only appends, the render of an earlier request is a prefix of it, so the first differing
id tells which turns of the path would have drifted.
"""

from collections.abc import Sequence
from typing import Any

from sessions_app.demo_agent.server import Server
from sessions_app.demo_agent.totals import Rerendering

_SPANS = "completion_span"


async def compare(server: Server, session_id: str) -> Rerendering:
    """The comparison over every path of a session."""
    found = Rerendering()
    body = await server.read(session_id)
    nodes = {node["id"]: node for node in body["metadata"]["tree"]["nodes"]}
    firsts: dict[int, int | None] = {}
    for leaf in body["metadata"]["tree"]["leaves"]:
        path = await server.read(session_id, leaf["node_id"])
        end = nodes[leaf["node_id"]][_SPANS][0]
        served = path["metadata"]["accumulated_token_ids"][:end]
        rendered = await _rendered(server, path["records"][-1]["request"])
        difference = first_difference(served, rendered)
        found.paths += 1
        found.drifted_paths += difference is not None
        found.text_differences += len(path["metadata"].get("tito_session_mismatch") or ())
        firsts |= {node: _earliest(firsts.get(node), difference) for node in leaf["path_node_ids"]}
    _count(found, [(nodes[node][_SPANS], difference) for node, difference in firsts.items()])
    return found


def first_difference(served: Sequence[int], rendered: Sequence[int]) -> int | None:
    """Index of the first id that differs; None if there is none."""
    for at, (left, right) in enumerate(zip(served, rendered, strict=False)):
        if left != right:
            return at
    return None if len(served) == len(rendered) else min(len(served), len(rendered))


async def _rendered(server: Server, request: dict[str, Any]) -> list[int]:
    """The ids a session without healing is fed for a request."""
    asked = {key: request[key] for key in ("model", "messages", "tools") if request.get(key) is not None}
    probe = await server.open(healing=False, history_policy="tree", harness="demo", labels={"demo": "render"})
    try:
        await server.ask(probe.id, {**asked, "max_tokens": 1})
        metadata = (await server.read(probe.id))["metadata"]
    finally:
        await server.discard(probe.id)
    ids: list[int] = metadata["accumulated_token_ids"]
    return ids[: metadata["tree"]["nodes"][0][_SPANS][0]]


def _earliest(known: int | None, difference: int | None) -> int | None:
    return min((each for each in (known, difference) if each is not None), default=None)


def _count(found: Rerendering, turns: list[tuple[list[int], int | None]]) -> None:
    """A turn has drifted if its prompt reaches beyond the first difference."""
    for (start, end), difference in turns:
        found.sampled_tokens += end - start
        if difference is None:
            continue
        found.drifted_turns += start > difference
        found.misplaced_tokens += max(0, end - max(start, difference))
