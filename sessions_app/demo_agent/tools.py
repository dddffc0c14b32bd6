"""The tools of the demo agent: a calculator, and a listing of one folder. They are really executed.

Invariant: a listing never leaves its folder, and a tool never raises: what went wrong is its result.
"""

import json
from pathlib import Path
from typing import Any

from sessions_app.demo_agent.calculator import CalculationError, calculate

_FILES = {
    "README.txt": "Files for the demo agent to list.\n",
    "data/april.csv": "day,count\n1,17\n2,23\n",
    "data/may.csv": "day,count\n1,19\n",
    "notes/naïve ideas.txt": "Ask twice.\n",
    "notes/todo.txt": "- add\n- multiply\n",
}


def _tool(name: str, description: str, parameter: str, meaning: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {parameter: {"type": "string", "description": meaning}},
                "required": [parameter],
            },
        },
    }


DEFINITIONS = [
    _tool("calculate", "Evaluate an arithmetic expression.", "expression", "For example 17 * (4 + 2)"),
    _tool("list_files", "List the files of a folder.", "path", "Below the working folder, or . for itself"),
]
"""As the model is told."""


def fill(folder: Path) -> None:
    """Put something to list into an empty folder."""
    for name, text in _FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


class Toolbox:
    """Executes calls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def run(self, name: str, arguments: str) -> str:
        """The result of a call as text."""
        try:
            value = json.loads(arguments)
        except ValueError:
            return "error: the arguments are not JSON"
        if not isinstance(value, dict):
            return "error: the arguments are not an object"
        if name == "calculate":
            return self._calculate(value.get("expression"))
        if name == "list_files":
            return self._list(value.get("path", "."))
        return f"error: there is no tool {name}"

    def _calculate(self, expression: Any) -> str:
        try:
            return str(calculate(str(expression)))
        except CalculationError as error:
            return f"error: {error}"

    def _list(self, path: Any) -> str:
        try:
            folder = (self._folder / str(path)).resolve()
            if not folder.is_relative_to(self._folder):
                return "error: outside of the working folder"
            return "\n".join(sorted(_shown(each) for each in folder.iterdir()))
        except (OSError, ValueError):
            return "error: no such folder"


def _shown(path: Path) -> str:
    return f"{path.name}/" if path.is_dir() else path.name
