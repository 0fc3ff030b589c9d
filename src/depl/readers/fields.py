"""Values of fields and cells as ids, texts and lists, or an error that says what they are."""

from __future__ import annotations

import ast
import json
import re

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class WrongFieldError(Exception):
    """A field has a type that cannot be used; the message says which."""

    def __init__(self, field: str, value: object) -> None:
        super().__init__(f"{field} is {value!r:.60}")


def as_id(value: object, field: str) -> str:
    """A string or a whole number as an id."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise WrongFieldError(field, value)


def as_id_or(value: object, field: str, default: str) -> str:
    """Like ``as_id``, but nothing at all counts as the default.

    Examples
    --------
    >>> as_id_or(31960, "id", "train-17"), as_id_or(None, "id", "train-17")
    ('31960', 'train-17')
    """
    return default if value is None or value == "" else as_id(value, field)


def as_text(value: object, field: str) -> str:
    """A string; nothing at all counts as an empty one."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise WrongFieldError(field, value)


def as_list(value: object, field: str) -> list[object]:
    """A list; nothing at all counts as an empty one."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise WrongFieldError(field, value)


def as_ids(value: object, field: str) -> list[str]:
    """A list of ids; nothing at all counts as an empty one."""
    return [as_id(item, f"an item of {field}") for item in as_list(value, field)]


def as_texts(value: object, field: str) -> list[str]:
    """A list of texts; a cell has one, as it may hold any separator, or a list in brackets.

    Examples
    --------
    >>> as_texts(["Wine; red", "Oil"], "examples"), as_texts("Wine; red", "examples")
    (['Wine; red', 'Oil'], ['Wine; red'])
    >>> as_texts('["Wine", "Oil"]', "examples"), as_texts("[Wine] from here", "examples")
    (['Wine', 'Oil'], ['[Wine] from here'])
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = listed(value)
    if isinstance(value, list):
        return [as_text(item, f"an item of {field}") for item in value]
    text = as_words(value, field)
    return [text] if text.strip() else []


def parse_json(text: str) -> object:
    r"""Parse JSON; text that could never be written again as UTF-8 is broken, too.

    Examples
    --------
    >>> parse_json('"\\ud83d\\ude00"')
    '😀'
    >>> parse_json('"\\ud83d"')
    Traceback (most recent call last):
    ValueError: half of a surrogate pair in an escape
    """
    try:
        value: object = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (column {error.colno})") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair in an escape") from None
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None
    return value


def as_words(value: object, field: str) -> str:
    r"""A text from what a table may hold: a string, a number, or several of them; else nothing.

    Examples
    --------
    >>> as_words(["Wine", 1999], "title"), as_words(float("nan"), "title")
    ('Wine\n1999', '')
    >>> as_words(4711.0, "code"), as_words(4711.5, "code")
    ('4711', '4711.5')
    """
    if isinstance(value, list):
        return "\n".join(filter(None, (as_words(item, field) for item in value)))
    if isinstance(value, float):  # NaN is how pandas writes nothing, and then 4711 as 4711.0
        return "" if value != value else str(int(value) if value.is_integer() else value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return as_text(value, field)


def as_names(value: object, field: str, separator: str) -> list[str]:
    """Names of labels from a cell: a list, or what stands between separators.

    Examples
    --------
    >>> as_names(" Wine; Olive oil;", "subjects", ";"), as_names(["a;b", 3], "subjects", ";")
    (['Wine', 'Olive oil'], ['a;b', '3'])
    """
    if separator == MARKS:
        return [field] if as_mark(value, field) else []
    items = value if isinstance(value, list) else cell_items(as_words(value, field), separator)
    return [name for item in items if (name := as_words(item, f"an item of {field}").strip())]


LIST = "[ ]"
"""The separator of cells that are lists, as JSON or Python writes them."""

MARKS = "0/1"
"""The separator of cells with a 1 where a document carries the label that the column is called."""

_MARKS = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}


def as_mark(value: object, field: str) -> bool:
    """Whether a cell of a label's own column says that a document carries it; a blank one: no.

    Examples
    --------
    >>> as_mark("1", "wine"), as_mark(0.0, "wine"), as_mark(True, "wine"), as_mark(None, "wine")
    (True, False, True, False)
    """
    said = "" if value is None or value != value else str(value).strip().casefold()
    if said and said not in _MARKS:
        raise WrongFieldError(field, value)
    return _MARKS.get(said, False)


def is_mark(value: object) -> bool:
    """Whether a cell that is not blank is 0 or 1, in any spelling."""
    return str(value).strip().casefold() in _MARKS


def cell_items(cell: str, separator: str) -> list[object]:
    """The items of one cell; without a separator the cell is the only item.

    Examples
    --------
    >>> cell_items("['wine', 'oil']", LIST), cell_items("wine|oil", "|"), cell_items("a, b", "")
    (['wine', 'oil'], ['wine', 'oil'], ['a, b'])
    """
    if separator != LIST:
        return list(cell.split(separator)) if separator else [cell]
    return listed(cell) if cell.strip() else []


def listed(cell: str) -> list[object]:
    """A list as JSON or Python writes it; a cell that is none is the only item."""
    try:
        value = parse_json(cell)
    except ValueError:
        try:
            value = ast.literal_eval(cell.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [cell]
    return list(value) if isinstance(value, list | tuple | set) else [cell]


def split_cell(cell: str) -> list[object]:
    """A list written in one cell: a JSON list, or items between ``;`` or ``|``.

    Examples
    --------
    >>> split_cell("17; 2560"), split_cell("wine|beer"), split_cell('["a;b"]'), split_cell("")
    (['17', '2560'], ['wine', 'beer'], ['a;b'], [])
    """
    cell = cell.strip()
    if cell.startswith("["):
        value = parse_json(cell)
        if isinstance(value, list):
            return value
    separator = ";" if ";" in cell else "|"
    return [item.strip() for item in cell.split(separator) if item.strip()]
