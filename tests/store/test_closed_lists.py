"""The closed lists of the code and of the database are the same."""

from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils.timezone import now

from sessions_app.models import Record
from sessions_app.models.choices import CLOSED_LISTS

pytestmark = pytest.mark.django_db


def accepted(closed_list: str, value: str | None) -> bool | None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tito_known_{closed_list}(%s)", [value])
        return cursor.fetchone()[0]


@pytest.mark.parametrize("closed_list", CLOSED_LISTS)
def test_the_database_takes_every_value_of_a_list_and_no_other(closed_list: str) -> None:
    values = [value for value, _ in CLOSED_LISTS[closed_list]]
    assert [value for value in values if not accepted(closed_list, value)] == []
    assert [value for value in ("", "unheard_of", values[0].upper()) if accepted(closed_list, value)] == []
    assert accepted(closed_list, None) is None
    definition = "SELECT prosrc FROM pg_proc WHERE proname = %s"
    with connection.cursor() as cursor:
        cursor.execute(definition, [f"tito_known_{closed_list}"])
        assert cursor.fetchone()[0].count("'") == 2 * len(values)


def test_a_row_outside_the_lists_is_refused_by_the_constraint_of_its_column() -> None:
    with pytest.raises(IntegrityError, match="record_state_known"), transaction.atomic():
        Record.objects.create(
            session_id=uuid4(), state="unheard_of", protocol="openai", path="/", arrived_at=now()
        )
