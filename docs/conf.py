"""The documentation site: ``make docs`` builds it into docs/_build/html."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import numpy.typing
from docutils import nodes
from sphinx.addnodes import download_reference, literal_emphasis, pending_xref
from sphinx.application import Sphinx

_Scalar = TypeVar("_Scalar")


class NDArray(Generic[_Scalar]):
    """Stands for numpy's alias, which signatures would spell out at length."""


class ArrayLike:
    """The same, for the other alias."""


numpy.typing.NDArray = NDArray  # type: ignore[assignment]
numpy.typing.ArrayLike = ArrayLike  # type: ignore[assignment]

import depl  # noqa: E402 - its modules take the aliases from there

project = "depl"
author = "The depl developers"
copyright = author
version = release = depl.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "README.md"]  # index.md includes README.md

# A broken link into depl is an error; other libraries' names are not looked up, so that the site
# can be built offline.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!depl\.).*"), ("py:.*", r"depl\..*\b(_\w+|T)")]

myst_heading_anchors = 4
highlight_language = "text"  # most of the blocks are what a terminal shows

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 120  # of names with their modules, which are not shown
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "depl"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0550ae",
        "color-brand-content": "#0969da",
        "color-brand-visited": "#0969da",
    },
    "dark_css_variables": {
        "color-brand-primary": "#79c0ff",
        "color-brand-content": "#58a6ff",
        "color-brand-visited": "#58a6ff",
    },
}

# Pages of the repository that are pages of the site too.
_ELSEWHERE = {"benchmarks/README": "benchmarks", "README": "index"}


def _resolve_links(app: Sphinx, doctree: nodes.document) -> None:
    """Links to Markdown files outside docs/, which read well where the code is hosted."""
    repository = Path(app.srcdir).parent
    for link in list(doctree.findall(pending_xref)):
        if link.get("refspecific") and link["reftarget"].islower():
            # A word of "array of shape (n, k)" in a list of parameters: k is no class.
            link.replace_self(literal_emphasis("", link["reftarget"]))
            continue
        target = Path(app.srcdir, link["reftarget"]).resolve()
        if link.get("refdomain") != "doc" or not target.is_relative_to(repository):
            continue
        if target.is_relative_to(app.srcdir):
            continue
        name = target.relative_to(repository).as_posix()
        if name in _ELSEWHERE:
            link["reftarget"] = _ELSEWHERE[name]
            if name == "README":  # the home page has other sections
                link["reftargetid"] = None
        else:
            file = download_reference("", "", *link.children, **link.attributes)
            file["reftarget"] = f"/../{name}.md"
            link.replace_self(file)


def _skip_fields(_app: Sphinx, _what: str, _name: str, thing: object, *_: object) -> bool | None:
    """Fields of named tuples that have nothing to say but their number."""
    return (thing.__doc__ or "").startswith("Alias for field number") or None


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", _skip_fields)
    # Before Sphinx copies what is to be downloaded.
    app.connect("doctree-read", _resolve_links, priority=100)
