"""The lineage picture of a session as SVG: links, tool tips, a legend, and the same facts in words.

What a mark means is said by shape, stroke and text; colour only repeats it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sessions_app.history.causes import AttachKind
from sessions_app.history.roots import MAIN
from sessions_app.insight.forest import NodeLine
from sessions_app.insight.lineage import Glyph, Place, lay_out

COLLAPSE_ABOVE = 40
"""Sessions with more nodes than this are drawn with their straight chains collapsed."""
_COLUMN = 26
_WIDEST_RANGE = 5
_LANE = 46
_GUTTER = 17
"""How far above a lane the strokes run that come to it from other lanes."""
_MARGIN = 22
_LABEL_DROP = 20
"""From a mark down to the foot of its label."""
_LABEL_BELOW = 4
_LEAST_RADIUS, _MOST_RADIUS = 5.0, 10.0
_EDGES = {
    AttachKind.ROOT: "root",
    AttachKind.APPEND: "append",
    AttachKind.FORK: "fork",
    AttachKind.RETRY: "retry",
    AttachKind.ROLLBACK: "rollback",
    AttachKind.RESET: "reset",
    AttachKind.PASSTHROUGH: "reset",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A node or a chain as drawn."""

    seqs: tuple[int, ...]
    x: int
    y: int
    radius: float
    border: str
    """`plain`, `truncated`, `failed`, `left` (not on the active path) or `unconfirmed`."""
    active: bool
    """On the path to the session's active node."""
    style: str
    """How it attached: the style of the stroke that leads to it, or of its stub where it is a root."""
    root: bool
    tip: str
    share: float | None
    """Of its sampled ids that are trained; None = not known."""

    @property
    def fill(self) -> str:
        """Class of the trained share, in quarters."""
        return "unknown" if self.share is None else str(round(4 * self.share))

    @property
    def chain(self) -> int:
        """How many nodes it stands for."""
        return len(self.seqs)

    @property
    def across(self) -> float:
        """Width of its box."""
        return 22 if self.chain > 1 else 2 * self.radius

    @property
    def down(self) -> float:
        """Height of its box."""
        return 14 if self.chain > 1 else 2 * self.radius

    @property
    def left(self) -> float:
        """Left edge of its box."""
        return self.x - self.across / 2

    @property
    def top(self) -> float:
        """Upper edge of its box."""
        return self.y - self.down / 2

    @property
    def below(self) -> int:
        """Where its label stands."""
        return self.y + _LABEL_DROP

    @property
    def hit(self) -> Box:
        """What leads to the node when it is clicked: the mark, its label, and what lies between."""
        half = _COLUMN // 2
        return Box(self.x - half, self.y - half, _COLUMN, half + _LABEL_DROP + _LABEL_BELOW)

    @property
    def stub(self) -> int:
        """Where the stroke to a root that is not the first begins."""
        return self.x - _COLUMN // 2 - 4

    @property
    def first(self) -> int:
        """The node that a click leads to."""
        return self.seqs[0]

    @property
    def label(self) -> str:
        """What stands below it, as long as it leaves its neighbours their room; its tip names all of it."""
        told = f"{self.seqs[0]}–{self.seqs[-1]}" if self.chain > 1 else str(self.seqs[0])
        return told if self.chain == 1 or len(told) <= _WIDEST_RANGE else ""


@dataclass(frozen=True, slots=True)
class Stroke:
    """An edge as drawn: along the lane, or down to the gutter above the child's lane and along that."""

    path: str
    style: str
    tip: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The whole drawing."""

    width: int
    height: int
    marks: tuple[Mark, ...]
    strokes: tuple[Stroke, ...]
    collapsed: bool
    nodes: int


def draw(
    lines: Sequence[NodeLine],
    active: int | None,
    trained: Mapping[int, int] | None,
    *,
    rollback: bool,
    collapse: bool,
) -> Picture:
    """The picture of these nodes, given in commit order. `trained`: ids by node; None = not known."""
    by_seq = {line.seq: line for line in lines}
    on_path = _path(by_seq, active)
    places = [Place(line.seq, line.parent, _stands_out(line)) for line in lines]
    lineage = lay_out(places, collapse=collapse)
    most = max((line.generated for line in lines), default=1) or 1
    marks = [_mark(glyph, by_seq, on_path, most, trained, rollback=rollback) for glyph in lineage.glyphs]
    strokes = [
        _stroke(marks[glyph.parent], mark, by_seq[glyph.first])
        for glyph, mark in zip(lineage.glyphs, marks, strict=True)
        if glyph.parent is not None
    ]
    return Picture(
        width=2 * _MARGIN + _COLUMN * max(len(marks) - 1, 0),
        height=2 * _MARGIN + _LANE * max(lineage.lanes - 1, 0),
        marks=tuple(marks),
        strokes=tuple(strokes),
        collapsed=any(mark.chain > 1 for mark in marks),
        nodes=len(lines),
    )


def _stands_out(line: NodeLine) -> bool:
    return (
        line.kind != AttachKind.APPEND
        or line.ill_formed
        or line.finish_reason in ("length", "abort", "error")
    )


def _path(by_seq: Mapping[int, NodeLine], active: int | None) -> frozenset[int]:
    path = set()
    while active is not None and active in by_seq:
        path.add(active)
        active = by_seq[active].parent
    return frozenset(path)


def _mark(
    glyph: Glyph,
    by_seq: Mapping[int, NodeLine],
    on_path: frozenset[int],
    most: int,
    trained: Mapping[int, int] | None,
    *,
    rollback: bool,
) -> Mark:
    lines = [by_seq[seq] for seq in glyph.seqs]
    largest = max(line.generated for line in lines)
    active = glyph.last in on_path
    told = _chain_tip(lines) if len(lines) > 1 else _tip(lines[0], left=rollback and not active)
    return Mark(
        seqs=glyph.seqs,
        x=_MARGIN + _COLUMN * glyph.column,
        y=_MARGIN + _LANE * glyph.lane,
        radius=round(_LEAST_RADIUS + (_MOST_RADIUS - _LEAST_RADIUS) * (largest / most) ** 0.5, 1),
        border=_border(lines[-1], left=rollback and not active),
        active=active,
        style=_style(lines[0]),
        root=lines[0].parent is None,
        tip=f"{told}\n{_trained_tip(lines, trained)}",
        share=_share(lines, trained),
    )


def _share(lines: Sequence[NodeLine], trained: Mapping[int, int] | None) -> float | None:
    sampled = sum(line.generated for line in lines)
    if trained is None or not sampled:
        return None
    return sum(trained.get(line.seq, 0) for line in lines) / sampled


def _trained_tip(lines: Sequence[NodeLine], trained: Mapping[int, int] | None) -> str:
    if trained is None:
        return "what is trained is not known"
    return f"{sum(trained.get(line.seq, 0) for line in lines)} of them trained"


def _border(line: NodeLine, *, left: bool) -> str:
    if line.finish_reason == "length":
        return "truncated"
    if line.finish_reason in ("abort", "error") or line.ill_formed:
        return "failed"
    if left:
        return "left"
    return "unconfirmed" if line.record_state == "committed" else "plain"


def _tip(line: NodeLine, *, left: bool) -> str:
    stored = "?" if line.reused_tokens is None else line.reused_tokens
    told = [
        f"node {line.seq}: {line.kind}" + (f" ({line.cause})" if line.cause else ""),
        f"{line.prompt_tokens} ids fed, {stored} of them stored",
        f"{line.generated} sampled, finish {line.finish_reason or 'unknown'}",
        f"record {line.record} {line.record_state}",
    ]
    if line.ill_formed:
        told.append("ill-formed reply, kept as text")
    if left:
        told.append("left the active path")
    return "\n".join(told)


def _chain_tip(lines: Sequence[NodeLine]) -> str:
    sampled = sum(line.generated for line in lines)
    return f"nodes {lines[0].seq} to {lines[-1].seq}: {len(lines)} plain continuations\n{sampled} ids sampled"


def _style(line: NodeLine) -> str:
    return "side" if line.root_class not in (None, MAIN) else _EDGES[AttachKind(line.kind)]


def _stroke(above: Mark, mark: Mark, line: NodeLine) -> Stroke:
    """A column holds one mark, so what runs down in a column, or along a gutter, crosses no other mark."""
    path = f"M{above.x} {above.y}H{mark.x}"
    if above.y != mark.y:
        gutter = mark.y - _GUTTER if mark.y > above.y else mark.y + _GUTTER
        path = f"M{above.x} {above.y}V{gutter}H{mark.x - _COLUMN // 2}L{mark.x} {mark.y}"
    return Stroke(path, mark.style, line.cause or line.kind)
