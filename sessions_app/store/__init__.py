"""The only package that reads or writes the forest on the serving path, in SQL over an asynchronous pool.

    pool      connections, and the count of round trips
    values    rows as frozen values
    sessions  create, load, finish, delete
    attach    candidates of an attach point, paths, tokens
    records   intents and how requests ended
    commit    one statement that makes a node, and the only one that does
    read      whole paths for GET, samples and replayed replies
    claims    idempotency keys

Invariant: a node, its messages, its checkpoint, its events, its record's state and the session's counters
are written together or not at all, and no connection is held while an engine generates.
"""
