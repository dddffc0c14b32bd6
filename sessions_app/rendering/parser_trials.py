"""Which parsers read back the turns that a template prints: all of them, tried."""

from copy import copy
from itertools import product

from sessions_app.rendering.parsers.registry import REASONING_PARSERS, TOOL_PARSERS, reply_parser
from sessions_app.rendering.template_renderer import TemplateRenderer
from sessions_app.rendering.verification import failed, read_back


def fitting_parsers(renderer: TemplateRenderer) -> list[tuple[str, str]]:
    """Names of tool and reasoning parsers with which no turn is misread."""
    return [names for names in product(TOOL_PARSERS, REASONING_PARSERS) if _reads(renderer, *names)]


def _reads(renderer: TemplateRenderer, tool_parser: str, reasoning_parser: str) -> bool:
    try:
        parser = reply_parser(tool_parser, reasoning_parser, renderer.tokenizer)
    except ValueError:
        return False
    other = copy(renderer)
    other.parser = parser
    return not failed(read_back(other))
