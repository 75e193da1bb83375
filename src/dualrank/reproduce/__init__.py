"""The paper's experiments and ours, one module each, over one common shape.

What an experiment of one's own needs is listed in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
