"""The table at the end of a demo."""

from collections.abc import Iterator

from rich.table import Table

from sessions_app.demo_agent.totals import Totals


def table(totals: Totals) -> Table:
    """Everything that was counted."""
    made = Table(show_header=False, box=None, pad_edge=False)
    made.add_column(justify="left")
    made.add_column(justify="right")
    made.add_column(justify="left", style="dim")
    for row in _rows(totals):
        made.add_row(*row)
    return made


def _rows(totals: Totals) -> Iterator[tuple[str, str, str]]:
    yield "sessions", _n(totals.sessions), f"in {totals.seconds:.1f} s"
    yield "turns", _n(len(totals.turns)), f"median {totals.median_turn_ms:.0f} ms, engine included"
    for name, count in totals.branches.items():
        yield f"  {name}", _n(count), ""
    yield "  healed", _n(totals.healed), "the prompt begins with stored ids"
    if totals.unrecorded:
        yield "  unrecorded", _n(totals.unrecorded), "answered, but not in the tree"
    yield from _token_rows(totals)
    yield from _rerender_rows(totals)
    yield "errors", _n(totals.errors.total()), "; ".join(f"{n} x {what}" for what, n in totals.errors.items())


def _token_rows(totals: Totals) -> Iterator[tuple[str, str, str]]:
    added = totals.prompt_tokens - totals.reused_tokens
    yield "tokens", "", ""
    yield "  reused", _n(totals.reused_tokens), "stored ids fed again"
    yield "  added", _n(added), "tokenised from new messages"
    yield "  generated", _n(totals.generated_tokens), "sampled by the engine"


def _rerender_rows(totals: Totals) -> Iterator[tuple[str, str, str]]:
    other = totals.rerendering
    paths = f"{other.drifted_paths} of {other.paths}"
    share = other.misplaced_tokens / other.sampled_tokens if other.sampled_tokens else 0.0
    yield "rendering the replay instead", "", ""
    yield "  tokenised", _n(totals.prompt_tokens), "every prompt, every turn"
    yield "  turns drifted", _n(other.drifted_turns), f"other ids in the prompt, {paths} paths"
    yield "  text differs", _n(other.text_differences), "places where not even the text agrees"
    yield (
        "  ids misplaced",
        _n(other.misplaced_tokens),
        f"{share:.0%} of all: lost or in another context",
    )


def _n(value: int) -> str:
    return f"{value:,}"
