"""A client of the service: what `depl serve` answers, as Python objects.

It needs httpx (``pip install 'depl[client]'``) and nothing else of depl's.
"""

from depl.client.answers import FoundLabel, JobProgress, LabelDetails, SuggestedLabel
from depl.client.client import Client
from depl.client.connection import ServiceError

__all__ = [
    "Client",
    "FoundLabel",
    "JobProgress",
    "LabelDetails",
    "ServiceError",
    "SuggestedLabel",
]
