from .propensity import Propensity as Propensity
from .randomisation import collect_shuffled_clicks as collect_shuffled_clicks
from .randomisation import from_shuffled_clicks as from_shuffled_clicks
