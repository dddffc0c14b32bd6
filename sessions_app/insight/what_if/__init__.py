"""Replaying stored requests under another policy, matcher or profile, without an engine; nothing is written.

    asked     the requests of a session as its clients spelled them
    setup     what the requests are replayed under
    simulate  where each request would have attached (pure; the same decisions as serving)
    pairs     messages that would now count as the same, or no longer would
    renders   token counts under a renderer, and what re-rendering every turn would split
    report    both worlds side by side, session by session

Replies are taken as they were: a model that is fed other ids may answer otherwise, which no replay can know.
"""
