from .evaluator import Evaluator as Evaluator
from .evaluator import evaluate as evaluate
from .metric import PAPER_METRICS as PAPER_METRICS
from .propensity_error import inverse_propensity_mse as inverse_propensity_mse
from .significance import fisher_test as fisher_test
