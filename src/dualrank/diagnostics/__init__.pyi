from .diagnosis import POINTS as POINTS
from .diagnosis import Diagnosis as Diagnosis
from .diagnosis import diagnose as diagnose
from .facts import LogFacts as LogFacts
from .point import Point as Point
from .point import Question as Question
from .trained_pair import TrainedPair as TrainedPair
from .verdict import JOINT as JOINT
