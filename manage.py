#!/usr/bin/env python
"""MaxClaw's commands: `python manage.py help` lists them."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maxclaw.settings")
    from django.core.management import execute_from_command_line

    from maxclaw.command_errors import in_a_sentence
    from maxclaw.embedded import database_for_command

    with database_for_command(sys.argv[1:]), in_a_sentence(sys.argv[1:]):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
