"""What every program in Python does with its command line: exit code 0 all right, 1 it cannot go on or its answer is no,
2 a bad command line, 3 a grade or a guess is not right yet. What goes wrong is one sentence on stderr, after the choices."""

import os
import signal
import sys

from .ladders import BadCommand, Unusable

NOT_YET = 3


def exit_code(parser, words, kept):
    """Parses words (None: those of this process) and calls given.run(given). Sentences begin with given.job, and `kept` says
    what an interruption leaves."""
    try:
        given = parser.parse_args(words)
    except SystemExit as ended:  # --help, or a bad command line
        return ended.code or 0
    try:
        code = given.run(given) or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # make solution S=05 | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python may flush what is left
        return 128 + signal.SIGPIPE
    except Unusable as error:
        print(f"{getattr(error, 'choices', '')}{given.job}: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadCommand) else 1
    except OSError as error:  # a folder that cannot be written, a full disk
        print(f"{given.job}: {error.filename or 'this job'}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{given.job}: interrupted; {kept}", file=sys.stderr)
        return 130
