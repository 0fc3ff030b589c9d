"""Which columns of a table of labels hold id, name and the rest, by what people call them.

A list of codes rarely calls its columns id and name: it has Code and Bezeichnung.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from depl.readers.column_names import plain_name
from depl.readers.spellings import sameness

# By field, the surest names first.
_CALLED = {
    "id": """
        id identifier labelid conceptid code codes notation hscode hs cn cncode taric kn kncode
        commoditycode tariffcode warennummer warencode zolltarifnummer zolltarif nummer number nr no
        key schlüssel kennung uri url gnd gndid idn ppn categoryid kategorieid código codice codigo
        numéro número kod kode classcode class klasse
    """,
    "name": """
        name label preflabel prefname heading subjectheading term title bezeichnung benennung
        begriff vorzugsbenennung titel schlagwort sachschlagwort kategorie category categoryname
        kategoriename warenbezeichnung nom libellé intitulé désignation nombre denominación etiqueta
        nome designação denominazione naam benaming benämning namn nimi navn betegnelse nazwa název
        text description designation beschreibung descripción descrizione omschrijving
    """,
    "alt_names": """
        altnames altlabel altlabels altname synonym synonyms synonyme synonymes sinónimos sinonimi
        alternativename alternativenames alternativenamen alternativbezeichnung
        alternativbezeichnungen othernames usedfor
    """,
    "broader": """
        broader parent parentid parentcode broaderterm oberbegriff oberbegriffe übergeordnet
        obergruppe père superior padre
    """,
    "description": """
        description definition scopenote note notes explanation erläuterung erläuterungen definición
        définition definizione beschreibung anmerkung anmerkungen bemerkung
    """,
}
_NAMES = {field: [plain_name(name) for name in names.split()] for field, names in _CALLED.items()}
_WORD = re.compile(r"[^\W\d_]{2}")


def find_label_columns(
    header: Sequence[str], rows: Sequence[dict[str, Any]]
) -> dict[str, str] | None:
    """The column of each field of a label; None where nothing shows which have id and name.

    Examples
    --------
    >>> rows = [{"Code": "01", "Bezeichnung": "Pferde"}, {"Code": "02", "Bezeichnung": "Rinder"}]
    >>> find_label_columns(["Code", "Bezeichnung"], rows)
    {'id': 'Code', 'name': 'Bezeichnung'}
    >>> find_label_columns(["a", "b"], [{"a": 1, "b": 2}]) is None
    True
    """
    found: dict[str, str] = {}
    for field, names in _NAMES.items():
        exact = {sameness(column): column for column in reversed(header)}.get(field)
        called = {plain_name(column): column for column in reversed(header)}
        column = exact or next((called[x] for x in names if x in called), None)
        if column is not None and column not in found.values():
            found[field] = column
    rest = [column for column in header if column not in found.values()]
    if "id" not in found and "name" in found:
        codes = [column for column in rest if _differs(column, rows)]
        found["id"] = codes[0] if len(codes) == 1 else found["name"]
    if "name" not in found and "id" in found:
        words = [column for column in rest if _has_words(column, rows)]
        if len(words) == 1:
            found["name"] = words[0]
    if "id" not in found or "name" not in found or not _differs(found["id"], rows):
        return None
    return {field: found[field] for field in _CALLED if field in found}


def _values(column: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    return [str(row[column]) for row in rows if row.get(column) not in (None, "")]


def _differs(column: str, rows: Sequence[dict[str, Any]]) -> bool:
    """Whether every row has something of its own in a column."""
    values = _values(column, rows)
    return len(set(values)) == len(rows)


def _has_words(column: str, rows: Sequence[dict[str, Any]]) -> bool:
    values = _values(column, rows)
    return sum(_WORD.search(value) is not None for value in values) > len(values) / 2
