"""One measurement in a process of its own, whose memory is then that of one export. Prints JSON."""

import json
import sys
from argparse import ArgumentParser

import django
from django.conf import settings


def main() -> None:
    """SESSIONS TURNS PROMPT COMPLETION, the last two in ids a turn."""
    parser = ArgumentParser(prog="python -m trainer_export.measuring", description=main.__doc__)
    for name in ("sessions", "turns", "prompt", "completion"):
        parser.add_argument(name, type=int)
    asked = parser.parse_args()
    django.setup()
    from sessions_app.api.wiring import conninfo
    from trainer_export.measuring import Size, measure
    from trainer_export.renderers import profile_renderer

    found = measure(conninfo(), settings.TITO, profile_renderer, Size(**vars(asked)))
    figures = {
        "tokens": found.tokens,
        "tokens_a_minute": round(found.tokens_a_minute),
        "wall_tokens_a_minute": round(found.wall_tokens_a_minute),
        "before_mb": round(found.before_mb, 1),
        "peak_mb": round(found.peak_mb, 1),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
