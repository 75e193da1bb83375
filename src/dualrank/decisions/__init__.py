"""What a new ranker would do, before users see it, and the cheapest experiment that would tell."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
