"""How many files and sockets a process may hold open. A generation in flight holds two: its client's and its
engine's."""

import resource

_ENOUGH = 65_536


def raise_limit() -> int:
    """Up to what the system allows, as shells often set it to 1024; the limit that then holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted
