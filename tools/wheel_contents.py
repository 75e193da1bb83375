"""What a wheel must hold: every file of the package, its licence and its metadata, and no more."""

from __future__ import annotations

import sys
import tomllib
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

NEEDED = {
    "dualrank/py.typed",
    "dualrank/__init__.pyi",
    "dualrank/report/templates/page.html",
    "dualrank/online/page/index.html",
    "dualrank/online/page/page.css",
    "dualrank/online/page/page.js",
}
"""Files that are no Python and are easily left behind; all others are compared with src/ too."""


def check_wheel(wheel: Path, root: Path) -> None:
    """Leave with a sentence where a wheel is not what the repository says."""
    with ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if not name.endswith("/")}
        (about,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = HeaderParser().parsestr(opened.read(f"{about}/METADATA").decode())
    expected = package_files(root / "src") | {
        f"{about}/{name}"
        for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }
    if names != expected or not names >= NEEDED:
        lost, more = sorted((expected | NEEDED) - names), sorted(names - expected)
        sys.exit(f"the wheel lacks {lost or 'nothing'}, and has {more or 'nothing'} besides")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    if metadata["Requires-Python"] != project["requires-python"]:
        sys.exit(f"the wheel says Requires-Python: {metadata['Requires-Python']}")
    extras = set(metadata.get_all("Provides-Extra", []))
    if extras != project["optional-dependencies"].keys():
        sys.exit(f"the wheel has the extras {sorted(extras)}")


def package_files(source: Path) -> set[str]:
    """The files of the package as a wheel names them, compiled Python aside."""
    return {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
