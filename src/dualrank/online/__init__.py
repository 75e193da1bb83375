"""Learning while users click: the service, its events, the learner that follows them, the page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
