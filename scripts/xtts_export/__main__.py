"""python -m xtts_export: the command xtts-export, without an installation."""

import sys

from .command import main

sys.exit(main())
