"""`python -m dynashard_checks.schedules`: explore random schedules of resizes."""

import sys

from dynashard_checks.schedules.exploring import main

sys.exit(main())
