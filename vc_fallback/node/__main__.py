"""`python -m vc_fallback.node URL`: what one beacon node is, and what its endpoints answer, in what time."""

import signal
import sys

if __name__ == "__main__":
    # There is nothing to tidy up: Ctrl-C ends it at once, also while its modules load.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from vc_fallback.node.command import main

    sys.exit(main())
