"""Options of `up` and `serve` that are settings: moved into the environment before the settings are read.

Invariant: an option wins over the variable, and both go through the same validation.
"""

from collections.abc import MutableMapping, Sequence

_OPTIONS: dict[str, dict[str, str]] = {
    "up": {"--home": "TITO_HOME", "--bind": "TITO_BIND", "--port": "TITO_PORT"},
    "serve": {"--bind": "TITO_BIND", "--port": "TITO_PORT"},
}


def options_into_environment(arguments: Sequence[str], environment: MutableMapping[str, str]) -> None:
    """Copies `--port 9000` and `--port=9000` of `up` and `serve` to TITO_PORT, and the like."""
    if not arguments:
        return
    known = _OPTIONS.get(arguments[0], {})
    for position, argument in enumerate(arguments[1:], start=1):
        name, equals, value = argument.partition("=")
        if name not in known:
            continue
        if equals:
            environment[known[name]] = value
        elif position + 1 < len(arguments):
            environment[known[name]] = arguments[position + 1]
