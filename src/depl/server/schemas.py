"""The JSON that goes in and out, with its limits; OpenAPI is made from these classes."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from depl.core.errors import ConfigError
from depl.evaluation.bands import BANDS
from depl.fusion.aims import parse_threshold
from depl.labels.decisions import Verdict

MAX_TEXTS = 256
MAX_CHARACTERS = 1_000_000
MAX_LABELS = 100  # per text
MAX_PAGE = 200  # labels on one page of a list
MAX_ALT_NAMES = 50
MAX_EXAMPLES = 100
MAX_DECISIONS = 200  # about one document, in one request

# At least one character that is not blank, and no control characters.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f\s][^\x00-\x1f\x7f-\x9f]*$"
_LINES = _LINE.replace(r"\x00-\x1f", r"\x00-\x08\x0b\x0c\x0e-\x1f")  # but tabs and line breaks

RunState = Annotated[
    str, Field(description="Another one after the run was fitted again or has learnt.")
]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CHARACTERS, pattern=r"\S")]
LabelId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_LINE)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_LINE)]
Description = Annotated[str, StringConstraints(min_length=1, max_length=5_000, pattern=_LINES)]
# To JSON, 5.0 is the whole number 5. Listed after the limits, so that OpenAPI has these as well.
_WHOLE = BeforeValidator(lambda x: int(x) if isinstance(x, float) and x.is_integer() else x)

_WORDS = r"^(f1|precision=(0?\.0*[1-9][0-9]*|1(\.0+)?))$"
_LONGEST_WORDS = 40


def _threshold(value: object) -> object:
    """A number, or words in one spelling."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, str) and len(value) <= _LONGEST_WORDS:
        with suppress(ConfigError):
            return parse_threshold(value)
    raise PydanticCustomError("threshold", "is no threshold")


Threshold = Annotated[
    float | str,
    BeforeValidator(_threshold),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": _WORDS}]}),
]

if TYPE_CHECKING:
    Band: TypeAlias = str
    AnyBand: TypeAlias = str
else:
    Band = Literal[tuple(band.name for band in BANDS)]
    AnyBand = Literal[("", *(band.name for band in BANDS))]
Sort = Literal["name", "count"]


class _Body(BaseModel):
    """What a client sends: misspelt fields and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(_Body):
    """Texts to label."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
    k: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_LABELS,
            description=f"Labels per text, at most; {MAX_LABELS} by default where a threshold in "
            f"words says how many.",
        ),
        _WHOLE,
    ] = 5
    threshold: Annotated[
        Threshold | None, Field(description="Leave out labels with a lower probability.")
    ] = None
    band: Annotated[Band | None, Field(description="Only labels of this band.")] = None
    ancestors: Annotated[
        bool, Field(description="Whether labels may be broader than another suggestion.")
    ] = True


class ExplainRequest(_Body):
    """A text, and a label, whether it was suggested for the text or not."""

    text: Text
    label: Annotated[LabelId, Field(description="The label's id.")]


class NewLabel(_Body):
    """A label to add."""

    id: LabelId
    name: Name
    alt_names: Annotated[list[Name], Field(max_length=MAX_ALT_NAMES)] = []
    description: Description | None = None
    examples: Annotated[
        list[Text],
        Field(max_length=MAX_EXAMPLES, description="Documents with this label."),
    ] = []


class LabelChange(_Body):
    """What to change about a label."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    name: Name = ""  # left out; pydantic does not validate defaults, but refuses an empty name
    alt_names: Annotated[
        list[Name] | None,
        Field(
            max_length=MAX_ALT_NAMES, description="All its other names, in place of those it has."
        ),
    ] = None
    description: Description = ""
    examples: Annotated[
        list[Text],
        Field(
            max_length=MAX_EXAMPLES,
            description="Further documents with this label; they are kept as feedback.",
        ),
    ] = []


class NewDecision(_Body):
    """What somebody says about one label of a document."""

    key: Annotated[
        LabelId,
        Field(description="The client's own name for this decision; sent again, it counts once."),
    ]
    label: Annotated[LabelId, Field(description="The label's id.")]
    verdict: Annotated[
        Verdict,
        Field(description="Of a suggestion: accepted or rejected; of a missing label: added."),
    ]
    probability: Annotated[
        float | None,
        Field(allow_inf_nan=False, description="The probability that the label was shown with."),
    ] = None


class NewFeedback(_Body):
    """Decisions about the labels of one document; they are kept all or not at all."""

    text: Text
    id: Annotated[
        LabelId | None, Field(description="The document's id; by default made from its text.")
    ] = None
    source: Annotated[Name | None, Field(description="Where the document comes from.")] = None
    by: Annotated[Name | None, Field(description="Who decided.")] = None
    decisions: Annotated[list[NewDecision], Field(min_length=1, max_length=MAX_DECISIONS)]


class KeptDecision(BaseModel):
    """A decision as it is kept; ``run`` is the version of the run that was used."""

    number: int
    key: str
    time: str
    document: str
    opening: Annotated[str, Field(description="The beginning of the document's text.")]
    source: str
    label: str
    verdict: Verdict
    probability: float | None
    by: str
    run: str
    undone: Annotated[str | None, Field(description="When it was undone, if it was.")]
    undone_by: str | None


class KeptFeedback(BaseModel):
    """The decisions that were sent, in their order, as they are kept."""

    decisions: list[KeptDecision]


class FeedbackList(BaseModel):
    """Decisions, the latest first; ``next`` is the value of ``before`` for the next page."""

    total: int
    decisions: list[KeptDecision]
    next: int | None


class ShortLabel(BaseModel):
    """A label; ``band`` is the frequency band of its number of training documents."""

    id: str
    name: str
    training_documents: int
    band: Band


class SuggestedLabel(ShortLabel):
    """A label for a text; in a run without fusion the probability is the SVM's score."""

    probability: float


class Suggestions(BaseModel):
    """The labels of one text, best first."""

    labels: list[SuggestedLabel]


class PredictResponse(BaseModel):
    """One result per text, in the order of the texts."""

    results: list[Suggestions]
    run: RunState


class ListedLabel(ShortLabel):
    """A label in a list, with its first keywords."""

    alt_names: list[str]
    description: str
    keywords: list[str]


class LabelList(BaseModel):
    """One page of a list, and the number of labels on all pages."""

    total: int
    labels: list[ListedLabel]


class Keyword(BaseModel):
    """A term and its weight in the label's SVM."""

    term: str
    weight: float


class NearLabel(ShortLabel):
    """A label that is similar to another."""

    similarity: float


class LabelName(BaseModel):
    """Id and name of a label; of one that the run does not have, the id for both."""

    id: str
    name: str


class WholeLabel(ShortLabel):
    """All that the run knows about a label; ``definition`` is what its vocabulary says."""

    alt_names: list[str]
    definition: str
    broader: list[LabelName]
    narrower: list[LabelName]
    description: str
    keywords: list[Keyword]
    nearest: list[NearLabel]


class ExplainedLabel(ShortLabel):
    """The label that is explained."""

    alt_names: list[str]
    definition: str
    broader: list[LabelName]
    narrower: list[LabelName]


class PartScore(BaseModel):
    """Score and rank of a label by one part of the model, and the log-odds that this adds."""

    name: str
    score: float | None
    rank: int | None
    contribution: float


class MatchedKeyword(Keyword):
    """A keyword, or a word of a name, in the text, and where: [start, end) in characters."""

    contribution: float
    spans: list[tuple[int, int]]


class Neighbour(BaseModel):
    """A training document that has the label and is similar to the text."""

    id: str
    text: str
    similarity: float
    carries: bool


class ExplainResponse(BaseModel):
    """Why a label is suggested for a text, or why not."""

    label: ExplainedLabel
    probability: float | None
    rank: int | None
    description: str
    parts: list[PartScore]
    keywords: list[MatchedKeyword]
    name_words: list[MatchedKeyword]
    neighbours: list[Neighbour]


class BandInfo(BaseModel):
    """A frequency band: labels with ``first`` to ``last`` training documents, and how many."""

    name: Band
    first: int
    last: int | None
    labels: int


class Info(BaseModel):
    """The run as a whole; ``thresholds`` are probabilities from which to accept labels."""

    name: str
    version: str
    run: RunState
    documents: int
    labels: int
    bands: list[BandInfo]
    parts: list[str]
    thresholds: dict[str, float] | None
    codes: Annotated[bool, Field(description="Whether ids are codes to be shown beside names.")]
    writable: bool


class RunEntry(BaseModel):
    """A run of the service; ``path`` stands in the place of ``/v1`` in its addresses."""

    name: str
    path: str
    documents: int
    labels: int


class RunList(BaseModel):
    """The runs of the service, the default first."""

    runs: list[RunEntry]


class Undone(BaseModel):
    """Which change was undone."""

    undone: str


class Reloaded(BaseModel):
    """The run was reloaded: its number of labels, and the seconds it took."""

    labels: int
    seconds: float


class Problem(BaseModel):
    """What is wrong and what to do about it."""

    message: str


class ProblemResponse(BaseModel):
    """Every answer with a status of 400 or above."""

    error: Problem
