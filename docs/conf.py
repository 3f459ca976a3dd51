"""Settings of the documentation site: `make docs` builds it into out/docs, without the network.

Pages are Markdown (MyST). The API reference is generated from the names in `__all__`, the gallery
from `examples/gallery/plot_*.py`, which run at build time. Pages in `docs/project` show files of
the repository's root. A warning is an error.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

# The gallery's data are small: threads of OpenMP would mostly wait for each other. Must be set
# before a library loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mcce

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "mcce"
author = "The mcce developers"
copyright = author  # noqa: A001 - Sphinx's name for it
release = version = mcce.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["api/generated/*.txt", "**/README.md"]
templates_path = ["_templates"]
highlight_language = "none"  # of blocks that do not name theirs

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
copybutton_exclude = ".linenos, .gp, .go"  # no prompts and no output in what is copied

# API reference
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_default_options = {"members": True, "inherited-members": False}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# What every public docstring must have; see numpydoc's validation page for the codes.
numpydoc_validation_checks = {
    "GL01",  # text begins on the first line or right below it
    "GL03",  # no double blank lines
    "GL06",  # no unknown section
    "GL07",  # sections in their order
    "GL08",  # there is one
    "PR01",  # every parameter is described
    "PR02",  # no parameter is described that is not there
    "PR03",  # in the order of the signature
    "RT01",  # what is returned is described
    "SS01",  # there is a summary
    "YD01",  # what is yielded is described
}
# What they should have and do not all have yet: MCCE_DOCS_STRICT=1 make docs lists what is missing.
if os.environ.get("MCCE_DOCS_STRICT"):
    numpydoc_validation_checks |= {"EX01"}  # there is an example
# Classes whose signature is not theirs to describe: protocols take no arguments, and the last two
# fields of a result are private. Their methods are checked, but for those that turn generators and
# distances into arrays or check them, which a protocol describes.
numpydoc_validation_exclude = {
    r"^mcce\.protocols\.(Callback|CapableGenerator|Distance|Explainer|Generator|Feature)$",
    r"^mcce\.protocols\.(EncodedRows|Feature|Candidates|CandidateRows)\.\w+$",
    r"^mcce\.[A-Z]\w+\.(check|to_arrays|from_arrays)$",
    r"^mcce\.predictors\.Differentiable$",
    r"^mcce\.Counterfactuals$",
    # Fields of the classes below come first in the signature, where all are keywords.
    r"^mcce_lab\.baselines\.(CCHVAE|CEM|CLUE|CRUDS|REViSE)$",
}

# Cross-references: every one of ours must lead somewhere; those of other libraries only with their
# inventories, which need the network: MCCE_DOCS_ONLINE=1 make docs.
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(numpy|np|pandas|pd|sklearn|pyarrow|polars|torch|matplotlib|fastapi|collections|typing|pathlib|os)\..*",
    ),
    (r"py:class", r"Axes"),  # matplotlib's, which is imported late
    (r"py:class", r"(dd\.)?DataFrame"),  # Dask's and Spark's, imported late too
    # Signatures with defaults that a dataclass makes cannot be parsed, and are split at commas.
    (r"py:class", r".*(tuple|Mapping)\[str"),
    # Types of the lab's parameters, which say how these are checked.
    (r"py:class", r"Count|Device|Late|NotNegative|Positive|Rate|Seed|Share|TwoOrMore|Widths"),
    (r"py:class", r"_check_\w+"),
]
if os.environ.get("MCCE_DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# Gallery
if any((ROOT / "examples/gallery").glob("plot_*.py")):
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": "../examples/gallery",
        "gallery_dirs": "gallery",
        "filename_pattern": r"plot_",
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_signature": False,
        "remove_config_comments": True,
    }
    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# Look
html_theme = "pydata_sphinx_theme"
html_title = "mcce"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}
html_show_sourcelink = False


def prepare(app: Any, docname: str, source: list[str]) -> None:
    """The text of a page as Sphinx needs it; on GitHub it is read as it was written."""
    page = DOCS / docname
    text = show_root_files(source[0], page)
    text = name_anchors(text, docname)
    source[0] = leave_out_absent_pages(text, page)


def show_root_files(text: str, page: Path) -> str:
    """Files of the root in place of their includes, with links that hold on the site."""

    def content(match: re.Match[str]) -> str:
        path = (page.parent / match["path"]).resolve()
        return site_links(path.read_text(encoding="utf-8"), path, page)

    return re.sub(r"^```\{include\} (?P<path>\S+)\n```$", content, text, flags=re.MULTILINE)


def site_links(text: str, path: Path, page: Path) -> str:
    """Links of a file of the root, as they are written from a page of the site.

    What is not on the site, such as the licence, loses its link and keeps its words.
    """
    shown = {
        (stub.parent / include).resolve(): stub
        for stub in DOCS.glob("project/*.md")
        for include in re.findall(r"\{include\} (\S+)", stub.read_text(encoding="utf-8"))
    }

    def link(match: re.Match[str]) -> str:
        target, anchor = match["target"], match["anchor"] or ""
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        there = (path.parent / target).resolve()
        there = shown.get(there, there)
        if there.suffix != ".md" or DOCS not in there.parents:
            return match["words"]
        return f"[{match['words']}]({os.path.relpath(there, page.parent)}{anchor})"

    return re.sub(
        r"(?<!!)\[(?P<words>[^\]]+)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)", link, text
    )


def name_anchors(text: str, docname: str) -> str:
    """HTML anchors, which GitHub needs, as targets whose names are the page's own."""
    for name in re.findall(r'^<a id="([\w-]+)"></a>$', text, flags=re.MULTILINE):
        text = text.replace(f'<a id="{name}"></a>', f"({docname}-{name})=")
        text = text.replace(f"](#{name})", f"](#{docname}-{name})")
    return text


def leave_out_absent_pages(text: str, page: Path) -> str:
    """Tables of contents without the pages that are planned but not there yet."""

    def listed(match: re.Match[str]) -> str:
        lines = match[0].splitlines()
        there = [
            line
            for line in lines
            if not re.fullmatch(r"(user_guide|gallery)/\w+", line)
            or any((page.parent / f"{line}{suffix}").exists() for suffix in (".md", ".rst"))
        ]
        return "\n".join(there)

    return re.sub(r"^```\{toctree\}.*?^```$", listed, text, flags=re.MULTILINE | re.DOTALL)


def skip_routing(app: Any, kind: str, name: str, thing: Any, skip: bool, options: Any) -> Any:
    """Leave out scikit-learn's methods for metadata routing, which are not ours to document."""
    routing = re.fullmatch(r"set_\w+_request|get_metadata_routing", name)
    return True if routing else None


def show_internals_as_text(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Internal names are shown without a link; a reference to nothing is an error."""
    target = node.get("reftarget", "")
    modules = [name for name in sys.modules if name.partition(".")[0] == "mcce"]
    places = (target, *(f"{module}.{target}" for module in modules))
    internal = node.get("refdomain") == "py" and any(is_ours(place) for place in places)
    return contnode if internal else None


def is_ours(name: str) -> bool:
    """Whether a dotted name leads to something in the package."""
    try:
        return name.startswith("mcce.") and resolve_name(name) is not None
    except (ImportError, AttributeError, ValueError):
        return False


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", show_internals_as_text)
    app.connect("source-read", prepare)
    app.connect("autodoc-skip-member", skip_routing)
