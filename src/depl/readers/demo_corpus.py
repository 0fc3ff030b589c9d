"""The corpus of ``depl demo``: the documentation of numpy, scipy and scikit-learn, as installed.

A document is the docstring of a public function, class or method, without its "See Also" and
"Examples" sections. Its labels are what "See Also" named: the authors of the three libraries have
tagged their own pages by hand, with a long tail of rare labels, and every depl install has them
on disk.

With numpy 2.4.6, scipy 1.17.1 and scikit-learn 1.9.1: 1,996 documents (1,634 train, 189 dev, 173
test; median 229 words), 1,918 labels, 2.76 labels a document. By training count, 150 labels occur
0 times, 1,749 occur 1 to 9 times, 19 occur 10 to 99 times, none more. Methods are in because
functions and classes alone give 1,847 documents and 1,823 labels.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import logging
import pkgutil
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from types import ModuleType

from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import CorpusError

_log = logging.getLogger(__name__)

_PACKAGES = ("numpy", "scipy", "sklearn")

# Old names that warn when imported, helpers for tests and builds (some import pytest), modules
# that fetch files, and switches that change the library when imported.
_SKIPPED_MODULES = {
    *(f"numpy.{name}" for name in ("conftest", "core", "distutils", "f2py", "ma.testutils")),
    *(f"numpy.{name}" for name in ("matlib", "testing", "typing")),
    *(f"scipy.{name}" for name in ("conftest", "datasets", "misc", "odr")),
    *(f"sklearn.{name}" for name in ("conftest", "experimental", "externals")),
    "sklearn.utils.estimator_checks",
}

# Only these start a section. Examples print tables, whose underlined rows would otherwise end the
# section and let the rest of it through.
_SECTION_TITLES = {
    *("parameters", "other parameters", "attributes", "class attributes", "methods"),
    *("returns", "yields", "receives", "raises", "warns", "warning", "warnings"),
    *("note", "notes", "references", "see also", "example", "examples"),
}
_CUT_SECTIONS = {"see also", "example", "examples"}

# Pages like "Refer to `numpy.all` for full documentation." have nothing to learn from.
_MIN_WORDS = 20

_UNDERLINE = re.compile(r"\s*[-=~]{3,}\s*")
# Notes on versions tell the library's story, not what a thing does; and scipy prints a set into
# some of them, in an order that changes with the hash seed.
_VERSION_NOTE = re.compile(
    r"^( *)\.\. (?:deprecated|versionadded|versionchanged)::.*(?:\n\1 +.*|\n *(?=\n))*",
    re.MULTILINE,
)
_MARKUP = re.compile(r"(?:(?::[a-z]+)+:)?`+~?")
_ENTRY_NAME = re.compile(
    r":(?:py:)?(?:attr|class|data|func|meth|obj):`~?(?P<role>[\w.]+)(?:\(\))?`"
    r"|`{1,2}~?(?P<quoted>[\w.]+)(?:\(\))?`{1,2}"
    r"|(?P<bare>[A-Za-z_][\w.]*)(?:\(\))?"
)
_SEPARATOR = re.compile(r"\s*(,?)\s*")
_WORD_BREAK = re.compile(r"_|(?<=[a-z])(?=\d*[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def read_docstrings() -> Dataset:
    """Read the demo corpus from the installed numpy, scipy and scikit-learn.

    The same versions give the same corpus on every machine: documents and labels are in the order
    of their ids, and a hash of its id puts a document into train (80 %), dev or test (10 % each).

    Returns
    -------
    Dataset
        Named ``"demo"``. Ids are full names such as ``"numpy.linalg.norm"``, of documents and
        labels alike.

    Raises
    ------
    CorpusError
        If Python was started with ``-OO``, which removes docstrings.
    """
    if sys.flags.optimize >= 2:
        raise CorpusError(
            "The demo corpus is made of docstrings, and Python was started with -OO or "
            "PYTHONOPTIMIZE=2, which removes them. Start it without and give the command again."
        )
    with warnings.catch_warnings():
        # What the libraries say about their own old names is not the reader's business.
        warnings.simplefilter("ignore")
        catalogue = _Catalogue(_PACKAGES)
        pages = _labelled_pages(catalogue)
    names = sorted({name for _, related in pages.values() for name in related})
    labels = LabelSet(Label(n, label_name(n), catalogue.bare_names(n)) for n in names)
    members: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for name in sorted(pages):
        members[split_of(name)].append(name)
    splits = {
        split: Corpus.from_rows(
            ids,
            [pages[i][0] for i in ids],
            [[labels.index(name) for name in pages[i][1]] for i in ids],
            labels,
        )
        for split, ids in members.items()
    }
    return Dataset(labels, splits, name="demo")


def _labelled_pages(catalogue: _Catalogue) -> dict[str, tuple[str, set[str]]]:
    """Text and labels of every page that has both, by name."""
    pages: dict[str, tuple[str, set[str]]] = {}
    seen: set[str] = set()
    unresolved = 0
    # Shallow names first: where a docstring is shared (numpy.sin, numpy.ma.sin), one copy stays
    # and it is that of the plainer name. Two copies could fall into train and test.
    for name, thing in sorted(catalogue.pages(), key=lambda page: (page[0].count("."), page[0])):
        sections = split_sections(thing.__doc__ or "")
        entries = [e for title, body in sections if title == "see also" for e in see_also(body)]
        if not entries:
            continue
        found = [catalogue.resolve(entry, name, thing) for entry in entries]
        unresolved += found.count(None)
        related = {label for label in found if label is not None}
        bare = name.rpartition(".")[2]
        text = _prose(sections, bare)
        key = " ".join(text.split())
        if related and key not in seen and len(key.split()) >= _MIN_WORDS:
            seen.add(key)
            pages[name] = (f"{in_words(bare)}\n\n{text}", related)
    _log.debug("%d pages; %d See Also entries name nothing public", len(pages), unresolved)
    return pages


def _prose(sections: list[tuple[str, str]], bare_name: str) -> str:
    """What may be read of a page: no section that gives labels away, little markup."""
    text = "\n\n".join(body for title, body in sections if title not in _CUT_SECTIONS)
    # Compiled functions open with paragraphs that only repeat their call, and a ufunc's is long
    # and the same for all: an encoder would spend its first forty tokens on it.
    call = rf"\s*(?:(?:\w+\.)?{re.escape(bare_name)}\(.*(?:\n.*\S.*)*\n\s*\n)*"
    text = re.sub(rf"\A{call}", "", _VERSION_NOTE.sub("", text))
    return _MARKUP.sub("", text).strip()


def split_of(document_id: str) -> str:
    """The split a document belongs to: a function of its id alone.

    Examples
    --------
    >>> split_of("numpy.ravel"), split_of("sklearn.cluster.KMeans")
    ('train', 'test')
    """
    bucket = int(hashlib.sha256(document_id.encode()).hexdigest()[:8], 16) % 10
    return {8: "dev", 9: "test"}.get(bucket, "train")


def in_words(name: str) -> str:
    """An identifier in words; capitals survive only in acronyms.

    Examples
    --------
    >>> [in_words(n) for n in ("LogisticRegressionCV", "KMeans", "linear_model", "arctan2")]
    ['logistic regression CV', 'k means', 'linear model', 'arctan2']
    """
    parts = _WORD_BREAK.sub(" ", name).split()
    return " ".join(part if len(part) > 1 and part.isupper() else part.lower() for part in parts)


def label_name(full_name: str) -> str:
    """A label's name for people and text encoders.

    The thing itself comes first, because descriptions are cut at the end; where it lives follows
    in brackets, because that separates numpy.ma.sort from numpy.sort and says what eigsh is about.

    Examples
    --------
    >>> label_name("sklearn.linear_model.LogisticRegression")
    'logistic regression (sklearn linear model)'
    """
    home, _, bare = full_name.rpartition(".")
    return f"{in_words(bare)} ({' '.join(in_words(part) for part in home.split('.'))})"


def split_sections(docstring: str) -> list[tuple[str, str]]:
    """Titles (lower case) and bodies of a numpydoc docstring; what comes first has the title ""."""
    lines = inspect.cleandoc(docstring).splitlines()
    sections: list[tuple[str, list[str]]] = [("", [])]
    previous_is_title = False
    for line, following in zip(lines, [*lines, ""][1:], strict=True):
        title = line.strip().rstrip(":").lower()
        underlined = _UNDERLINE.fullmatch(following) is not None
        if previous_is_title and _UNDERLINE.fullmatch(line):
            previous_is_title = False
            continue
        # A few authors forget to underline "See Also"; alone on its line it is still a title.
        previous_is_title = (title in _SECTION_TITLES and underlined) or title == "see also"
        if previous_is_title:
            sections.append((title, []))
        else:
            sections[-1][1].append(line)
    return [(title, textwrap.dedent("\n".join(body)).strip("\n")) for title, body in sections]


def see_also(body: str) -> list[str]:
    r"""The names in the body of a "See Also" section, in order, as they are written.

    Examples
    --------
    >>> see_also("ravel, flat : Flatten.\n:func:`~numpy.sort`\n    Not reshape, which keeps all.")
    ['ravel', 'flat', 'numpy.sort']
    """
    # Indented lines are descriptions, and may mention anything.
    entries = [line for line in body.splitlines() if line and not line[0].isspace()]
    return [name for entry in entries for name in _entry_names(re.sub(r"^[*-] +", "", entry))]


def _entry_names(entry: str) -> list[str]:
    names, position = [], 0
    while match := _ENTRY_NAME.match(entry, position):
        names.append(match["role"] or match["quoted"] or match["bare"])
        separator = _SEPARATOR.match(entry, match.end())
        position = separator.end() if separator else match.end()
        if separator is None or not separator[1]:
            break
    if position == len(entry) or entry[position] == ":":
        return names
    # Not "name, name : description" but a sentence: only what is marked up as a name counts.
    marked = (match["role"] or match["quoted"] for match in _ENTRY_NAME.finditer(entry))
    return [name for name in marked if name]


class _Catalogue:
    """Every public function and class of some packages, under one name each."""

    def __init__(self, packages: Iterable[str]) -> None:
        self._packages: dict[str, ModuleType] = {}
        self._things: dict[int, object] = {}
        aliases: dict[int, list[str]] = {}
        for package in packages:
            for module in _public_modules(package):
                self._packages.setdefault(package, module)
                for name, thing in _public_things(module):
                    self._things[id(thing)] = thing
                    aliases.setdefault(id(thing), []).append(f"{module.__name__}.{name}")
        self._names = {key: _best_name(names, self._things[key]) for key, names in aliases.items()}
        self._aliases = {self._names[key]: sorted(names) for key, names in aliases.items()}

    def pages(self) -> Iterator[tuple[str, object]]:
        """Names and objects: functions, classes, and what those classes define themselves."""
        for key, name in self._names.items():
            thing = self._things[key]
            yield name, thing
            for attribute in list(vars(thing)) if isinstance(thing, type) else ():
                value = getattr(thing, attribute, None)
                if not attribute.startswith("_") and _is_documented_member(value):
                    yield f"{name}.{attribute}", value

    def bare_names(self, name: str) -> tuple[str, ...]:
        """Last parts of all the names a thing goes by, that of ``name`` first."""
        names = [name, *self._aliases.get(name, ())]
        return tuple(dict.fromkeys(other.rpartition(".")[2] for other in names))

    def resolve(self, entry: str, page: str, thing: object) -> str | None:
        """The full name of what an entry on the page of a thing names; None if nothing public."""
        # Authors write names as seen from the page, from the file the code is in, in full, or
        # from numpy; tried in this order.
        home = getattr(thing, "__module__", None) or ""
        for scope in [*_enclosing(page), home, *_enclosing(home), "", "numpy"]:
            found = self._lookup(f"{scope}.{entry}".lstrip("."))
            if found is not None and found != page:
                return found
        return None

    def _lookup(self, full_name: str) -> str | None:
        package, *path = full_name.split(".")
        owner: object = None
        thing: object = self._packages.get(package)
        for attribute in path:
            owner = thing
            try:
                thing = getattr(owner, attribute)
            except (AttributeError, ImportError):  # scikit-learn's experimental names raise these
                return None
        if id(thing) in self._names:
            return self._names[id(thing)]
        if not isinstance(owner, type) or not _is_documented_member(thing):
            return None
        # An inherited method belongs to the class that defines it, if that one is public.
        definers = [cls for cls in owner.__mro__ if path[-1] in vars(cls)]
        public = [cls for cls in [*definers[:1], owner] if id(cls) in self._names]
        return f"{self._names[id(public[0])]}.{path[-1]}" if public else None


def _public_modules(name: str) -> Iterator[ModuleType]:
    """The module of this name and all public modules below it."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # whatever an optional part of a library may raise
        _log.debug("%s cannot be imported and is left out: %r", name, error)
        return
    yield module
    for info in pkgutil.iter_modules(getattr(module, "__path__", [])):
        full_name = f"{name}.{info.name}"
        private = info.name.startswith("_") or info.name == "tests"
        if not private and full_name not in _SKIPPED_MODULES:
            yield from _public_modules(full_name)


def _public_things(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Names and values of the documented callables that a module offers as its own."""
    offered = getattr(module, "__all__", None)
    # vars() and not getattr(): modules that only forward to new places warn when asked.
    for name, thing in vars(module).items():
        if name.startswith("_") or not callable(thing) or not isinstance(thing.__doc__, str):
            continue
        home = getattr(thing, "__module__", None) or module.__name__
        package = home.partition(".")[0]
        if offered is None:
            own = home.startswith(module.__name__)
        else:
            own = name in offered and package in (module.__name__.partition(".")[0], "builtins")
        if own:
            yield name, thing


def _best_name(names: Iterable[str], thing: object) -> str:
    """The shallowest name; of several, the one in the code (absolute, not abs) or the shortest."""
    own = getattr(thing, "__name__", None)
    return min(names, key=lambda n: (n.count("."), n.rpartition(".")[2] != own, len(n), n))


def _is_documented_member(value: object) -> bool:
    """Whether a class attribute is a method or a property with a docstring."""
    is_member = inspect.isroutine(value) or inspect.isdatadescriptor(value)
    return is_member and isinstance(value.__doc__, str)


def _enclosing(name: str) -> list[str]:
    """The modules and classes around a name, innermost first."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]
