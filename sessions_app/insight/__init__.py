"""Read-only questions about stored sessions: what was fed, why it forked, what it would cost another way.

Nothing here changes a row. What needs no database is pure and takes plain values; the modules that read say
so.
"""
