"""Exports by the clock: what has finished and was not handed out yet, to a folder named by its time.

The job's id follows from its time slot, so a task that is delivered twice makes one export.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from sessions_app.store.pool import Database
from tito_project.configuration import Configuration
from trainer_export.arguments import Arguments
from trainer_export.jobs import job as jobs
from trainer_export.jobs.freeze import find
from trainer_export.jobs.request import ExportRequest, read_request

_DEFAULT_FILTERS = {"finished": True, "exported": False}


def periodic_request(configuration: Configuration, at: datetime) -> ExportRequest:
    """The export of a time slot. Raises InvalidArgument for what the settings cannot mean."""
    asked: dict[str, Any] = dict(configuration.export_request)
    asked["filters"] = {**_DEFAULT_FILTERS, **(asked.get("filters") or {})}
    asked["path"] = f"periodic/{at:%Y%m%dT%H%M%SZ}"
    return read_request(Arguments(asked, "TITO_EXPORT_REQUEST: "), configuration)


async def create_periodic(db: Database, configuration: Configuration, now: datetime) -> UUID | None:
    """The job of the slot that `now` is in; None where there is nothing to export or it is there already."""
    every_s = configuration.export_every_s or 0.0
    slot = now.timestamp() // every_s * every_s
    request = periodic_request(configuration, datetime.fromtimestamp(slot, UTC))
    async with db.transaction() as transaction:
        if not await find(transaction, request.filters):
            return None
    job_id = uuid5(NAMESPACE_URL, f"tito:periodic:{configuration.export_url}:{slot:.0f}")
    return await jobs.create(db, request, "periodic", job_id)
