"""Draw the rooms of the code and what each imports: ``python docs/draw_architecture.py``.

The layers come from the contract in pyproject.toml that import-linter checks, the arrows from the
imports themselves (those for types alone and those inside functions too). A test compares the
picture with what this makes, so that it cannot become outdated.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

WIDTH, ROW, BOX, GAP = 700, 34, 26, 8  # in pixels; GAP is between layers
LEFT, RIGHT, FIRST, LANE = 56, 156, 190, 39  # edges of the boxes; the lanes that arrows take
CURVE, OUT, IN = 9, -5, 5  # where an arrow leaves and enters a box, from its middle
COLOURS = ("#3b82d6", "#c2570c", "#22945a", "#a855c7", "#b8860b")  # on white and on black


def layers() -> list[list[str]]:
    """The rooms of every layer, the highest layer first, as the contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    listed = next(x["layers"] for x in contracts if x["type"] == "layers")
    return [[room.strip().removeprefix("depl.") for room in x.split("|")] for x in listed]


def dependencies() -> set[tuple[str, str]]:
    """Which room imports which; the package's own ``__init__`` and ``__main__`` are no rooms."""
    graph = grimp.build_graph("depl", cache_dir=None)
    rooms = {room for layer in layers() for room in layer}
    found = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = tuple(name.removeprefix("depl.").split(".")[0] for name in (module, imported))
            if pair[0] != pair[1] and rooms.issuperset(pair):
                found.add((pair[0], pair[1]))
    return found


def draw() -> str:
    """The picture as SVG: a row a room; the arrows to one room share a lane."""
    y, middle, bands = GAP, {}, []
    for number, layer in zip(range(len(layers()), 0, -1), layers(), strict=True):
        height = ROW * len(layer)
        bands.append(f'<rect class="layer" x="8" y="{y}" width="{WIDTH - 16}" height="{height}"/>')
        bands.append(f'<text class="number" x="28" y="{y + height // 2 + 5}">{number}</text>')
        for i, room in enumerate(layer):
            middle[room] = y + ROW * i + ROW // 2
        y += height + GAP
    arrows = dependencies()
    # Lower rooms have the outer lanes, so that no arrow crosses a lane where it enters its room.
    targets = [room for room in middle if any(target == room for _, target in arrows)]
    lane = {room: FIRST + LANE * i for i, room in enumerate(targets)}
    colour = {room: COLOURS[i % len(COLOURS)] for i, room in enumerate(targets)}
    lines = [
        _arrow(source, target, middle, lane[target], colour[target])
        for source, target in sorted(arrows, key=lambda pair: (middle[pair[1]], middle[pair[0]]))
    ]
    for source in middle:  # what arrows have in common is of no room's colour
        last = max((lane[target] for x, target in arrows if x == source), default=0)
        if last:
            begin = middle[source] + OUT
            lines.append(f'<path class="trunk" d="M{RIGHT} {begin}H{last - CURVE}"/>')
    boxes = []
    for room, centre in middle.items():
        stroke = colour.get(room, "#808890")
        boxes.append(
            f'<rect class="room" x="{LEFT}" y="{centre - BOX // 2}" width="{RIGHT - LEFT}" '
            f'height="{BOX}" rx="6" stroke="{stroke}"/>'
            f'<text class="name" x="{(LEFT + RIGHT) // 2}" y="{centre + 5}">{room}</text>'
        )
    markers = [
        f'<marker id="{room}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0l8 4-8 4z" fill="{colour[room]}"/></marker>'
        for room in targets
    ]
    return "\n".join([_head(y), "<defs>", *markers, "</defs>", *bands, *lines, *boxes, "</svg>\n"])


def _arrow(source: str, target: str, middle: dict[str, int], lane: int, colour: str) -> str:
    begin, end = middle[source] + OUT, middle[target] + IN
    turn = CURVE if end > begin else -CURVE
    return (
        f'<path class="arrow" data-from="{source}" data-to="{target}" stroke="{colour}" '
        f'marker-end="url(#{target})" d="M{RIGHT} {begin}H{lane - CURVE}'
        f"Q{lane} {begin} {lane} {begin + turn}V{end - turn}"
        f'Q{lane} {end} {lane - CURVE} {end}H{RIGHT + 2}"/>'
    )


def _head(height: int) -> str:
    says = "; ".join(", ".join(layer) for layer in layers())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'font-family="system-ui, sans-serif" font-size="14" role="img" aria-label="The rooms of '
        f"depl in {len(layers())} layers, from the top: {says}. Arrows lead from a room to those "
        f'that it imports, all of them in lower layers.">\n'
        "<style>.back{fill:#fff}.layer{fill:#f3f5f7}.room{fill:#fff;stroke-width:1.5}"
        ".name{fill:#1f2328;text-anchor:middle;font-weight:600}"
        ".number{fill:#57606a;text-anchor:middle}.arrow,.trunk{fill:none;stroke-width:1.5}"
        ".trunk{stroke:#8c959f}"
        "@media (prefers-color-scheme:dark){.back{fill:#0d1117}.layer{fill:#1a2029}"
        ".room{fill:#0d1117}.name{fill:#e6edf3}.number{fill:#9198a1}}</style>\n"
        f'<rect class="back" width="{WIDTH}" height="{height}" rx="12"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
