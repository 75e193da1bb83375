"""dualrank turns biased click logs into unbiased rankers.

The public names are listed in `__init__.pyi`; each is imported when it is first used, so that
`import dualrank` and `dualrank --help` answer at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
