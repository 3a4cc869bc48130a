#!/usr/bin/env bash
# The documentation's site and pictures.
# usage: scripts/docs.sh site [FOLDER]  builds the site, with warnings as errors, in FOLDER (build/docs)
#        scripts/docs.sh pictures [--check]  draws docs/pictures from measurements/, or says which differ
#        scripts/docs.sh lint           checks words, sentences, lines, numbers and links of the pages
# The tools are pinned in docs/requirements.txt and fetched once for a machine. Exit status 77: left out, and why.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
action=${1:?site, pictures or lint}
shift
leave_out() { echo "left out: $*"; exit 77; }

tools() {
  "$source/scripts/python.sh" docs "$source"
}

case $action in
  site)
    folder=${1:-$source/build/docs}
    environment=$(tools) || { echo "$environment"; exit 77; }
    mkdir -p "$folder/doxygen"
    folder=$(cd "$folder" && pwd)
    command -v doxygen >/dev/null || leave_out "there is no doxygen: the reference of C++ and C needs it"
    (cd "$source/include" && sed "s|@OUT@|$folder/doxygen|" "$source/docs/tools/Doxyfile.in" | doxygen -q -)
    export THRESHER_DOXYGEN_XML=$folder/doxygen/xml
    "$environment/bin/python" -m sphinx -q -W --keep-going -b html -d "$folder/doctrees" "$source/docs" "$folder/html"
    echo "$folder/html/index.html: $(find "$folder/html" -name '*.html' | wc -l) pages"
    ;;
  pictures)
    environment=$(tools) || { echo "$environment"; exit 77; }
    exec "$environment/bin/python" "$source/bench/plots.py" "$@"
    ;;
  lint)
    exec python3 "$source/scripts/docs_lint.py"
    ;;
  *) echo "$action is not site, pictures or lint" >&2; exit 2 ;;
esac
