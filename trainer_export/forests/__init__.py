"""From the database to the forests that samples are made of.

    rows      what is read of sessions and nodes, as frozen values
    load      a constant number of statements for any number of sessions
    replay    the payloads of those riders that samples hand out
    build     rows to SessionForest: what replies said, digests, rewards
    describe  `metadata` of GET /sessions/{id} and drift per leaf, which take a renderer

Invariant: a forest is the session as it stood at one `next_seq`; nodes committed meanwhile are not in it.
"""
