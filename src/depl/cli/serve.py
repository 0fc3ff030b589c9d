"""``depl serve``."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from depl.cli.console import count, err
from depl.core.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from fastapi import FastAPI


def serve(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RUN...",
            help="Run folder, as written by `depl fit`; several, each with a name, are served "
            "together.",
        ),
    ],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65_535, help="Port; 0 picks one that is free."
        ),
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TOKEN",
            envvar="DEPL_TOKEN",
            help="Token that clients must send to edit labels. Other users of this machine can see "
            "command-line options: prefer the variable or --token-file.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="File that contains the token."),
    ] = None,
    tokens_file: Annotated[
        Path | None,
        typer.Option(
            "--tokens-file",
            metavar="FILE",
            help="File with a line for each token of a person or program; `depl token` makes them.",
        ),
    ] = None,
    token_for_all: Annotated[
        bool, typer.Option("--token-for-all", help="Require a token for every request.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="N",
            min=0.01,
            help="Average number of requests per second allowed to one token or address.",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            help="Name by which clients may address the service, such as that of a proxy; may be "
            "repeated. Names of this machine and addresses need not be given.",
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--cors-origin",
            metavar="ORIGIN",
            help="Other site, such as https://app.example.org, whose pages may use the API from a "
            "browser; may be repeated.",
        ),
    ] = None,
    certfile: Annotated[
        Path | None,
        typer.Option("--certfile", metavar="FILE", help="Certificate, to serve HTTPS."),
    ] = None,
    keyfile: Annotated[
        Path | None,
        typer.Option("--keyfile", metavar="FILE", help="Private key of the certificate."),
    ] = None,
    allow_writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes", help="Let clients on this machine edit labels without a token."
        ),
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Let nobody edit labels.")] = False,
    max_batch: Annotated[
        int,
        typer.Option("--max-batch", metavar="N", min=1, help="Maximum number of texts in a batch."),
    ] = 32,
    max_wait_ms: Annotated[
        float,
        typer.Option(
            "--max-wait-ms",
            metavar="MS",
            min=0,
            help="Milliseconds to wait for more texts before a batch is started.",
        ),
    ] = 5.0,
    queue: Annotated[
        int,
        typer.Option(
            "--queue", metavar="N", min=1, help="Answer 503 when this many texts are waiting."
        ),
    ] = 1024,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.001, help="Time limit for a request, in seconds."
        ),
    ] = 60.0,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            metavar="N",
            min=0,
            help="How many files may wait to be labelled in the background; with 0, none may.",
        ),
    ] = 20,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help="Number of processes, by default 1; each uses one core, and all share the weights "
            "in memory. With --ray, their number on all machines together, by default one on each.",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="local|auto|HOST:PORT",
            help="Answer on all machines of a Ray cluster: this machine alone, the cluster that it "
            "is a node of, or the one whose head has this address (pip install "
            "'depl\\[ray-serve]').",
        ),
    ] = None,
    learn: Annotated[
        int | None,
        typer.Option(
            "--learn",
            metavar="N",
            min=1,
            help="Learn from feedback in the background after every N decisions, or after a minute "
            "without new ones.",
        ),
    ] = None,
    log_requests: Annotated[
        bool,
        typer.Option("--log-requests", help="Log every request as JSON on standard error."),
    ] = False,
) -> None:
    """Serve runs over HTTP, as a REST API and a web page.

    Ctrl-C or SIGTERM stops the service; SIGHUP reloads the runs.
    """
    if importlib.util.find_spec("uvicorn") is None:
        raise MissingExtraError("uvicorn", "serve", "The service")
    from depl.server.app import address_of
    from depl.server.batching import Batching
    from depl.server.learning import Learners
    from depl.server.listening import listen
    from depl.server.plan import Plan, label_counts
    from depl.server.process import log_to_stderr, reload_on_hangup, run_app
    from depl.server.security import Access, is_loopback
    from depl.server.tokens import Buckets, Role, read_tokens

    if ray is not None:
        _refuse_on_several_machines(certfile, port)
    folders = _named(runs, address_of)
    token = _token(token, token_file)
    tokens = () if tokens_file is None else read_tokens(tokens_file)
    local = is_loopback(host)
    if allow_writes and token is None and not tokens and not local:
        raise ConfigError(
            f"--allow-writes without a token is for this machine only, but {host} can be reached "
            f"from other machines. Set DEPL_TOKEN, or omit --host."
        )
    access = Access(
        token=token,
        tokens=tokens,
        token_for_all=token_for_all,
        local_writes=allow_writes and local,
        read_only=read_only,
        hosts=tuple(name.lower() for name in (host, *(allowed_host or ()))),
        origins=tuple(origin.rstrip("/").lower() for origin in cors_origin or ()),
        buckets=None if rate is None else Buckets(rate),
    )
    batching = Batching(
        max_batch=max_batch, max_wait=max_wait_ms / 1000, queue=queue, timeout=timeout
    )
    plan = Plan(
        folders=folders,
        access=access,
        batching=batching,
        most_jobs=jobs,
        tls=_tls(certfile, keyfile),
        log_requests=log_requests,
    )
    if learn is not None and not hasattr(signal, "SIGHUP"):
        raise ConfigError("--learn is not available on Windows. Call depl learn, and reload.")
    log_to_stderr(requests=log_requests)
    deciders = any(known.role >= Role.FEEDBACK for known in access.known)
    if (deciders or access.local_writes) and not read_only:
        _warn_of_unwritable(folders.values())
    # A problem with the address shows before loading.
    with listen(host, port) as listener, Learners(folders.values(), learn) as learners:
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if plan.tls is None else "https"
        port = listener.getsockname()[1]
        address = f"{scheme}://{shown}:{port}"

        def say_where(labels: Mapping[str, int]) -> None:
            for name, n in labels.items():
                where = f"runs/{name}/" if len(labels) > 1 else ""
                err.print(f"{escape(name)}: {count(n, 'label')} at {address}/{where}")
            if err.is_terminal:
                err.print("[dim]Open it in a browser; Ctrl-C stops the service.[/]")
            if not local and not access.known:
                err.print(
                    "[yellow]Warning:[/] everybody who can reach this machine can use the service. "
                    "Set DEPL_TOKEN and --token-for-all to require a token."
                )
            learners.start()

        if ray is not None:
            from depl.server.replicas import run_replicas

            listener.close()  # Ray listens there, on all machines
            run_replicas(plan, ray, host=host, port=port, replicas=workers, started=say_where)
            return
        if workers is not None and workers > 1:
            from depl.server.supervisor import run_workers

            run_workers(plan, listener, workers, say_where)
            _say_stopped()
            return
        models = plan.load()

        def begin(app: FastAPI) -> None:
            reload_on_hangup(app)  # first: whoever reads the address may send SIGHUP at once
            say_where(label_counts(models))

        run_app(plan.app(models), listener, plan.tls, begin)
    _say_stopped()


def _say_stopped() -> None:
    """One line, below the ^C that a terminal shows."""
    err.print("\nStopped." if err.is_terminal else "Stopped.")


def _warn_of_unwritable(folders: Iterable[Path]) -> None:
    """Say which runs cannot be changed, before somebody's work is refused."""
    for folder in folders:
        kept = [folder / name for name in ("labels", "feedback", "review")]
        files = [path for there in kept if there.is_dir() for path in there.iterdir()]
        paths = [folder, *(path for path in [*kept, *files] if path.exists())]
        closed = next((path for path in paths if not os.access(path, os.W_OK)), None)
        if folder.is_dir() and closed is not None:
            err.print(
                f"[yellow]Warning:[/] {escape(str(closed))} is not writable, so edits of labels "
                f"and feedback cannot be saved and will be refused. Give the user that runs the "
                f"service write permission for {escape(str(folder))} and everything in it."
            )


def _refuse_on_several_machines(certfile: Path | None, port: int) -> None:
    if certfile is not None:
        raise ConfigError(
            "--certfile is for one machine. With --ray, let the load balancer that distributes "
            "requests among the machines have the certificate."
        )
    if port == 0:
        raise ConfigError("With --ray all machines listen at one port: name it with --port.")


def _named(runs: list[str], address_of: Callable[[str], str]) -> dict[str, Path]:
    """The folders of the runs by their names: law=runs/a has one, runs/a that of the folder."""
    found: dict[str, Path] = {}
    for run in runs:
        name, equals, folder = run.partition("=")
        if not equals or Path(run).exists():
            name, folder = address_of(Path(run).resolve().name), run
        if name != address_of(name):
            raise ConfigError(
                f"The name of a run becomes part of its address: letters, digits and . _ - only; "
                f"got {name!r:.100}."
            )
        if name in found:
            raise ConfigError(
                f"Two runs are called {name}. Give them other names: NAME={found[name]}."
            )
        found[name] = Path(folder)
    return found


def _tls(certificate: Path | None, key: Path | None) -> tuple[Path, Path | None] | None:
    """Certificate and key; read once here, so that what is wrong shows before the run is loaded."""
    if certificate is None:
        if key is not None:
            raise ConfigError(
                "--keyfile needs --certfile, the certificate that belongs to the key."
            )
        return None
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"Cannot serve HTTPS with the certificate {certificate}: {error}. Give a PEM file with "
            f"--certfile, and its key without a password with --keyfile."
        ) from error
    return certificate, key


def _token(token: str | None, file: Path | None) -> str | None:
    if file is None:
        return token
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the token from {file}: {error}.") from error
