"""Postgres and Valkey from wheels, and the supervisor of `manage.py up`."""
