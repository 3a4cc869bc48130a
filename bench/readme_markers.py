"""Puts generated text between two marker lines of a README, or checks that it stands there."""
import sys


def replaced(readme, begin, end, text):
    if readme.count(begin) != 1 or readme.count(end) != 1:
        raise SystemExit(f"README needs the lines {begin} and {end} once each")
    head, rest = readme.split(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def put(args, begin, end, text):
    """`args` has readme, check and json, the file that the text was made from."""
    with open(args.readme) as file:
        readme = file.read()
    wanted = replaced(readme, begin, end, text)
    if args.check:
        if wanted != readme:
            sys.exit(f"the table in {args.readme} is not the one of {args.json}: run {sys.argv[0]} {args.json}")
        return
    with open(args.readme, "w") as file:
        file.write(wanted)
