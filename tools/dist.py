"""Build what is released, and try it where nothing of this repository is: `make dist`.

The sdist and the wheel go to dist/. They are there only if everything held: the sdist gives the
same wheel as the repository, byte by byte; the wheel holds all that dualrank reads while it runs,
and nothing else; it installs in an environment of its own, without extras; there the demo runs, a
log becomes a ranking, and whatever wants an extra says how to get it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from dualrank.version import __version__
from tools.base_install import try_base_install
from tools.wheel_contents import check_wheel

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"


def main() -> None:
    """Build, check, install and try; leave with 1 and a sentence where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="the tag that is released, such as v0.2.0")
    tag = parser.parse_args().tag
    if tag and tag != f"v{__version__}":
        sys.exit(f"the tag is {tag}, and the version in src/dualrank/version.py is {__version__}")
    with TemporaryDirectory(prefix="dualrank-dist-") as temporary:
        built = make_dist(Path(temporary))
        dist = ROOT / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir()
        for file in built:
            shutil.copy(file, dist)
            print(f"dist/{file.name}  {file.stat().st_size / 1e6:.1f} MB")


def make_dist(folder: Path) -> list[Path]:
    """The sdist and the wheel, built and tried in a folder outside the repository."""
    python = sys.executable
    with step("build the sdist, and the wheel from it"):
        # The backend, too, is the one that dualrank is tested with.
        run([python, "-m", "build", "--outdir", folder / "dist", ROOT], folder)
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")
    with step("the repository gives the same wheel"):
        run([python, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT], folder)
        if digest(wheel) != digest(folder / "direct" / wheel.name):
            sys.exit("the wheel of the sdist is not that of the repository: what is not in it?")
    with step("the wheel holds what it should, and nothing else"):
        check_wheel(wheel, ROOT)
        run([python, "-m", "twine", "check", "--strict", wheel, sdist], folder)
    with step("install it in an environment of its own, without extras"):
        run([python, "-m", "venv", folder / "environment"], folder)
        bin_folder = folder / "environment" / "bin"
        pip: list[str | Path] = [bin_folder / "python", "-m", "pip"]
        run([*pip, "install", "--quiet", "--constraint", CONSTRAINTS, wheel], folder)
        run([*pip, "check"], folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    try_base_install(
        lambda *words, code=0: run([bin_folder / "dualrank", *words], elsewhere, code), step
    )
    return [sdist, wheel]


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is done, and how long it took."""
    print(f"- {what} ... ", end="", flush=True)
    started = time.perf_counter()
    yield
    print(f"{time.perf_counter() - started:.0f} s")


def run(words: Sequence[str | Path], folder: Path, code: int = 0) -> str:
    """What a command prints, which must end with this code; all that it said where it does not."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    environment |= {"PIP_CONSTRAINT": str(CONSTRAINTS), "COLUMNS": "200"}
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode != code:
        said = f"{done.stdout}\n{done.stderr}".strip()
        sys.exit(f"\n{' '.join(map(str, words))}\nended with {done.returncode}:\n{said}")
    return done.stdout + done.stderr


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
