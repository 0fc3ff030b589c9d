"""Codes that a workbook keeps as numbers and shows with zeros before them.

Excel turns the code 010121 into the number 10121, and people give the cell the format 000000 to see
the code again. What they see is the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.etree import ElementTree
from zipfile import ZipFile

_PARTS = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|[_*].|.', re.S)
_LETTERS = re.compile(r"[A-Z]+")


class Mask(NamedTuple):
    """A number format of zeros: its pieces, and whether a point among them is the decimal one."""

    pieces: tuple[str, ...]
    decimal: bool

    def shown(self, value: float) -> str | None:
        r"""The number as a spreadsheet shows it; None for one that is not a code.

        Examples
        --------
        >>> mask = parse_mask(r"0000\.00")
        >>> mask.shown(10121), mask.shown(85171300), mask.shown(-1), mask.shown(0.5)
        ('0101.21', '851713.00', None, None)
        >>> parse_mask("0000.00").shown(101.2)
        '0101.20'
        """
        if value < 0:
            return None
        if self.decimal:
            decimals = len(self.pieces) - 1 - self.pieces.index(".")
            return f"{value:0{len(self.pieces)}.{decimals}f}"
        if value != int(value):
            return None
        digits = str(int(value)).zfill(self.pieces.count("0"))
        surplus, said = len(digits) - self.pieces.count("0"), []
        for piece in self.pieces:
            n = 1 + surplus if piece == "0" else 0
            surplus = 0 if piece == "0" else surplus
            said.append(digits[:n] if n else piece)
            digits = digits[n:]
        return "".join(said)


def parse_mask(code: str) -> Mask | None:
    r"""A number format that shows zeros before a number; None for any other.

    Examples
    --------
    >>> parse_mask("000000").shown(10121), parse_mask('00"-"000').shown(1021)
    ('010121', '01-021')
    >>> [parse_mask(code) for code in ("General", "0", "0.00", "#,##0", "00%", "yyyy-mm-dd")]
    [None, None, None, None, None, None]
    """
    found: list[str] = []
    decimal = False
    for part in _PARTS.findall(code.split(";")[0]):
        if part == "." and not decimal:
            decimal = True
            found.append(part)
        elif part in ("0", "-", " ", "/", "(", ")"):
            found.append(part)
        elif part[0] in '"\\':
            found.append(part.strip('"').removeprefix("\\"))
        elif part[0] != "[":
            return None
    plain = all(piece in ("0", ".") for piece in found)
    whole = found[: found.index(".")] if decimal and "." in found else found
    if whole.count("0") < 2 or (decimal and not plain):
        return None
    return Mask(tuple(found), decimal)


def padded_cells(path: Path, sheet: str) -> Iterator[tuple[int, int, str]]:
    """Row, column (both from 1) and text of the cells of a sheet that are shown with such zeros.

    Only Excel's files since 2007 are read: ``.xlsx`` and ``.xlsm``.
    """
    if path.suffix.lower() not in (".xlsx", ".xlsm"):
        return
    with ZipFile(path) as archive:
        names = set(archive.namelist())
        masks = _masks(archive) if "xl/styles.xml" in names else {}
        place = _place_of(archive, sheet) if masks else None
        if place not in names:
            return
        with archive.open(place) as stream:
            for _, element in ElementTree.iterparse(stream):
                if _tag(element) == "c":
                    mask = masks.get(element.get("s", ""))
                    if mask is not None and element.get("t", "n") == "n":
                        yield from _cell(element, mask)
                elif _tag(element) == "row":
                    element.clear()


def _cell(element: ElementTree.Element, mask: Mask) -> Iterator[tuple[int, int, str]]:
    place = element.get("r", "")
    letters = _LETTERS.match(place)
    value = next((x.text for x in element if _tag(x) == "v"), None)
    if letters is None or not value:
        return
    column = 0
    for letter in letters[0]:
        column = 26 * column + ord(letter) - ord("A") + 1
    said = mask.shown(float(value))
    if said is not None:
        yield int(place[letters.end() :]), column, said


def _masks(archive: ZipFile) -> dict[str, Mask]:
    """The formats that show zeros, by the numbers of the styles that have them."""
    root = ElementTree.fromstring(archive.read("xl/styles.xml"))
    codes = {x.get("numFmtId"): x.get("formatCode", "") for x in root.iter() if _tag(x) == "numFmt"}
    styles = next((x for x in root if _tag(x) == "cellXfs"), ())
    found = {str(i): parse_mask(codes.get(x.get("numFmtId"), "")) for i, x in enumerate(styles)}
    return {style: mask for style, mask in found.items() if mask is not None}


def _place_of(archive: ZipFile, sheet: str) -> str | None:
    """Where in the archive a sheet is."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    targets = {link.get("Id"): link.get("Target", "") for link in links}
    for element in book.iter():
        if _tag(element) == "sheet" and element.get("name") == sheet:
            own = next((v for k, v in element.attrib.items() if k.endswith("}id")), None)
            target = targets.get(own, "")
            inside = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            return str(PurePosixPath(inside))
    return None


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
