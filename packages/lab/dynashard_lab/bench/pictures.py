"""Bars as SVG: the ratio of every contender of some rows, with the quartiles as a thin line."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from dynashard_lab.bench.measure import Figure

WIDTH: Final = 760
_LEFT: Final = 230
_RIGHT: Final = 70
_BAR: Final = 16
_TITLE: Final = 34
_GAP: Final = 14
_FONT: Final = "font-family='system-ui, sans-serif'"
_WORDS: Final = ("Dynashard", "transport")
"""One of them is in the names of all contenders of ours."""
_OURS: Final = "#0b6e4f"
_OTHERS: Final = "#9aa5b1"


def bars(rows: Mapping[str, Sequence[Figure]]) -> str:
    """Return a picture with a panel for each row, whose name is its title.

    All panels of a picture have their own scale, from 0 to the highest figure.
    """
    parts: list[str] = []
    top = _GAP
    for name, figures in rows.items():
        parts += _panel(name, figures, top)
        top += _TITLE + _BAR * len(figures) + _GAP
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{top}' viewBox='0 0 {WIDTH} {top}'>"
    return "\n".join([head, f"<rect width='{WIDTH}' height='{top}' fill='#ffffff'/>", *parts, "</svg>", ""])


def _panel(name: str, figures: Sequence[Figure], top: int) -> Iterator[str]:
    highest = max(figure.ratio.high for figure in figures)
    scale = (WIDTH - _LEFT - _RIGHT) / highest
    clock = "client CPU" if figures[0].clock == "cpu" else "wall time"
    yield _text(f"{name}: {clock}, {figures[0].contender} = 1", 12, top + 16, size=14, weight="600")
    for number, figure in enumerate(figures):
        middle = top + _TITLE + _BAR * number
        length = max(1.0, figure.ratio.median * scale)
        colour = _OURS if any(word in figure.contender for word in _WORDS) else _OTHERS
        yield _text(figure.contender, _LEFT - 8, middle + 4, anchor="end")
        yield f"<rect x='{_LEFT}' y='{middle - 6}' width='{length:.1f}' height='12' fill='{colour}'/>"
        low, high = _LEFT + figure.ratio.low * scale, _LEFT + figure.ratio.high * scale
        yield f"<line x1='{low:.1f}' x2='{high:.1f}' y1='{middle}' y2='{middle}' stroke='#1f2933'/>"
        yield _text(number_of(figure.ratio.median), max(_LEFT + length, high) + 6, middle + 4)


def number_of(ratio: float) -> str:
    """Return a ratio with two or three digits that say something."""
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"  # noqa: PLR2004 - two digits of it would be one


def _text(content: str, x: float, y: float, *, size: int = 12, weight: str = "400", anchor: str = "start") -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {_FONT} font-size='{size}' font-weight='{weight}' fill='#1f2933' "
        f"text-anchor='{anchor}'>{escape(content)}</text>"
    )
