"""The documentation site: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from dualrank import __version__

project = "dualrank"
author = "the authors of dualrank"
copyright = "the authors of dualrank, Apache-2.0"
version = release = __version__

extensions = [
    "docstrings",
    "mathml",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "images/README.md"]
nitpicky = False

# Pages are Markdown, as they are read in the repository too.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

# Notebooks are kept without outputs and run whenever the site is built; `make docs NOTEBOOKS=off`
# is for whoever works on the words around them.
nb_execution_mode = os.environ.get("NOTEBOOKS", "force")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True

# Kernels have a profile of their own, rather than the reader's, in which only errors are said.
os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="dualrank-docs-")
PROFILE = Path(os.environ["IPYTHONDIR"], "profile_default")
PROFILE.mkdir()
(PROFILE / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
logging.getLogger("traitlets").setLevel(logging.WARNING)
atexit.register(shutil.rmtree, PROFILE.parent, ignore_errors=True)

# Docstrings write code in single backticks.
default_role = "code"
autosummary_generate = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "exclude-members": "set_fit_request, set_partial_fit_request, set_score_request",
}
autodoc_preserve_defaults = True
maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"dualrank {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
pygments_dark_style = "github-dark"
html_theme_options = {"top_of_page_buttons": []}
# A prompt is not part of what one copies.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
