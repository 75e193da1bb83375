"""All benchmarks, one after the other: `python -m benchmarks`, or `make benchmark`."""

import subprocess
import sys

MODULES = (
    "training",
    "list_training",
    "evaluation",
    "letor_reading",
    "log_reduction",
    "ranking_svm",
    "click_models",
    "documents",
    "diagnose",
    "contexts",
    "trees",
    "exports",
    "estimate_speed",
)


def main() -> int:
    """Run each in a process of its own; 1 if a limit fails."""
    failed = 0
    for name in MODULES:
        print(f"\n{name}\n{'─' * len(name)}", flush=True)
        failed |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
