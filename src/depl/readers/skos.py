"""Vocabularies in SKOS, read with rdflib: Turtle, RDF/XML, JSON-LD and N-Triples."""

from __future__ import annotations

import logging
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from depl.core.corpus import Label
from depl.core.errors import CorpusError, MissingExtraError
from depl.readers.fields import parse_json
from depl.readers.files import DAMAGE, Source, bare_suffix
from depl.readers.problems import Problems
from depl.readers.spellings import tidy

if TYPE_CHECKING:
    from rdflib import Graph

SYNTAXES = {
    ".ttl": ("turtle", "Turtle"),
    ".n3": ("n3", "Notation3"),
    ".nt": ("nt", "N-Triples"),
    ".rdf": ("xml", "RDF/XML"),
    ".xml": ("xml", "RDF/XML"),
    ".owl": ("xml", "RDF/XML"),
    ".skos": ("xml", "RDF/XML"),
    ".jsonld": ("json-ld", "JSON-LD"),
    ".json": ("json-ld", "JSON-LD"),
}
"""Suffixes of files, before a compression's: rdflib's name of the syntax, and everybody's."""

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_SKOSXL = "http://www.w3.org/2008/05/skos-xl#"
_SHOWN = 12  # languages in a message

Words = dict[str, list[tuple[str, str]]]  # by URI: language ("" for none) and text, sorted


class Concepts(NamedTuple):
    """The concepts of a vocabulary as labels.

    Parameters
    ----------
    labels : list of Label
        In the order of their ids.
    also : dict of str to str
        Other identifiers, URI or notation, and the ids that they mean.
    described : str
        What was found, in words.
    """

    labels: list[Label]
    also: dict[str, str]
    described: str


def read_concepts(path: Path, language: str | None = None) -> Concepts:
    """The concepts of a SKOS file.

    Parameters
    ----------
    path : Path
        The file; its suffix tells the syntax.
    language : str, optional
        The language of the names, such as "de"; names in other languages are other names. It may
        be left out where most concepts are named in one language only.
    """
    graph = _parsed(path)
    uris = _concepts(graph, path)
    skos = _Skos(graph, uris)
    names = skos.names("prefLabel")
    language = _language(path, names, len(uris), language)
    notations = skos.words("notation")
    by_notation = _identify(uris, notations)
    ids = {uri: notations[uri][0][1] if by_notation else uri for uri in uris}
    other_names, hidden = skos.names("altLabel"), skos.names("hiddenLabel")
    notes = [skos.words(name) for name in ("definition", "scopeNote")]
    broader = skos.broader()
    labels, unnamed, foreign = [], 0, 0
    for uri in sorted(uris, key=ids.__getitem__):
        own = _in_order(names.get(uri, ()), language)
        others = _in_order([*other_names.get(uri, ()), *hidden.get(uri, ())], language)
        name = own[0][1] if own else _tail(uri, notations)
        unnamed += not own
        foreign += bool(own) and not _speaks(own[0][0], language)
        alt_names = dict.fromkeys(x for _, x in (*own, *others) if x != name)
        label = Label(
            ids[uri],
            name,
            tuple(alt_names),
            " ".join(_in_order(n[uri], language)[0][1] for n in notes if uri in n),
            tuple(sorted(ids[parent] for parent in broader[uri])),
        )
        labels.append(label)
    also = dict(ids)
    for uri, found in notations.items():
        for _, notation in found:
            also.setdefault(notation, ids[uri])
    described = f"{SYNTAXES[bare_suffix(path).lower()][1]}, {len(labels):,} concepts"
    described += f", names in {language!r}" if language else ""
    described += f", ids are {'notations' if by_notation else 'URIs'}"
    if foreign:
        described += f"; {foreign:,} named in another language, for lack of one in {language!r}"
    if unnamed:
        described += f"; {unnamed:,} without a name, so the id is taken"
    return Concepts(labels, also, described)


def _parsed(path: Path) -> Graph:
    try:
        from rdflib import Graph
    except ModuleNotFoundError:
        raise MissingExtraError("rdflib", "skos", f"Reading {path.name}") from None

    syntax, said = SYNTAXES[bare_suffix(path).lower()]
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)  # one line for every odd date
    try:
        with Source(path, Problems()).open() as stream:
            raw = stream.read()
    except DAMAGE as error:
        raise CorpusError(f"{path} cannot be read: {error}. Copy or compress it again.") from None
    try:
        if syntax == "json-ld":
            _refuse_remote_contexts(path, parse_json(raw.decode("utf-8-sig")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # rdflib's of its own classes
            return Graph().parse(data=raw, format=syntax)
    except CorpusError:
        raise
    except Exception as error:  # each of rdflib's parsers has errors of its own
        why = " ".join(str(error).split())
        raise CorpusError(
            f"{path} cannot be read as {said}: {why:.200}. Check that it is complete, and that its "
            f"suffix tells its syntax: .ttl Turtle, .rdf RDF/XML, .jsonld JSON-LD, .nt N-Triples."
        ) from None


def _refuse_remote_contexts(path: Path, value: object) -> None:
    """What a context on the web says today, it may not say tomorrow; nothing is fetched."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo += value
        elif isinstance(value, dict):
            context = value.get("@context")
            contexts = context if isinstance(context, list) else [context]
            address = next((x for x in contexts if isinstance(x, str)), None)
            if address is not None:
                raise CorpusError(
                    f"{path} has its context at {address}, and depl fetches nothing. Put the "
                    f"context into the file, or save the vocabulary as Turtle."
                )
            todo += value.values()


def _concepts(graph: Graph, path: Path) -> list[str]:
    """The URIs of all concepts that are in use."""
    from rdflib import OWL, RDF, Literal, URIRef

    found = list(graph.subjects(RDF.type, URIRef(_SKOS + "Concept"), unique=True))
    if not found:
        raise CorpusError(
            f"{path} has {len(graph):,} statements, and none says that something is a "
            f"skos:Concept. Give a vocabulary in SKOS, or a table with the columns id and name."
        )
    gone = set(graph.subjects(OWL.deprecated, Literal(True)))
    return sorted(str(x) for x in found if isinstance(x, URIRef) and x not in gone)


class _Skos:
    """What a graph says about its concepts."""

    def __init__(self, graph: Graph, uris: Sequence[str]) -> None:
        self._graph, self._uris = graph, set(uris)

    def _pairs(self, predicate: str) -> Iterator[tuple[str, object]]:
        from rdflib import URIRef

        for subject, value in self._graph.subject_objects(URIRef(predicate)):
            yield str(subject), value

    def words(self, name: str) -> Words:
        """The texts of a property."""
        return self._sorted(self._pairs(_SKOS + name))

    def names(self, name: str) -> Words:
        """The names of a kind, given as texts or, in SKOS-XL, as things with a text."""
        forms = defaultdict(list)
        for thing, form in self._pairs(_SKOSXL + "literalForm"):
            forms[thing].append(form)
        extended = (
            (uri, form) for uri, thing in self._pairs(_SKOSXL + name) for form in forms[str(thing)]
        )
        return self._sorted([*self._pairs(_SKOS + name), *extended])

    def _sorted(self, pairs: Iterable[tuple[str, object]]) -> Words:
        from rdflib import Literal

        found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for uri, value in pairs:
            if uri in self._uris and isinstance(value, Literal) and (text := tidy(str(value))):
                found[uri].add(((value.language or "").lower(), text))
        return {uri: sorted(texts) for uri, texts in found.items()}

    def broader(self) -> Mapping[str, set[str]]:
        """The concepts directly above each one."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        up = self._pairs(_SKOS + "broader")
        down = ((str(low), high) for high, low in self._pairs(_SKOS + "narrower"))
        for low, high in (*up, *down):
            if low in self._uris and str(high) in self._uris:
                found[low].add(str(high))
        return found


def _language(path: Path, names: Words, n: int, asked: str | None) -> str:
    """The language of the names: the one asked for, or the only one of most concepts."""
    named = Counter(tag for texts in names.values() for tag in {tag for tag, _ in texts})
    order = sorted(named, key=lambda tag: (-named[tag], tag))
    listing = ", ".join(f"{tag or 'none'} ({named[tag]:,})" for tag in order[:_SHOWN])
    listing += ", ..." if len(named) > _SHOWN else ""
    if asked is not None:
        asked = asked.strip().lower()
        if not any(_speaks(tag, asked) for tag in named):
            raise CorpusError(
                f"No concept of {path} has a name in the language {asked!r}. The languages, and "
                f"the concepts named in each: {listing or 'none at all'}."
            )
        return asked
    usual = [tag for tag, k in named.items() if k > n / 2]
    if len(named) <= 1 or len(usual) == 1:
        return (usual or list(named) or [""])[0]
    raise CorpusError(
        f"{path} has names in several languages: {listing}. Say which are the names of the labels, "
        f"for example --language {next(filter(None, order))} (in Python: language=...); "
        f"the others are kept as other names."
    )


def _speaks(tag: str, language: str) -> bool:
    """Whether a language tag, such as de-at, is of a language."""
    return tag == language or tag.startswith(f"{language}-")


def _in_order(texts: Iterable[tuple[str, str]], language: str) -> list[tuple[str, str]]:
    """Texts in the language first, then those in none, in English and in others."""
    return sorted(texts, key=lambda x: (not _speaks(x[0], language), x[0] != "", x[0] != "en"))


def _identify(uris: Sequence[str], notations: Words) -> bool:
    """Whether every concept has just one notation, and no other has it."""
    found = [notations.get(uri, []) for uri in uris]
    return all(len(x) == 1 for x in found) and len({x[0][1] for x in found}) == len(uris)


def _tail(uri: str, notations: Words) -> str:
    """What to call a concept that has no name."""
    if uri in notations:
        return notations[uri][0][1]
    return uri.rstrip("/#").replace("#", "/").rpartition("/")[2] or uri
