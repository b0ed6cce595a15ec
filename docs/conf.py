"""How the site is built: `make docs`, offline, from Markdown, the docstrings and the examples; a warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]
matplotlib.use("agg")

import overexplain  # noqa: E402  (found through the path above)

project = "overexplain"
author = "The overexplain developers"
copyright = "the overexplain developers, Apache-2.0"
version = release = overexplain.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "repository_links",
    "docstrings",
    "public_names",
    "command_line",
    "interactive_page",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_ext",
    "_static",
    "figures/*.md",
    "interactive",
    "schemas",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
]
nitpicky = True
language = "en"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 4  # as on the repository's pages: `#columns-of-other-names`

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# As they are called in the code, not what they stand for.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "BoolArray", "FloatArray", "IntArray", "Points", "Texts")}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "overexplain"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # it is fetched, which browsers refuse to pages that were opened as files
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#115e9a", "color-brand-content": "#115e9a"},
    "dark_css_variables": {"color-brand-primary": "#74b9f0", "color-brand-content": "#74b9f0"},
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 3600,
    "matplotlib_animations": False,
}
