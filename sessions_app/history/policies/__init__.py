"""History policies: given what was found in the forest, where does a request attach? Pure decisions, no
loading.
"""

from sessions_app.history.policies.base import Checkpoint, Position
from sessions_app.history.policies.linear import position_linear
from sessions_app.history.policies.rollback import position_rollback
from sessions_app.history.policies.tree import position_tree

__all__ = ["Checkpoint", "Position", "position_linear", "position_rollback", "position_tree"]
