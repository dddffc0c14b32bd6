"""Line charts as SVG: a line and a mark a series, told apart by stroke and shape too, every point a link.
Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sessions_app.analytics.rates import Series, Window

WIDTH, HEIGHT = 560, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 22
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
_SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a line."""

    x: float
    y: float
    href: str
    tip: str


@dataclass(frozen=True, slots=True)
class Line:
    """One series as drawn."""

    part: str
    style: int
    """Number of its stroke and shape."""
    shape: str
    path: str
    dots: list[Dot]


@dataclass(frozen=True, slots=True)
class Grid:
    """A horizontal line with its number."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The whole drawing."""

    width: int
    height: int
    lines: list[Line]
    grid: list[Grid]
    alert_y: float | None
    """Height of the alert threshold."""
    start: str
    stop: str
    left: int
    right: int
    bottom: int


def draw_chart(
    window: Window,
    series: Sequence[Series],
    threshold: float | None,
    address: Callable[[datetime, str], str],
) -> Chart:
    """`address`: where a point of a step and a part leads to."""
    rates = [one.rate for each in series for one in each.points.values() if one.rate is not None]
    top = _ceiling(max([*rates, threshold or 0.0, 0.0]))
    return Chart(
        width=WIDTH,
        height=HEIGHT,
        lines=[_line(window, each, number, top, address) for number, each in enumerate(series)],
        grid=[Grid(_y(top * share, top), f"{100 * top * share:.3g} %") for share in (0.0, 0.5, 1.0)],
        alert_y=None if threshold is None else _y(threshold, top),
        start=f"{window.start:%m-%d %H:%M}",
        stop=f"{window.stop:%m-%d %H:%M}",
        left=_LEFT,
        right=WIDTH - _RIGHT,
        bottom=HEIGHT - _BOTTOM,
    )


def _ceiling(most: float) -> float:
    return next((step for step in _STEPS if step >= most), 1.0)


def _line(
    window: Window, series: Series, number: int, top: float, address: Callable[[datetime, str], str]
) -> Line:
    dots = [
        Dot(
            x=_x(window, at),
            y=_y(counted.rate or 0.0, top),
            href=address(at, series.part),
            tip=f"{series.part}, {at:%m-%d %H:%M}: {counted.hits} of {counted.total}",
        )
        for at, counted in sorted(series.points.items())
    ]
    path = "".join(f"{'L' if at else 'M'}{dot.x} {dot.y}" for at, dot in enumerate(dots))
    return Line(series.part, number, shape_of(number), path, dots)


def shape_of(number: int) -> str:
    """The mark of a series by its number."""
    return _SHAPES[number % len(_SHAPES)]


def _x(window: Window, at: datetime) -> float:
    share = (at - window.start + window.step / 2) / (window.stop - window.start)
    return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)


def _y(rate: float, top: float) -> float:
    return round(HEIGHT - _BOTTOM - min(rate / top, 1.0) * (HEIGHT - _TOP - _BOTTOM), 1)
