"""Arithmetic as a tool: `+ - * / // % **`, brackets and numbers. No names, no calls, nothing unbounded."""

import ast
import operator
from collections.abc import Callable

Number = int | float

_LONGEST = 200
_LARGEST = 1e100
_LARGEST_EXPONENT = 64
_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


class CalculationError(Exception):
    """What the tool answers instead of a number."""


def calculate(expression: str) -> Number:
    """The value of an expression. Raises CalculationError."""
    if len(expression) > _LONGEST:
        raise CalculationError(f"longer than {_LONGEST} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _value(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CalculationError("not arithmetic") from None
    except ZeroDivisionError:
        raise CalculationError("division by zero") from None
    except OverflowError:
        raise CalculationError("too large") from None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _combined(sign, _value(left), _value(right))
    raise CalculationError(f"{type(node).__name__} is not arithmetic")


def _combined(sign: ast.operator, left: Number, right: Number) -> Number:
    """Exponents are bounded before the power is taken: that is where the time would go."""
    if isinstance(sign, ast.Pow) and abs(right) > _LARGEST_EXPONENT:
        raise CalculationError("exponent too large")
    return _bounded(_BINARY[type(sign)](left, right))


def _bounded(number: Number) -> Number:
    if not isinstance(number, int | float) or not abs(number) <= _LARGEST:
        raise CalculationError("too large, or not a real number")
    return number
