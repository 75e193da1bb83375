"""How large an installation is: the base without PyTorch, and what each extra adds.

Run as `python -m benchmarks.install_size` in an environment that has everything installed. The
files of every package in the closure of requirements are summed, compiled Python aside; what
PyTorch itself brings is counted with it.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

EXTRAS = ("charts", "pages", "onnx", "tensorboard", "chinese")


def closure(name: str, extras: tuple[str, ...] = ()) -> set[str]:
    """The packages that installing one brings, itself among them, as far as they are here."""
    found: set[str] = set()
    waiting = [(name, extras)]
    while waiting:
        package, wanted = waiting.pop()
        try:
            requirements = distribution(package).requires or []
        except PackageNotFoundError:
            continue
        if package in found and not wanted:
            continue
        found.add(package)
        for requirement in requirements:
            needed, _, condition = requirement.partition(";")
            extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", condition)
            if extra and extra[1] not in wanted:
                continue
            if not extra and "platform_system ==" in condition and "Linux" not in condition:
                continue
            other = re.match(r"[A-Za-z0-9._-]+", needed)
            if other and _normal(other[0]) not in found:
                waiting.append((_normal(other[0]), ()))
    return found


def megabytes(packages: set[str]) -> float:
    """The size of their files."""
    files = {
        Path(path.locate())
        for package in packages
        for path in distribution(package).files or ()
        if path.suffix != ".pyc"
    }
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def main() -> None:
    """Print the sizes."""
    torch = closure("torch")
    base = closure("dualrank") - torch
    print(f"{'base, without PyTorch':<26}{megabytes(base):8.0f} MB   {len(base)} packages")
    largest = sorted(base, key=lambda package: -megabytes({package}))[:5]
    print("  of which " + ", ".join(f"{name} {megabytes({name}):.0f}" for name in largest))
    for extra in EXTRAS:
        added = closure("dualrank", (extra,)) - base - torch
        print(f"{extra:<26}{megabytes(added):8.0f} MB   {', '.join(sorted(added))}")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
