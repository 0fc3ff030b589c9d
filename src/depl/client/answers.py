"""What the service answers, as Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class SuggestedLabel:
    """A label for a text."""

    id: str
    name: str
    probability: float
    training_documents: int
    band: str


@dataclass(frozen=True)
class FoundLabel:
    """A label in a list."""

    id: str
    name: str
    training_documents: int
    band: str
    description: str
    keywords: list[str]


@dataclass(frozen=True)
class LabelDetails:
    """All that the run knows about a label."""

    id: str
    name: str
    training_documents: int
    band: str
    alt_names: list[str]
    definition: str
    description: str
    broader: list[dict[str, Any]]
    narrower: list[dict[str, Any]]
    keywords: list[dict[str, Any]]
    nearest: list[dict[str, Any]]


@dataclass(frozen=True)
class JobProgress:
    """A file that is labelled in the background, and how far it is."""

    id: str
    name: str
    state: str
    documents: int
    progress: float
    left_out: int
    reasons: list[str]
    error: str | None
    created: str
    finished: str | None


def made(kind: type[T], value: Mapping[str, Any]) -> T:
    """An object with those fields that it knows: a newer service may send more."""
    return kind(**{x.name: value[x.name] for x in fields(kind)})  # type: ignore[arg-type]
