"""Start processes as forks of a server that has imported dualrank: 20 ms instead of 2 s each.

Forks of the test process itself would not be safe: other tests have left threads in it.
"""

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["dualrank.cli.app", "dualrank.learning.fit", "dualrank.online.learner.learner",
     "dualrank.online.service.serving", "dualrank.online.events.redis_stream",
     "pyarrow.parquet", "redis", "uvicorn", "uvloop"]
)  # fmt: skip
