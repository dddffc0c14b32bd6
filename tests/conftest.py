"""Starts the services and Django before any other conftest is read. Fixtures live in the areas' own ones."""

import os

import django
from hypothesis import settings

from tests import services

services.start()
os.environ["DJANGO_SETTINGS_MODULE"] = "tito_project.settings"
django.setup()

# Examples are not timed: on a busy machine any of them may take long.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
