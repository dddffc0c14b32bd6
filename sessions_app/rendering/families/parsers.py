"""Which parsers read the turns: those that were named, else the family's, else the usual ones.

Invariant: a family that is known to speak one grammar is never read in another.
"""

from sessions_app.rendering.families.facts import FamilyFacts

USUAL_TOOL_PARSER, USUAL_REASONING_PARSER = "qwen3", "think"


def chosen_parsers(facts: FamilyFacts | None, tool_parser: str, reasoning_parser: str) -> tuple[str, str]:
    """Names of the tool and the reasoning parser; "" is one that was not set. Raises ValueError where one
    that was set disagrees with the family."""
    tool, reasoning = (facts.tool_parser, facts.reasoning_parser) if facts else ("", "")
    family = facts.name if facts else ""
    return (
        _agreed("TITO_TOOL_PARSER", tool_parser, tool, family) or USUAL_TOOL_PARSER,
        _agreed("TITO_REASONING_PARSER", reasoning_parser, reasoning, family) or USUAL_REASONING_PARSER,
    )


def _agreed(setting: str, given: str, known: str, family: str) -> str:
    if given and known and given != known:
        raise ValueError(
            f"{setting}={given!r} disagrees with TITO_RENDERER='template:{family}', which is read by "
            f"{known!r}; leave it unset (the variable and the profile's field) or name that one"
        )
    return given or known
