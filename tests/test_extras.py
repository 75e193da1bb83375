"""What is not installed is named with the extra that brings it, to users of either kind."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from dualrank.cli.app import main
from dualrank.data.log.spark import read_log_on_spark
from dualrank.errors import SettingsError
from dualrank.extras import _EXTRAS, Extra
from dualrank.learning.tensorboard import require_tensorboard
from dualrank.online.service.serving import serve
from dualrank.pages.extraction import extract_fields
from dualrank.pages.index import PageIndex
from dualrank.pages.sources import find_pages
from dualrank.pages.tokens import Tokeniser
from dualrank.rankers.grown_tree import Grower

ROOT = Path(__file__).parents[1]


@pytest.fixture
def missing(monkeypatch):
    """Make packages unimportable, with what they hold."""

    def hide(*packages):
        for name in [*packages, *sys.modules]:
            if name.partition(".")[0] in packages:
                monkeypatch.setitem(sys.modules, name, None)

    return hide


def read_warc(folder):
    (folder / "crawl.warc").write_bytes(b"WARC/1.0\r\n\r\n")
    return list(find_pages(folder / "crawl.warc").batches())


USES = {
    "selectolax": ("pages", lambda folder: extract_fields("<p>text")),
    "tantivy": ("pages", lambda folder: PageIndex.open_or_create(folder / "new", Tokeniser())),
    "Stemmer": ("pages", lambda folder: Tokeniser(stemmer="english")),
    "warcio": ("pages", read_warc),
    "rjieba": ("chinese", lambda folder: Tokeniser(chinese=True)),
    "tensorboard": ("tensorboard", lambda folder: require_tensorboard()),
    "lightgbm": ("trees", lambda folder: Grower(np.eye(2, dtype=np.float32), {}, 1)),
    "starlette": ("serve", lambda folder: serve(folder / "model", folder / "new")),
    "pyspark": ("spark", lambda folder: read_log_on_spark(folder / "log.parquet")),
}


@pytest.mark.parametrize("package", USES)
def test_one_sentence_names_the_extra(package, missing, tmp_path):
    extra, use = USES[package]
    missing(package)
    with pytest.raises(SettingsError) as caught:
        use(tmp_path)
    packages, sentence = _EXTRAS[extra][1], str(caught.value)
    assert sentence.endswith(f": pip install {packages}, or pip install 'dualrank[{extra}]'")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_the_command_line_says_the_same(missing, tmp_path, capsys, monkeypatch):
    missing("selectolax", "tantivy", "Stemmer", "warcio")
    (tmp_path / "page.html").write_text("<p>text")
    words = ["dualrank", "index", str(tmp_path), "--out", str(tmp_path / "index")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert "pip install pystemmer selectolax tantivy warcio" in error
    assert "Traceback" not in error


IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))
import dualrank
for name in dualrank.__all__:
    getattr(dualrank, name)
for room in ("pages", "online", "reproduce", "cli"):
    path = importlib.import_module("dualrank." + room).__path__
    for module in pkgutil.iter_modules(path, f"dualrank.{room}."):
        importlib.import_module(module.name)
"""


@pytest.mark.slow
def test_all_is_imported_without_any_extra():
    hidden = [*USES, "matplotlib", "onnx", "onnxruntime", "sklearn"]
    hidden += ["httptools", "prometheus_client", "redis", "starlette", "uvicorn", "uvloop"]
    subprocess.run([sys.executable, "-c", IMPORT_ALL, *hidden], check=True)


def test_extracted_pages_need_no_parser(missing, tmp_path):
    """A table with title and content is read without what reads HTML."""
    missing("selectolax")
    row = {"doc_id": "a", "url": "u", "title": "t", "content": "c"}
    (tmp_path / "pages.jsonl").write_text(json.dumps(row))
    (batch,) = find_pages(tmp_path / "pages.jsonl").batches()
    assert [page.doc_id for page in batch.read()] == ["a"]


def test_every_extra_is_declared_and_all_brings_them():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    assert set(get_args(Extra)) == declared.keys() - {"all", "dev", "docs"}
    for extra, (_, packages) in _EXTRAS.items():
        assert packages.split() == [re.split(r"[<>=]", each)[0] for each in declared[extra]]
    assert declared["all"] == [f"dualrank[{','.join(sorted(get_args(Extra)))}]"]
