"""How long turns of this process took, by phase, as Prometheus histograms."""

from prometheus_client import CollectorRegistry, Histogram

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Latencies:
    """One histogram with the phase as label; a registry of its own, so that two services never mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        histogram = Histogram(
            "tito_turn_seconds",
            "Time of a turn by phase in this process",
            ["phase"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._phases = {name: histogram.labels(name) for name in ("prepare", "engine", "commit")}

    def observe(self, phase: str, seconds: float) -> None:
        """One turn's share."""
        self._phases[phase].observe(seconds)
