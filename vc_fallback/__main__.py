"""`python -m vc_fallback` is the command."""

import sys

from vc_fallback.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
