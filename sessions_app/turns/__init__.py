"""One turn from request to reply: prepare, generate, commit.

    values       requests and results as the protocols hand them over
    profiles     the renderer and the backend of a model profile
    heads        what the engine sees at the head of a conversation, as a digest
    beginnings   keys and digest of messages that the last request had too
    stopwatch    where the time of a turn went
    checkpoints  cache of immutable token arrays
    positioning  where a request attaches
    explaining   why it attached there, when it was no plain append
    prompting    the ids of one render or one continuation
    feeding      the prompt of a positioned turn
    reasons      causes and events of a prepared turn
    rooting      what a new root is taken for
    matching     the matcher of a session, harness profile included
    rewrites     what a harness profile tolerated
    recording    what a record keeps of a request and of a reply
    ledger       records of requests at each end they can have
    prepare      all of that, ending with a stored intent
    dispatching  what the engine is asked
    pausing      turns held for a weight update
    weights      engines that did not follow an update
    replying     the chat-shaped reply of a generation
    commit       a reply becomes a node, or is kept as late
    replaying    requests that come twice
    reading      stored turns back as requests and replies
    describing   what GET and samples say of a session besides its records
    service      the three steps in order
    recover      intents left by dead processes

Invariant: prepare changes nothing but the record; no lock, transaction or connection is held while the
engine works.
"""
