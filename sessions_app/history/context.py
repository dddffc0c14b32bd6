"""The chained digest of everything an engine was shown and sampled, from the root to one node.

Invariant: two nodes have equal context digests exactly when the same deltas, with the same trims and the same
borders between fed and sampled ids, lead to them. Whoever holds a node's digest can prove later that a
completion was sampled in the very left context that an exported row puts before it.
"""

from hashlib import sha256
from struct import pack

from sessions_app.packing import Ids, pack_ids

DIGEST_BYTES = 16

ROOT: bytes = b""
"""What stands for the parent's digest at a root."""

_DOMAIN = b"tito context 1\0"


def context_digest(parent_digest: bytes, trim: int, prompt_delta: Ids, completion: Ids) -> bytes:
    """Digest of a node: its parent's (`ROOT` for none), the ids dropped from the parent, then both deltas."""
    digest = sha256(_DOMAIN)
    digest.update(pack("<BIQQ", len(parent_digest), trim, prompt_delta.size, completion.size))
    digest.update(parent_digest)
    digest.update(pack_ids(prompt_delta))
    digest.update(pack_ids(completion))
    return digest.digest()[:DIGEST_BYTES]
