"""Tables of the forest. Rows are written by `sessions_app.store`; everything else reads.

Every table but ModelProfile, ProcessLease and WhatIfJob has the session id as the first column of its primary
key, so the session id can be the distribution column of a sharded database. Natural keys (`session, seq`) are
what rows refer to each other by; the surrogate `id` only names rows in the admin.
"""

from sessions_app.models.data_read import DataRead
from sessions_app.models.drift import DriftFinding
from sessions_app.models.event import HistoryEvent
from sessions_app.models.node import Message, Node, SidePayload, TokenCheckpoint
from sessions_app.models.process_lease import ProcessLease
from sessions_app.models.profile import ModelProfile
from sessions_app.models.record import IdempotencyClaim, Record, RequestHead, UnattachedReply
from sessions_app.models.reward import Reward
from sessions_app.models.session import Session
from sessions_app.models.what_if import WhatIfJob

__all__ = [
    "DataRead",
    "DriftFinding",
    "HistoryEvent",
    "IdempotencyClaim",
    "Message",
    "ModelProfile",
    "Node",
    "ProcessLease",
    "Record",
    "RequestHead",
    "Reward",
    "Session",
    "SidePayload",
    "TokenCheckpoint",
    "UnattachedReply",
    "WhatIfJob",
]
