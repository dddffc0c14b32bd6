"""Un-healed sessions: which node's messages a root goes on from, though its ids do not.

A root holds its whole request as messages, so the chained keys of its prefixes name every path that it
repeats; the deepest one committed before it is what it continues.
"""

from collections import defaultdict

from sessions_app.history.chain import prefix_keys
from sessions_app.history.matchers.linear_form import LINEAR_FORM, uses_linear_form
from sessions_app.history.matchers.registry import resolve_matcher
from sessions_app.json_text import loads
from trainer_export.forests.rows import StoredSession


def continued_ends(stored: StoredSession) -> dict[int, int]:
    """Seq of each later root to the seq of the node it continues; roots that continue none are absent."""
    session = stored.session
    canonical = uses_linear_form(session.policy, healing=session.healing)
    matcher = LINEAR_FORM if canonical else resolve_matcher(session.message_matcher)
    asked = defaultdict(list)
    for message in stored.messages:
        if not message.generated:
            asked[message.node_seq].append(loads(message.body.encode("utf-8", "surrogatepass")))
    ends: dict[bytes, int] = {}
    found: dict[int, int] = {}
    for node in stored.nodes:
        if node.parent_seq is None and ends:
            repeated = [ends[key] for key in prefix_keys(matcher, asked[node.seq]) if key in ends]
            if repeated:
                found[node.seq] = repeated[-1]
        if node.prefix_key is not None:
            ends[node.prefix_key] = node.seq
    return found
