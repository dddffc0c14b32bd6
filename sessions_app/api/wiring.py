"""Builds a profile from its row. The environment wins over the row `default` at each start and pins what
it sets; what it no longer sets goes back to its default.
"""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from psycopg.conninfo import make_conninfo

from sessions_app.auditing.verification import verified
from sessions_app.backends.factory import create_backend
from sessions_app.json_text import loads, text_of
from sessions_app.models import ModelProfile
from sessions_app.rendering.factory import load_renderer
from sessions_app.rendering.protocol import Renderer
from sessions_app.turns.heads import HeadIndex
from sessions_app.turns.profiles import DEFAULT_PROFILE, Profile
from tito_project.configuration import Configuration

logger = logging.getLogger(__name__)

_PINNED_BY = {
    "model": "TITO_MODEL",
    "chat_template": "TITO_CHAT_TEMPLATE",
    "chat_template_kwargs": "TITO_CHAT_TEMPLATE_KWARGS",
    "renderer": "TITO_RENDERER",
    "tool_parser": "TITO_TOOL_PARSER",
    "reasoning_parser": "TITO_REASONING_PARSER",
    "backend": "TITO_BACKEND",
    "backend_url": "TITO_BACKEND_URL",
}

_DJANGO_OPTIONS = ("pool", "isolation_level", "assume_role", "server_side_binding")
"""Database options that libpq does not know."""


def conninfo() -> str:
    """The database that Django uses, for the pool of the hot path."""
    values = connection.settings_dict
    named = {
        "host": values["HOST"],
        "port": values["PORT"],
        "dbname": values["NAME"],
        "user": values["USER"],
        "password": values["PASSWORD"],
    }
    options = {name: value for name, value in values["OPTIONS"].items() if name not in _DJANGO_OPTIONS}
    given = {name: value for name, value in named.items() if value}
    return make_conninfo(**{"application_name": "tito", **options, **given})


def build_profile(name: str) -> Profile | None:
    """A profile ready to start; None when there is no row of that name. Slow: loads a tokenizer."""
    try:
        row = (
            mirrored_default() if name == DEFAULT_PROFILE else ModelProfile.objects.filter(name=name).first()
        )
        return _built(row) if row is not None else None
    finally:
        connection.close()  # this thread may never ask again, and would keep its place in the pool


def _built(row: ModelProfile) -> Profile:
    configuration = configured(settings.TITO, row)
    try:
        renderer = renderer_of(configuration)
        warnings = verified(row, renderer).warnings
    except ValueError as error:
        raise ImproperlyConfigured(f"profile {row.name!r}: {error}") from error
    for warning in warnings:
        logger.warning("profile %r: %s fails verify_renderer: %s", row.name, renderer.name, warning)
    return Profile(row.name, renderer, create_backend(configuration, renderer), HeadIndex(), warnings)


def renderer_of(configuration: Configuration) -> Renderer:
    """The renderer that a configuration names. Raises ValueError with what is missing. Slow at first."""
    return load_renderer(
        configuration.renderer,
        model=configuration.model,
        chat_template=configuration.chat_template,
        kwargs=configuration.chat_template_kwargs,
        tool_parser=configuration.tool_parser,
        reasoning_parser=configuration.reasoning_parser,
    )


def mirrored_default() -> ModelProfile:
    """The row `default`, with everything the environment sets; what it set at an earlier start and sets no
    more is as if it never had been. For servers that start: others would undo what their server was told.
    """
    configuration: Configuration = settings.TITO
    row, created = ModelProfile.objects.get_or_create(name=DEFAULT_PROFILE)
    pinned = [column for column, variable in _PINNED_BY.items() if variable in configuration.pinned]
    known = {*pinned, *row.pinned.split(",")}
    columns = [column for column in _PINNED_BY if created or column in known]
    wanted = {column: _stored(getattr(configuration, column)) for column in columns} | {
        "pinned": ",".join(pinned)
    }
    changed = [column for column, value in wanted.items() if getattr(row, column) != value]
    for column in changed:
        setattr(row, column, wanted[column])
    if changed:
        row.save(update_fields=[*changed, "updated_at"])
    return row


def configured(configuration: Configuration, row: ModelProfile) -> Configuration:
    """The configuration with a profile's values in place."""
    return replace(
        configuration,
        model=row.model,
        chat_template=Path(row.chat_template) if row.chat_template else None,
        chat_template_kwargs=loads(row.chat_template_kwargs.encode()),
        renderer=row.renderer,
        tool_parser=row.tool_parser,
        reasoning_parser=row.reasoning_parser,
        backend=row.backend,
        backend_url=tuple(url for url in row.backend_url.split(",") if url),
    )


def _stored(value: Any) -> str:
    match value:
        case None:
            return ""
        case dict():
            return text_of(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)
