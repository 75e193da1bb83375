from .diagnosis import diagnose as diagnose
from .verdict import JOINT as JOINT
