"""The JSON that goes in and out; limits of size stand here, so that OpenAPI tells them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

MAX_TEXTS = 256
MAX_CHARACTERS = 1_000_000
MAX_LABELS = 100  # a text
MAX_PAGE = 200  # labels a list
MAX_ALT_NAMES = 50
MAX_EXAMPLES = 100

# Something to read, and no character that would only confuse those who print it.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f\s][^\x00-\x1f\x7f-\x9f]*$"
_LINES = _LINE.replace(r"\x00-\x1f", r"\x00-\x08\x0b\x0c\x0e-\x1f")  # tabs and line ends, too

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CHARACTERS, pattern=r"\S")]
LabelId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_LINE)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_LINE)]
Description = Annotated[str, StringConstraints(min_length=1, max_length=5_000, pattern=_LINES)]
# To JSON, 5.0 is the whole number 5. Behind the limits, so that OpenAPI still tells these.
_WHOLE = BeforeValidator(lambda x: int(x) if isinstance(x, float) and x.is_integer() else x)

Band = Literal["0", "1-9", "10-99", "100+"]
Sort = Literal["name", "count"]


class _Asked(BaseModel):
    """A body: misspelt fields and values of another type are refused, not guessed at."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(_Asked):
    """Texts to label."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
    k: Annotated[int, Field(ge=1, le=MAX_LABELS, description="Labels a text, at most."), _WHOLE] = 5
    threshold: Annotated[
        float | None,
        Field(allow_inf_nan=False, description="Leave out labels with a lower probability."),
    ] = None
    band: Annotated[Band | None, Field(description="Only labels of this band.")] = None


class ExplainRequest(_Asked):
    """A text, and a label that was suggested for it or was not."""

    text: Text
    label: Annotated[LabelId, Field(description="The label's id.")]


class NewLabel(_Asked):
    """A label to add."""

    id: LabelId
    name: Name
    alt_names: Annotated[list[Name], Field(max_length=MAX_ALT_NAMES)] = []
    description: Description | None = None
    examples: Annotated[
        list[Text], Field(max_length=MAX_EXAMPLES, description="Texts that carry the label.")
    ] = []


class LabelChange(_Asked):
    """What is to be different about a label."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    name: Name = ""  # not given; an empty one that is given is refused
    description: Description = ""


class ShortLabel(BaseModel):
    """A label in one line; ``band`` is that of its number of training documents."""

    id: str
    name: str
    training_documents: int
    band: Band


class Suggestion(ShortLabel):
    """A label for a text; without a fusion the probability is the SVM's score."""

    probability: float


class Suggestions(BaseModel):
    """The labels of one text, best first."""

    labels: list[Suggestion]


class PredictResponse(BaseModel):
    """One result a text, in the order of the texts."""

    results: list[Suggestions]


class ListedLabel(ShortLabel):
    """A label in a list, with its first keywords."""

    description: str
    keywords: list[str]


class LabelList(BaseModel):
    """A page of a list, and how many labels the whole list has."""

    total: int
    labels: list[ListedLabel]


class Keyword(BaseModel):
    """A term and its weight in the label's SVM."""

    term: str
    weight: float


class NearLabel(ShortLabel):
    """A label that is close to another."""

    similarity: float


class WholeLabel(ShortLabel):
    """All that the run knows about a label."""

    alt_names: list[str]
    description: str
    keywords: list[Keyword]
    nearest: list[NearLabel]


class ExplainedLabel(ShortLabel):
    """The label that is explained."""

    alt_names: list[str]


class PartSays(BaseModel):
    """What one part of the model says about the label, and how much that counts (log-odds)."""

    name: str
    score: float | None
    rank: int | None
    contribution: float


class MatchedKeyword(Keyword):
    """A keyword that is in the text, and where: [start, end) in characters."""

    contribution: float
    spans: list[tuple[int, int]]


class Neighbour(BaseModel):
    """A training document that is near the text and carries the label."""

    id: str
    text: str
    similarity: float
    carries: bool


class ExplainResponse(BaseModel):
    """Why a label is suggested for a text, or is not."""

    label: ExplainedLabel
    probability: float | None
    rank: int | None
    description: str
    parts: list[PartSays]
    keywords: list[MatchedKeyword]
    neighbours: list[Neighbour]


class Info(BaseModel):
    """The run as a whole; ``thresholds`` are probabilities to cut at."""

    name: str
    version: str
    documents: int
    labels: int
    bands: dict[Band, int]
    parts: list[str]
    thresholds: dict[str, float] | None
    writable: bool


class Undone(BaseModel):
    """Which change was taken back."""

    undone: str


class Reloaded(BaseModel):
    """The run was loaded anew."""

    labels: int
    seconds: float


class Problem(BaseModel):
    """What is wrong, what was got, what to do."""

    message: str


class ProblemResponse(BaseModel):
    """Every answer whose status is 400 or above."""

    error: Problem
