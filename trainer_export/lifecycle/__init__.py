"""When rollouts end, and what is said about them afterwards.

    finishing   `finish`: closes for serving, keeps status, reward and metadata
    reaping     sessions that were idle for too long
    groups      which rollouts of a group have ended (views export_rollouts, export_groups)
    rewards     values for a session or for one node, at any time until retention

Invariant: each is one statement or one transaction, and saying the same again changes nothing.
"""
