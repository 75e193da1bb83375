"""A temporary folder that goes with its process, even if that is killed.

A process that is killed removes nothing. So every folder has a file that its process holds locked:
the system takes the lock away when the process ends, however it ends, and whoever makes the next
folder removes those whose lock is free. Neither clocks nor numbers of processes are asked.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from dualrank.errors import SettingsError

if sys.platform != "win32":  # It has no such locks: folders of killed processes stay there.
    import fcntl

PREFIX = "dualrank-log-"
UNFINISHED = "dualrank-new-"
LOCK = "in-use"


class ScratchFolder:
    """A folder for temporary files, removed at the end; those of dead processes are removed too."""

    def __init__(self) -> None:
        above = _place()
        _sweep(above)
        try:
            new = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=above))
            self._lock: int | None = os.open(new / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
            _try_lock(self._lock)
            # Only under this name is it swept, and by now its lock is held.
            self.path = new.rename(new.with_name(new.name.replace(UNFINISHED, PREFIX, 1)))
        except OSError as error:
            raise _unwritable(above, error) from error

    def __enter__(self) -> ScratchFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _place() -> Path:
    """Where temporary files go; a TMPDIR that cannot be used is not passed over."""
    named = os.environ.get("TMPDIR")
    if named and not os.access(named, os.W_OK | os.X_OK):
        raise _unwritable(Path(named), None)
    try:
        return Path(named or tempfile.gettempdir()).absolute()
    except OSError as error:
        raise SettingsError(
            "there is no folder for temporary files that can be written to; set TMPDIR to one"
        ) from error


def _unwritable(folder: Path, error: OSError | None) -> SettingsError:
    why = f" ({error.strerror})" if error is not None else ""
    return SettingsError(
        f"{folder}: no temporary files can be written to this folder{why}; set TMPDIR to another"
    )


def _sweep(above: Path) -> None:
    """Remove the folders of processes that are gone; what is in use or another user's stays."""
    if sys.platform == "win32":
        return
    for left in above.glob(f"{PREFIX}*"):
        try:
            lock = os.open(left / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            continue
        try:
            own = not left.is_symlink() and left.stat().st_uid == os.getuid()
            if own and _try_lock(lock):
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(lock)


def _try_lock(file: int) -> bool:
    """Whether this process has the lock now; it keeps it until the file is closed."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
