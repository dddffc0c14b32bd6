"""Starts the services and Django before any other conftest is read. Fixtures live in the areas' own ones."""

import os

import django

from tests import services

services.start()
os.environ["DJANGO_SETTINGS_MODULE"] = "tito_project.settings"
django.setup()
