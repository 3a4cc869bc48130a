"""The command `thresher`: the program that lies beside this file, with the same arguments."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "thresher")
    try:
        os.execv(program, ["thresher", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"thresher: the program {program} cannot be run: {error.strerror}; install the package again")


if __name__ == "__main__":
    main()
