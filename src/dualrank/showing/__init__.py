"""How things look, in pages and in notebooks: colours, cards, axes, intervals.

What other rooms use is listed in `__init__.pyi`; each name is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
