from .learner_record import Alarm as Alarm
from .learner_record import LearnerRecord as LearnerRecord
from .learner_record import Round as Round
from .records import Event as Event
from .records import Impression as Impression
from .versions import Version as Version
from .versions import Versions as Versions
