"""The site of Thresher's documentation: `scripts/docs.sh site` builds it."""
import os
import pathlib
import re
import sys

from docutils import nodes

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "tools"))

project = "Thresher"
author = "The Thresher authors"
version = release = re.search(r"project\(thresher VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]

extensions = ["myst_parser", "sphinx_copybutton", "python_reference"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
exclude_patterns = ["requirements.txt", "tools"]
nitpicky = False

doxygen_xml = os.environ.get("THRESHER_DOXYGEN_XML")
if doxygen_xml:
    extensions.append("breathe")
    breathe_projects = {"thresher": doxygen_xml}
    breathe_default_project = "thresher"
    breathe_show_enumvalue_initializer = True
    cpp_id_attributes = ["THRESHER_API"]
    c_id_attributes = ["THRESHER_API"]
    # Overloads and types that a header only names have no page: they are no broken links of ours.
    suppress_warnings = ["duplicate_declaration.cpp", "duplicate_declaration.c"]
else:
    exclude_patterns += ["reference/cpp.md", "reference/c.md"]
    suppress_warnings = ["toc.excluded"]

html_theme = "furo"
html_title = f"Thresher {release}"
html_static_path = ["static"]
html_css_files = ["thresher.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
# Nothing is fetched while a page is read: search, fonts and scripts are files of the site.
html_theme_options = {"navigation_with_keys": True}

_LINK = re.compile(r"\[([^\[\]]*)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def _links_out_of_the_site(app, docname, source):
    """Files of the repository that are no pages: measurements are copied into the site, others are named."""
    folder = (DOCS / docname).parent

    def one(match):
        target = pathlib.Path(os.path.normpath(folder / match[2]))
        if target.is_relative_to(DOCS) and target.exists() and not target.is_dir():
            return match[0]
        if not target.exists():
            raise SystemExit(f"docs/{docname}.md links to {match[2]}, which does not exist")
        if target.is_file() and target.is_relative_to(ROOT / "measurements"):
            return match[0]
        name = target.relative_to(ROOT)
        base = os.environ.get("THRESHER_REPOSITORY_URL")
        if base:
            return f"[{match[1]}]({base}/{name})"
        return match[1] if str(name) in match[1] else f"{match[1]} (`{name}`)"

    source[0] = _LINK.sub(one, source[0])


def _enums_without_names(app, doctree):
    """Breathe calls an enum without a name `[anonymous]`."""
    for text in list(doctree.findall(nodes.Text)):
        if text.strip() == "[anonymous]":
            text.parent.remove(text)


def setup(app):
    app.connect("source-read", _links_out_of_the_site)
    app.connect("doctree-read", _enums_without_names)
