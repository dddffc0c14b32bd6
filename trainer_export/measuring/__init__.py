"""How fast exports are, and how much memory they take. `python -m trainer_export.measuring` tells it as JSON.

made_up   sessions that never took place
export    load them, export them, remove them; processor time and memory meanwhile
"""

from trainer_export.measuring.export import Measured, measure
from trainer_export.measuring.made_up import Size

__all__ = ["Measured", "Size", "measure"]
