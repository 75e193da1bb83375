from .data.dataset import Dataset as Dataset
from .errors import DualrankError as DualrankError
