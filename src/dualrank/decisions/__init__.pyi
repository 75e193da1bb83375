from .counterfactual import Counterfactual as Counterfactual
from .counterfactual import Estimate as Estimate
from .counterfactual import estimate as estimate
from .verdict_of_estimate import Verdict as Verdict
from .verdict_of_estimate import verdict_of as verdict_of
