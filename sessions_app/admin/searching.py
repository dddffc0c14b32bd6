"""Finding rows by what an operator has in hand, each through an index: id prefix, rollout, group, harness,
response, label.

Invariant: no search reads a table from end to end.
"""

import json
import re
from uuid import UUID

from django.db.models import QuerySet

from sessions_app.models import Node, Session

_HEX = re.compile(r"[0-9a-f]{1,32}\Z")
_ID_DIGITS = 32


def id_range(term: str) -> tuple[UUID, UUID] | None:
    """The ids that begin with a hex prefix (dashes ignored), lowest and highest; None for anything else."""
    digits = term.strip().lower().replace("-", "")
    if not _HEX.match(digits):
        return None
    return UUID(digits.ljust(_ID_DIGITS, "0")), UUID(digits.ljust(_ID_DIGITS, "f"))


def session_ids(term: str) -> "QuerySet[Session, UUID]":
    """Ids of the sessions that a term names, each way of naming through its own index."""
    term = term.strip().replace("\x00", "")
    ids = Session.objects.order_by().values_list("id", flat=True)
    ways = [
        ids.filter(rollout_id=term),
        ids.filter(group_id=term),
        ids.filter(harness=term),
        Node.objects.order_by().filter(response_id=term).values_list("session_id", flat=True),
    ]
    if (found := id_range(term)) is not None:
        ways.append(ids.filter(id__range=found))
    if (label := label_of(term)) is not None:
        ways.append(labelled(label))
    return ids.none().union(*ways)


def label_of(term: str) -> dict[str, str] | None:
    """`name=value` as the label it stands for."""
    name, equals, value = term.partition("=")
    return {name.strip(): value.strip()} if equals and name.strip() else None


def labelled(label: dict[str, str]) -> "QuerySet[Session, UUID]":
    """Ids of the sessions with a label; the condition is spelled as in the index."""
    return (
        Session.objects.order_by()
        .values_list("id", flat=True)
        .extra(
            where=["labels <> '{}' AND labels::jsonb @> %s::jsonb"],
            params=[json.dumps(label)],
        )
    )
