"""From a selector to a matcher: the built-in names and dotted paths.

Sessions may name built-ins only; dotted paths come from settings. The words of the errors are fixed and do
not name `exact`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from sessions_app.history.matchers.base import MessageMatcher
from sessions_app.history.matchers.custom import CustomMatcher, load_function
from sessions_app.history.matchers.exact import Exact
from sessions_app.history.matchers.loose_tool_call import LooseToolCall
from sessions_app.history.matchers.role_content_only import RoleContentOnly
from sessions_app.history.matchers.strict import Strict

_BUILT_IN: tuple[MessageMatcher, ...] = (Exact(), Strict(), LooseToolCall(), RoleContentOnly())

BUILT_IN_MATCHERS: Mapping[str, MessageMatcher] = MappingProxyType({each.name: each for each in _BUILT_IN})
"""By name, in the order from tight to loose."""

_CHOICES = (
    "use one of strict, loose_tool_call, role_content_only, "
    "or a dotted import path such as package.module.matcher"
)


def resolve_matcher(selector: object) -> MessageMatcher:
    """The matcher that a selector names. Raises ValueError with the reason."""
    if isinstance(selector, str) and selector in BUILT_IN_MATCHERS:
        return BUILT_IN_MATCHERS[selector]
    if not isinstance(selector, str) or "." not in selector:
        raise ValueError(f"invalid --session-message-matcher {selector!r}; {_CHOICES}")
    try:
        return CustomMatcher(selector, load_function(selector))
    except Exception as error:
        message = f"failed to resolve --session-message-matcher {selector!r}; {_CHOICES}: {error}"
        raise ValueError(message) from error
