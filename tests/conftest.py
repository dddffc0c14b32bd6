"""Starts the services and Django before any other conftest is read. Fixtures of an area live in its own conftest."""

import os

import django

from tests import services

services.start()
os.environ["DJANGO_SETTINGS_MODULE"] = "tito_project.settings"
django.setup()
