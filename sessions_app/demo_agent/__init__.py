"""An agent written with the `openai` SDK, and what `manage.py demo` says about its runs.

    calculator  arithmetic without eval
    tools       the tools the agent really executes
    sayings     what its users say
    agent       the loop of an agent: messages, tool calls, results
    scenarios   how a run goes: straight on, with a retry, an edit, a sub-agent
    server      a running TITO, seen from outside
    rerender    what a server that renders the replayed messages would have fed instead
    totals      sums over all runs
    report      the table
    fleet       many runs at once

Invariant: nothing here imports another part of TITO. Whatever it says of a server it learned over HTTP.
"""
