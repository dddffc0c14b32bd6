"""One turn from request to reply: prepare, generate, commit.

    values       requests and results as the protocols hand them over
    profiles     the renderer and the backend of a model profile
    heads        what the engine sees at the head of a conversation, as a digest
    stopwatch    where the time of a turn went
    checkpoints  cache of immutable token arrays
    positioning  where a request attaches
    explaining   why it attached there, when it was no plain append
    prompting    the ids to feed
    recording    what a record keeps of a request and of a reply
    prepare      all of that, ending with a stored intent
    commit       a reply becomes a node, or is kept as late
    service      the three steps in order
    recover      intents left by dead processes

Invariant: prepare changes nothing but the record; no lock, transaction or connection is held while the
engine works.
"""
