"""The client itself: a method for everything that the service does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from depl.client.answers import FoundLabel, JobProgress, LabelDetails, SuggestedLabel, made
from depl.client.connection import Connection, ServiceError
from depl.core.errors import DeplError, MissingExtraError

if TYPE_CHECKING:
    import httpx

_PAUSE = 0.2  # seconds between two looks at a job, at first


class Client:
    """A client of a running service.

    Where the service has no room for a request at the moment, the client waits as long as it is
    told to and tries again, for a minute in all.

    Parameters
    ----------
    url : str
        The service's address.
    token : str, optional
        What it wants for changes, or for everything.
    run : str, optional
        Which of several runs; by default the first.
    timeout : float
        Seconds to wait for an answer.
    verify : bool, str or ssl.SSLContext
        How an HTTPS certificate is checked, as httpx takes it.

    Examples
    --------
    >>> client = Client("http://localhost:8000")  # doctest: +SKIP
    >>> client.predict(["Safety of nuclear power stations"], k=1)  # doctest: +SKIP
    [[SuggestedLabel(id='4042', name='nuclear safety', probability=0.888, ...)]]
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        run: str | None = None,
        timeout: float = 60.0,
        verify: Any = True,  # noqa: ANN401 - what httpx takes
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtraError("httpx", "client", "The client") from error
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        http = httpx.Client(
            base_url=url.rstrip("/"), headers=headers, timeout=timeout, verify=verify
        )
        root = "/v1" if run is None else f"/v1/runs/{quote(run, safe='')}"
        self._connection = Connection(http, root)
        self._ask = self._connection.ask

    @classmethod
    def over(cls, http: httpx.Client, run: str | None = None) -> Client:
        """A client that sends its requests with one of httpx, which has address and headers."""
        client = cls(run=run)
        client.close()
        client._connection.http = http
        return client

    def __repr__(self) -> str:
        return f"Client({self._connection.http.base_url}, {self._connection.root})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.http.close()

    # Suggestions

    def predict(
        self,
        texts: Sequence[str],
        k: int | None = None,
        *,
        threshold: float | str | None = None,
        band: str | None = None,
        ancestors: bool = True,
    ) -> list[list[SuggestedLabel]]:
        """The labels of every text, the best first.

        Parameters
        ----------
        texts : sequence of str
            At most 256.
        k : int, optional
            Labels per text, at most: 5, or 100 where a threshold in words says how many.
        threshold : float or str, optional
            Leave out labels with a lower probability; "precision=0.8" and "f1" are words for it.
        band : str, optional
            Only labels of this frequency band.
        ancestors : bool
            Whether labels may be broader than another suggestion.
        """
        wish = {"k": k, "threshold": threshold, "band": band, "ancestors": ancestors}
        given = {name: value for name, value in wish.items() if value is not None}
        answer = self._ask("POST", "/predict", json={"texts": list(texts), **given})
        return [[made(SuggestedLabel, x) for x in row["labels"]] for row in answer["results"]]

    def explain(self, text: str, label: str) -> dict[str, Any]:
        """Why a label, given by its id, is suggested for a text, or why not."""
        return dict(self._ask("POST", "/explain", json={"text": text, "label": label}))

    def extract(self, path: str | Path) -> str:
        """The text of a PDF, Word, HTML or text file."""
        path = Path(path)
        answer = self._ask("POST", "/extract", params={"name": path.name}, content=_bytes_of(path))
        return str(answer["text"])

    # Labels

    def labels(
        self, search: str = "", *, band: str = "", sort: str = "name", page: int = 200
    ) -> Iterator[FoundLabel]:
        """All labels, or those that a search finds; they are fetched page by page."""
        offset, total = 0, 1
        while offset < total:
            asked = {"search": search, "band": band, "sort": sort, "offset": offset, "limit": page}
            answer = self._ask("GET", "/labels", params=asked)
            total = answer["total"]
            offset += page
            for label in answer["labels"]:
                yield made(FoundLabel, label)

    def label(self, id: str) -> LabelDetails:
        """All that the run knows about a label."""
        return made(LabelDetails, self._ask("GET", _of(id)))

    def add_label(
        self,
        id: str,
        name: str,
        *,
        alt_names: Sequence[str] = (),
        description: str | None = None,
        examples: Sequence[str] = (),
    ) -> LabelDetails:
        """Add a label, which can be suggested at once."""
        body = {"id": id, "name": name, "alt_names": list(alt_names), "examples": list(examples)}
        if description is not None:
            body["description"] = description
        return made(LabelDetails, self._ask("POST", "/labels", json=body))

    def change_label(
        self,
        id: str,
        *,
        name: str | None = None,
        alt_names: Sequence[str] | None = None,
        description: str | None = None,
        examples: Sequence[str] | None = None,
    ) -> LabelDetails:
        """Change what is given; ``examples`` are further documents with the label."""
        wish = {
            "name": name,
            "alt_names": None if alt_names is None else list(alt_names),
            "description": description,
            "examples": None if examples is None else list(examples),
        }
        given = {field: value for field, value in wish.items() if value is not None}
        return made(LabelDetails, self._ask("PATCH", _of(id), json=given))

    def remove_label(self, id: str) -> None:
        """Remove a label; it is never suggested again."""
        self._ask("DELETE", _of(id))

    def undo(self) -> str:
        """Undo the last change of labels; returns which it was."""
        return str(self._ask("POST", "/labels/undo")["undone"])

    # Feedback

    def feedback(
        self,
        text: str,
        decisions: Sequence[Mapping[str, Any]],
        *,
        id: str | None = None,
        source: str | None = None,
        by: str | None = None,
    ) -> list[dict[str, Any]]:
        """Keep what somebody decided about the labels of a document.

        A decision has ``key``, ``label``, ``verdict`` ("accepted", "rejected" or "added") and,
        where it was shown, ``probability``. With the same keys it is safe to send again.
        """
        wish = {"id": id, "source": source, "by": by}
        given = {field: value for field, value in wish.items() if value is not None}
        body = {"text": text, "decisions": [dict(x) for x in decisions], **given}
        return list(self._ask("POST", "/feedback", json=body)["decisions"])

    # Files

    def start_job(
        self,
        path: str | Path,
        *,
        output: str = "csv",
        k: int | None = None,
        threshold: float | str | None = None,
        text: str | None = None,
        id: str | None = None,
        wide: bool = False,
    ) -> JobProgress:
        """Send a file of documents to be labelled in the background."""
        path = Path(path)
        wish = {"k": k, "threshold": threshold, "text": text, "id": id}
        given = {field: value for field, value in wish.items() if value is not None}
        params = {"name": path.name, "output": output, "wide": str(wide).lower(), **given}
        return made(JobProgress, self._ask("POST", "/jobs", params=params, content=_bytes_of(path)))

    def job(self, id: str) -> JobProgress:
        """How far a job is."""
        return made(JobProgress, self._ask("GET", f"/jobs/{quote(id, safe='')}"))

    def delete_job(self, id: str) -> None:
        """Cancel a job, or delete its result."""
        self._ask("DELETE", f"/jobs/{quote(id, safe='')}")

    def save_result(self, id: str, path: str | Path) -> None:
        """Write the result of a finished job to a file."""
        self._connection.save(f"/jobs/{quote(id, safe='')}/result", Path(path))

    def label_file(self, path: str | Path, output: str | Path, **wish: Any) -> JobProgress:  # noqa: ANN401
        """Label the documents of a file, wait for the end, and write the result to another.

        ``wish`` is as for ``start_job``; the suffix of ``output`` is the format.
        """
        output = Path(output)
        job = self.start_job(path, output=output.suffix.lstrip(".").lower() or "csv", **wish)
        pause = _PAUSE
        while job.state not in ("finished", "failed"):
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
            job = self.job(job.id)
        if job.state == "finished":
            self.save_result(job.id, output)
        self.delete_job(job.id)
        if job.state == "failed":
            raise ServiceError(job.error or "The job has failed.")
        return job

    # The service

    def info(self) -> dict[str, Any]:
        """What the run is, its bands and thresholds."""
        return dict(self._ask("GET", "/info"))

    def runs(self) -> list[str]:
        """The names of all runs of the service, the default first."""
        answer = self._connection.checked("GET", "/v1/runs")
        return [run["name"] for run in answer.json()["runs"]]

    def reload(self) -> int:
        """Let the service load the run from disk again; returns its number of labels."""
        return int(self._ask("POST", "/reload")["labels"])


def _of(label_id: str) -> str:
    return f"/labels/{quote(label_id, safe='')}"


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DeplError(f"Cannot read {path}: {error.strerror or error}.") from error
