"""Records of sessions that are no more."""

import asyncio
import uuid

import pytest

from sessions_app.errors import SessionNotFound
from sessions_app.store import records
from tests.store.test_leases import intent_of
from tests.store.test_parameters import database

pytestmark = pytest.mark.django_db


def test_an_intent_of_a_session_that_was_removed_meanwhile_is_an_unknown_session() -> None:
    async def story() -> None:
        async with database() as db:
            await records.insert(db, intent_of(uuid.uuid4(), None), with_head=False)

    with pytest.raises(SessionNotFound):
        asyncio.run(story())
