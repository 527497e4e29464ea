"""The graph of a model as a drawing in SVG: plates are boxes, variables ellipses, and arrows come from parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..language import Data, Node, Variable

_LINE, _GAP, _MARGIN, _HEIGHT = 92, 26, 18, 34
"""Pixels between levels, between nodes, around plates, and of a node."""
_LETTER = 8.2


@dataclass(frozen=True)
class Mark:
    """A node of the drawing, by its centre."""

    name: str
    x: float
    y: float
    width: float
    plates: tuple[str, ...]
    kind: str
    follows_itself: bool


class ShownAsGraph:
    """An object that notebooks show as a graph of its nodes."""

    nodes: Any
    """Every node, a tuple."""

    def _repr_html_(self) -> str:
        """Return the graph, for a notebook."""
        return f"<div>{model_svg(self.nodes)}</div>"


def model_svg(nodes: Sequence[Node]) -> str:
    """Return the graph of the nodes of a model as SVG.

    Observed variables are grey ellipses, hidden ones white, and known arrays rectangles. Nodes with the same plates are
    in one column, children below their parents; a plate is a box around its columns, in several parts where other
    columns are between.
    """
    shown = [node for node in nodes if isinstance(node, Variable | Data)]
    observed = _leaves(shown)
    marks = _placed(shown, observed)
    boxes = list(_boxes(marks))
    right = max([mark.x + mark.width / 2 for mark in marks.values()] + [box[2] for box in boxes]) + 8
    bottom = max([mark.y + _HEIGHT / 2 for mark in marks.values()] + [box[3] for box in boxes]) + 8
    names = ", ".join(mark.name for mark in marks.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right:.0f}" height="{bottom:.0f}" '
        f'viewBox="0 0 {right:.0f} {bottom:.0f}" role="img" aria-label="{escape(f"Graph of {names}")}" '
        f'font-family="sans-serif" font-size="13" fill="none" stroke="currentColor">',
        '<defs><marker id="caviar-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor" stroke="none"/></marker></defs>',
        *(_drawn_box(*box) for box in boxes),
        *(_drawn_arrow(marks[a], marks[b]) for a, b in _arrows(shown)),
        *(_drawn(mark) for mark in marks.values()),
        "</svg>",
    ]
    return "".join(parts)


def _arrows(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    """Return names of parent and child, once each."""
    found = {}
    known = {node.name for node in nodes}
    for node in nodes:
        if isinstance(node, Variable):
            for parent in (*node.parents, *node.indices):
                if parent.name in known and parent is not node:
                    found[parent.name, node.name] = None
    return list(found)


def _leaves(nodes: Sequence[Node]) -> set[str]:
    above = {parent for parent, _ in _arrows(nodes)}
    return {node.name for node in nodes if isinstance(node, Variable) and node.name not in above}


def _levels(nodes: Sequence[Node]) -> dict[str, int]:
    """Return how far each node is above the leaves, by the longest way."""
    arrows, levels = _arrows(nodes), dict.fromkeys((node.name for node in nodes), 0)
    for _ in nodes:
        for parent, child in arrows:
            levels[parent] = max(levels[parent], levels[child] + 1)
    return levels


def _placed(nodes: Sequence[Node], observed: set[str]) -> dict[str, Mark]:
    """Return the places of the nodes by name: a column of cells for those with the same plates."""
    levels = _levels(nodes)
    top = max(levels.values())
    groups: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        groups.setdefault(tuple(plate.name for plate in node.plates), []).append(node)
    marks, left = {}, float(_MARGIN + 6)
    for plates in _in_order(list(groups)):
        rows: dict[int, list[Node]] = {}
        for node in groups[plates]:
            rows.setdefault(levels[node.name], []).append(node)
        widths = {
            level: [max(54.0, _LETTER * len(node.name) + 26) for node in own] for level, own in rows.items()
        }
        total = {level: sum(own) + _GAP * (len(own) - 1) for level, own in widths.items()}
        widest = max(total.values())
        for level, own in rows.items():
            x = left + (widest - total[level]) / 2
            for node, width in zip(own, widths[level], strict=True):
                y = _MARGIN + 10 + _HEIGHT / 2 + (top - level) * _LINE
                kind = (
                    "known" if isinstance(node, Data) else "observed" if node.name in observed else "hidden"
                )
                follows = isinstance(node, Variable) and bool(node.summed)
                marks[node.name] = Mark(node.name, x + width / 2, y, width, plates, kind, follows)
                x += width + _GAP
        left += widest + _GAP + 2 * _MARGIN
    return marks


def _in_order(groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return sets of plates such that those with a plate in common are beside each other, as far as they can be."""
    rest = sorted(groups, key=lambda own: (len(own), own))
    found = [rest.pop(0)]
    while rest:
        rest.sort(key=lambda own: (-len(set(own) & set(found[-1])), len(own), own))
        found.append(rest.pop(0))
    return found


def _boxes(marks: dict[str, Mark]) -> Iterator[tuple[float, float, float, float, str]]:
    """Yield left, top, right, bottom and name of each plate, the widest first."""
    columns: list[tuple[str, ...]] = []
    for mark in sorted(marks.values(), key=lambda own: own.x):
        if not columns or columns[-1] != mark.plates:
            columns.append(mark.plates)
    columns = list(dict.fromkeys(columns))
    found = []
    for plate in dict.fromkeys(name for own in columns for name in own):
        run: list[tuple[str, ...]] = []
        for own in [*columns, ()]:
            if plate in own:
                run.append(own)
            elif run:
                inside = [mark for mark in marks.values() if mark.plates in run]
                # plates with more columns, or earlier in the alphabet, are outside
                depth = len(
                    {p for column in run for p in column if _spans(columns, p) < _spans(columns, plate)}
                )
                pad = _MARGIN - 9 + 5.0 * depth
                found.append(
                    (
                        min(mark.x - mark.width / 2 for mark in inside) - pad,
                        min(mark.y for mark in inside) - _HEIGHT / 2 - pad,
                        max(mark.x + mark.width / 2 for mark in inside) + pad,
                        max(mark.y for mark in inside) + _HEIGHT / 2 + pad + 15,
                        plate,
                    )
                )
                run = []
    yield from sorted(found, key=lambda box: box[0] - box[2])


def _spans(columns: Sequence[tuple[str, ...]], plate: str) -> tuple[int, str]:
    return sum(plate in own for own in columns), plate


def _drawn_box(left: float, top: float, right: float, bottom: float, name: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" rx="7" '
        f'stroke-opacity="0.55"/><text x="{right - 6:.1f}" y="{bottom - 5:.1f}" text-anchor="end" font-size="11" '
        f'fill="currentColor" stroke="none" fill-opacity="0.75">{escape(name)}</text>'
    )


def _drawn(mark: Mark) -> str:
    fill = {"observed": 'fill="#8886"', "known": 'fill="none"', "hidden": 'fill="none"'}[mark.kind]
    x, y, half = mark.x, mark.y, mark.width / 2
    if mark.kind == "known":
        top = y - _HEIGHT / 2
        shape = f'<rect x="{x - half:.1f}" y="{top:.1f}" width="{mark.width:.1f}" height="{_HEIGHT}" {fill}/>'
    else:
        shape = f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{half:.1f}" ry="{_HEIGHT / 2}" {fill}/>'
    loop = ""
    if mark.follows_itself:
        loop = (
            f'<path d="M{x + half - 8:.1f} {y - 11:.1f}c26 -16 26 38 1 22" stroke-opacity="0.8" '
            f'marker-end="url(#caviar-arrow)"/>'
        )
    label = (
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle" fill="currentColor" stroke="none">'
        f"{escape(mark.name)}</text>"
    )
    return shape + loop + label


def _drawn_arrow(parent: Mark, child: Mark) -> str:
    """Return an arrow between the edges of two marks."""
    (x0, y0), (x1, y1) = _edge(parent, child), _edge(child, parent)
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke-opacity="0.8" '
        f'marker-end="url(#caviar-arrow)"/>'
    )


def _edge(mark: Mark, towards: Mark) -> tuple[float, float]:
    """Return where a line from the centre of a mark to another one leaves it."""
    dx, dy = towards.x - mark.x, towards.y - mark.y
    half_width, half_height = mark.width / 2, _HEIGHT / 2
    if mark.kind == "known":
        share = min(
            half_width / abs(dx) if dx else float("inf"), half_height / abs(dy) if dy else float("inf")
        )
    else:
        share = ((dx / half_width) ** 2 + (dy / half_height) ** 2) ** -0.5
    return mark.x + share * dx, mark.y + share * dy
