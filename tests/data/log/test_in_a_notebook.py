"""Logs are read in a notebook, where DuckDB would ask for ipywidgets to draw a bar of its own."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

# What DuckDB takes for a notebook's kernel.
InteractiveShell.instance(config=Config({"IPKernelApp": {"connection_file": "none"}}))
import sys
sys.modules["ipywidgets"] = None

import pyarrow as pa
import dualrank as dr

shown = {"session_id": [1, 1], "query_id": ["q", "q"], "doc_id": ["a", "b"]}
frame = pa.table(shown | {"position": [1, 2], "clicked": [True, False]})
heard = []
dr.read_log(frame)
dr.read_log(frame, progress=lambda done, total: heard.append(done))
assert heard[-1] == 100, heard
"""


def test_a_log_is_read_in_a_notebook_without_ipywidgets() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
