"""Values of fields and cells as ids, texts and lists, or an error that says what they are."""

from __future__ import annotations

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
