"""What goes wrong in a way that the user can mend.

Every message is one sentence that says where, what was found and what was expected. The
command line prints it and exits with 2; Python callers catch `DualrankError`.
"""


class DualrankError(Exception):
    """The user can mend this; the message says how.

    >>> import dualrank as dr
    >>> try:
    ...     dr.read_log("no-such-file.parquet")
    ... except dr.DualrankError as error:
    ...     print(error)
    no-such-file.parquet: there is no such file
    """


class DataError(DualrankError):
    """A file or array does not hold what it should."""


class SettingsError(DualrankError):
    """A setting is out of its range, or two settings contradict each other."""


class CheckpointError(DualrankError):
    """A checkpoint or model directory is damaged, or belongs to another run."""


class StoppedError(DualrankError):
    """Training was asked to leave before its end; what was done is in its checkpoint."""


class LostWorkerError(StoppedError):
    """Another worker of a training with several has gone."""


class StorageError(DualrankError):
    """What was to be kept could not be written; nothing of it counts."""
