"""Tools of the Responses API: functions, some of them grouped in namespaces, as chat's functions and back.

A function of a namespace is offered under a name made of both; its calls are told with the two apart, as the
client defined them. Tools that run elsewhere are not offered. Invariant: what is offered and what is kept
beside it say together what was sent.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessions_app.errors import InvalidTools

Names = Mapping[str, tuple[str, str]]
"""Namespace and function behind each name that is offered for both."""

_FUNCTION, _NAMESPACE = "function", "namespace"
_JOINT = "__"
_KNOWN = ("type", "name", "description", "parameters")
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def joined_name(namespace: Any, name: str) -> str:
    """The name under which a function is offered; its own without a namespace."""
    if not isinstance(namespace, str) or not namespace:
        return name
    return namespace + ("" if namespace.endswith(_JOINT) else _JOINT) + name


def read_tools(value: Mapping[str, Any]) -> list[Any] | None:
    """`tools` as chat knows them; None where none is offered."""
    tools = value.get("tools")
    if not tools:
        return None
    offered = list(_offered(_objects(tools, "tools")))
    names = Counter(function["function"]["name"] for function in offered)
    twice = next((name for name in names_of(tools) if names[name] > 1), None)
    if twice is not None:
        raise InvalidTools(f"two tools have the name {twice[:80]!r} with their namespace")
    return offered or None


def names_of(tools: Any) -> Names:
    """The names that stand for a function of a namespace. `tools`: read before, or stored."""
    return {
        joined_name(tool["name"], each["name"]): (tool["name"], each["name"])
        for tool in tools or ()
        if tool.get("type") == _NAMESPACE
        for each in tool["tools"]
        if each.get("type") == _FUNCTION
    }


def kept_beside(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each tool what chat's form of it does not hold; tools that are not offered whole."""
    return [_beside(tool) for tool in tools]


def told_tools(functions: Sequence[Any], beside: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools as they were sent. `functions`: as offered; `beside`: what was kept beside them."""
    return list(_told(iter(functions), beside, None))


def _told(
    functions: Iterator[Any], beside: Sequence[dict[str, Any]], namespace: str | None
) -> Iterator[dict[str, Any]]:
    for kept in beside:
        if kept.get("type") == _NAMESPACE:
            yield {**kept, "tools": list(_told(functions, kept["tools"], kept["name"]))}
        elif "type" in kept:
            yield kept
        elif (function := next(functions, None)) is not None:
            yield {**_own_form(function, namespace), **kept}


def _own_form(tool: Any, namespace: str | None) -> Any:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return tool
    name = str(function.get("name") or "").removeprefix(joined_name(namespace, ""))
    return {"type": _FUNCTION, **function, "name": name}


def _beside(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") == _FUNCTION:
        return {name: item for name, item in tool.items() if name not in _KNOWN}
    return {**tool, "tools": kept_beside(tool["tools"])} if tool.get("type") == _NAMESPACE else tool


def _offered(tools: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        if tool.get("type") == _FUNCTION:
            yield _function(tool, None, where)
        elif tool.get("type") == _NAMESPACE:
            namespace = _name(tool, where)
            for at, each in enumerate(_objects(tool.get("tools"), f"{where}.tools")):
                if each.get("type") == _FUNCTION:
                    yield _function(each, namespace, f"{where}.tools[{at}]")


def _function(tool: dict[str, Any], namespace: str | None, where: str) -> dict[str, Any]:
    function = {
        "name": joined_name(namespace, _name(tool, where)),
        "description": tool.get("description") or "",
        "parameters": tool.get("parameters") or _NO_PARAMETERS,
    }
    strict = {"strict": tool["strict"]} if tool.get("strict") else {}  # false is what chat takes for granted
    return {"type": _FUNCTION, "function": {**function, **strict}}


def _name(tool: dict[str, Any], where: str) -> str:
    if not isinstance(tool.get("name"), str):
        raise InvalidTools(f"{where}.name must be text")
    return str(tool["name"])


def _objects(tools: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise InvalidTools(f"{where} must be a list of objects")
    return tools
