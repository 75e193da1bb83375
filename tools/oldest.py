"""The oldest versions that pyproject.toml claims, as constraints for pip: `make test-oldest`.

What dualrank and its extras need is held at the lower bound, and so are the libraries whose tables
users hand in. What only writes the docs or runs the tests is free, and so is what others need.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_FOR_USERS = {"all", "dev", "docs"}
HANDED_IN = ("pandas", "polars", "scikit-learn")


def oldest(pyproject: str) -> list[str]:
    """Every requirement of users, at its lower bound.

    >>> oldest('''[project]
    ... dependencies = ["torch>=2.4,<3", "uvloop>=0.20; sys_platform != 'win32'"]
    ... [project.optional-dependencies]
    ... trees = ["lightgbm>=4.5"]
    ... dev = ["pandas>=2.2", "pytest>=8.2"]''')
    ['lightgbm==4.5', 'pandas==2.2', 'torch==2.4', "uvloop==0.20; sys_platform != 'win32'"]
    """
    project = tomllib.loads(pyproject)["project"]
    extras = project["optional-dependencies"]
    of_users = [each for name in extras.keys() - NOT_FOR_USERS for each in extras[name]]
    handed_in = [each for each in extras["dev"] if each.startswith(HANDED_IN)]
    return sorted(_at_bound(each) for each in [*project["dependencies"], *of_users, *handed_in])


def _at_bound(requirement: str) -> str:
    found = re.fullmatch(r"([A-Za-z0-9-]+)>=([0-9.]+)(?:,<[0-9.]+)?(;.*)?", requirement)
    if found is None:
        raise ValueError(
            f"{requirement!r} in pyproject.toml has no lower bound of the form name>=1.2"
        )
    return f"{found[1]}=={found[2]}{found[3] or ''}"


def main() -> None:
    """Print the constraints."""
    print("\n".join(oldest((ROOT / "pyproject.toml").read_text())))


if __name__ == "__main__":
    main()
