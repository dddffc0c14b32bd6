"""Finding rows by what an operator has in hand, each through an index: id prefix, rollout, group, harness,
response, label.

Invariant: no search reads a table from end to end.
"""

import json
import re
from typing import Any
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
    ways = _ways(term)
    if (label := label_of(term)) is not None:
        ways.append(labelled(Session.objects.order_by(), label).values_list("id", flat=True))
    return Session.objects.order_by().values_list("id", flat=True).none().union(*ways)


def sessions_named(rows: "QuerySet[Session]", term: str) -> "QuerySet[Session]":
    """The sessions of a list that a term names. What may name as many as there are, a harness or label, is a
    condition on the list itself, which is read in its own order then."""
    term = term.strip().replace("\x00", "")
    if rows.model.objects.order_by().filter(harness=term).exists():
        return rows.filter(harness=term)
    named = Session.objects.order_by().values_list("id", flat=True).none().union(*_ways(term))
    label = label_of(term)
    return rows.filter(id__in=named) if label is None or named.exists() else labelled(rows, label)


def _ways(term: str) -> "list[QuerySet[Any, UUID]]":
    term = term.strip().replace("\x00", "")
    ids = Session.objects.order_by().values_list("id", flat=True)
    ways: list[QuerySet[Any, UUID]] = [
        ids.filter(rollout_id=term),
        ids.filter(group_id=term),
        ids.filter(harness=term),
        Node.objects.order_by().filter(response_id=term).values_list("session_id", flat=True),
    ]
    if (found := id_range(term)) is not None:
        ways.append(ids.filter(id__range=found))
    return ways


def label_of(term: str) -> dict[str, str] | None:
    """`name=value` as the label it stands for."""
    name, equals, value = term.replace("\x00", "").partition("=")
    return {name.strip(): value.strip()} if equals and name.strip() else None


def labelled(rows: "QuerySet[Session]", label: dict[str, str]) -> "QuerySet[Session]":
    """Those sessions with a label; the condition is spelled as in the index."""
    return rows.extra(
        where=["labels <> '{}' AND labels::jsonb @> %s::jsonb"],
        params=[json.dumps(label)],
    )
