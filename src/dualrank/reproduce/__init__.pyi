from .comparison_with_dla import compare_with_dla as compare_with_dla
from .experiment import Experiment as Experiment
from .experiment import Task as Task
from .experiment import Trained as Trained
from .experiments import EXPERIMENTS as EXPERIMENTS
from .runner import Finished as Finished
from .runner import run as run
