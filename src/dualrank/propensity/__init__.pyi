from .bootstrap import Evidence as Evidence
from .bootstrap import log_ratio as log_ratio
from .estimators import ESTIMATORS as ESTIMATORS
from .estimators import estimate as estimate
from .grouped_clicks import GroupedClicks as GroupedClicks
from .propensity import Propensity as Propensity
from .randomisation import collect_shuffled_clicks as collect_shuffled_clicks
from .randomisation import from_shuffled_clicks as from_shuffled_clicks
