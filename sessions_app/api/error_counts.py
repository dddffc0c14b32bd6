"""How many errors of each code this process answered, refusals that leave no record among them.

Wrong keys, bodies that are too large, foreign hosts and rates that are exceeded are counted and no more: who
sends them must not be able to fill the disk. Codes are a closed list, so the series are few.
"""

from prometheus_client import CollectorRegistry, Counter

REGISTRY = CollectorRegistry()
_ANSWERED = Counter(
    "tito_error_answers", "Errors answered by this process, by code", ["code"], registry=REGISTRY
)


def count(code: str) -> None:
    """One more."""
    _ANSWERED.labels(code).inc()
