#!/usr/bin/env python
"""Command line of TITO: `manage.py up` runs everything, `manage.py help` lists the rest."""

import os
import signal
import sys

try:
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
except ModuleNotFoundError:
    sys.exit(
        f"tito: {sys.executable} has no Django. Run .venv/bin/python manage.py …, and before the first time: "
        "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
    )

from tito_project.commandline import options_into_environment
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.running import require_services


def main() -> None:
    """Settings are read before a command parses its options, so options that are settings go first."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tito_project.settings")
    options_into_environment(sys.argv[1:], os.environ)
    try:
        require_services(sys.argv[1:])
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, ServiceError) as error:
        sys.exit(f"tito: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("tito: interrupted\n")
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
