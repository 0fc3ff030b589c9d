"""An example for every request and answer that OpenAPI describes, by the name of its schema."""

from __future__ import annotations

from typing import Any

_TEXT = "Safety of nuclear power stations and the storage of spent fuel"
_SAFETY = {"id": "4042", "name": "nuclear safety", "training_documents": 32, "band": "10-99"}
_STATION = {
    "id": "5350",
    "name": "nuclear power station",
    "training_documents": 24,
    "band": "10-99",
}
_VOCABULARY = {
    "alt_names": ["Euratom inspection"],
    "definition": "",
    "broader": [{"id": "2470", "name": "nuclear policy"}],
    "narrower": [],
}
_DESCRIPTION = "nuclear safety radiation atomic iaea waste convention"
_LEVY = {
    "id": "x-1",
    "name": "carbon border levy",
    "alt_names": ["CBAM"],
    "description": "levy on the carbon dioxide emissions of imported goods",
    "examples": ["Importers of cement and steel buy certificates for embedded carbon emissions"],
}
_DECISION = {
    "number": 1,
    "key": "a7c1-1",
    "time": "2026-11-16T08:12:07.867+00:00",
    "document": "text-5da0d1e71cf2a398",
    "opening": _TEXT,
    "source": "",
    "label": "4042",
    "verdict": "accepted",
    "probability": 0.888,
    "by": "Ada",
    "run": "20c6ecf51f71cfcd0d2ca05fc62744d7",
    "undone": None,
    "undone_by": None,
}

_PROGRESS = {
    "total": 120,
    "done": 40,
    "skipped": 2,
    "left": 78,
    "by": [{"name": "anna", "done": 25}, {"name": "ben", "done": 15}],
    "you": "anna",
}
_REVIEWED = {
    "number": 7,
    "id": "31986L0594",
    "text": _TEXT,
    "source": "new-acts.csv",
    "state": "open",
    "by": "",
    "looking": "anna",
    "missing": 1.4,
    "reasons": [_STATION | {"probability": 0.31, "rare": False}],
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "PredictRequest": {"texts": [_TEXT], "k": 2},
    "PredictResponse": {
        "results": [
            {"labels": [_SAFETY | {"probability": 0.888}, _STATION | {"probability": 0.723}]}
        ],
        "run": "20c6ecf51f71cfcd0d2ca05fc62744d7",
    },
    "ExtractResponse": {"text": _TEXT, "title": "Report on nuclear safety", "cut": False},
    "TableResponse": {
        "documents": [{"id": "31986L0594", "text": _TEXT, "numbered": False}],
        "described": "separated by semicolons, UTF-8",
        "text": ["Title", "Abstract"],
        "id": "CELEX",
        "left_out": 1,
        "reasons": ["new-acts.csv:9: no text"],
        "cut": False,
    },
    "TableContents": {
        "described": "sheet 'Acts' (not read: Cover)",
        "sheet": "Acts",
        "sheets": ["Cover", "Acts"],
        "columns": [
            {"name": "CELEX", "example": "31986L0594"},
            {"name": "Title", "example": "Safety of nuclear power stations"},
        ],
        "text": ["Title"],
        "id": "CELEX",
    },
    "ExplainRequest": {"text": _TEXT, "label": "4042"},
    "ExplainResponse": {
        "label": _SAFETY | _VOCABULARY,
        "probability": 0.888,
        "rank": 1,
        "description": _DESCRIPTION,
        "parts": [
            {"name": "svm", "score": 0.097, "rank": 1, "contribution": 5.835},
            {"name": "names", "score": 0.731, "rank": 1, "contribution": 0.758},
        ],
        "keywords": [
            {"term": "nuclear", "weight": 1.702, "contribution": 0.743, "spans": [[10, 17]]}
        ],
        "name_words": [
            {"term": "nuclear", "weight": 0.7, "contribution": 0.306, "spans": [[10, 17]]}
        ],
        "neighbours": [
            {
                "id": "31994D0479",
                "text": "94/479/EC: Council Decision of 29 March 1994 on the conclusion of …",
                "similarity": 0.268,
                "carries": True,
            }
        ],
    },
    "LabelList": {
        "total": 1,
        "labels": [
            _SAFETY
            | {"alt_names": ["Euratom inspection"], "description": _DESCRIPTION}
            | {"keywords": ["nuclear", "radiation"]}
        ],
    },
    "WholeLabel": _SAFETY
    | _VOCABULARY
    | {
        "description": _DESCRIPTION,
        "keywords": [{"term": "nuclear", "weight": 1.702}],
        "nearest": [_STATION | {"similarity": 0.412}],
    },
    "NewLabel": _LEVY,
    "LabelChange": {"name": "carbon border adjustment"},
    "Undone": {"undone": "removed 'carbon border adjustment' (x-1)"},
    "NewFeedback": {
        "text": _TEXT,
        "by": "Ada",
        "decisions": [
            {"key": "a7c1-1", "label": "4042", "verdict": "accepted", "probability": 0.888}
        ],
    },
    "KeptFeedback": {"decisions": [_DECISION]},
    "FeedbackList": {"total": 1, "decisions": [_DECISION], "next": None},
    "KeptDecision": _DECISION,
    "Level": {
        "total": 1,
        "alone": 3104,
        "above": "",
        "labels": [_SAFETY | {"short": _SAFETY["name"], "narrower": 2, "known": True}],
    },
    "Visitor": {"name": "anna", "feedback": "yes", "edit": "no", "why_not": "role", "undo": None},
    "ReviewTexts": {"documents": [{"id": "31986L0594", "text": _TEXT, "source": "new-acts.csv"}]},
    "AddedToReview": _PROGRESS | {"added": 1},
    "NextDocument": {"document": _REVIEWED, "progress": _PROGRESS},
    "ReviewDocument": _REVIEWED,
    "ReviewMark": {"state": "done"},
    "ReviewProgress": _PROGRESS,
    "Info": {
        "name": "eurlex57k",
        "version": "0.1.0",
        "run": "20c6ecf51f71cfcd0d2ca05fc62744d7",
        "documents": 45000,
        "labels": 4271,
        "bands": [
            {"name": "0", "first": 0, "last": 0, "labels": 163},
            {"name": "1-9", "first": 1, "last": 9, "labels": 2267},
            {"name": "10-99", "first": 10, "last": 99, "labels": 1400},
            {"name": "100+", "first": 100, "last": None, "labels": 441},
        ],
        "parts": ["svm", "names", "name coverage", "whole names", "word neighbours", "characters"],
        "thresholds": {"precision 0.8": 0.439, "best F1": 0.393},
        "codes": False,
        "writable": True,
    },
    "RunList": {
        "runs": [
            {"name": "law", "path": "/v1/runs/law", "documents": 45000, "labels": 4271},
            {"name": "library", "path": "/v1/runs/library", "documents": 41333, "labels": 26983},
        ]
    },
    "JobStatus": {
        "id": "7Uq0rJ0Sx2m9yV3cNfT1kw",
        "name": "records.csv",
        "state": "running",
        "documents": 4096,
        "progress": 0.41,
        "left_out": 1,
        "reasons": ["records.csv:17: no text"],
        "error": None,
        "created": "2026-11-16T08:12:07.867+00:00",
        "finished": None,
    },
    "Reloaded": {"labels": 4271, "seconds": 0.586},
    "ProblemResponse": {
        "error": {"message": "There is no label with the id 'nope'. /v1/labels lists all labels."}
    },
}


def add_examples(description: dict[str, Any]) -> None:
    """Put the examples into an OpenAPI description."""
    schemas = description["components"]["schemas"]
    for name in EXAMPLES.keys() & schemas.keys():
        schemas[name]["examples"] = [EXAMPLES[name]]
