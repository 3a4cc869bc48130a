#!/usr/bin/env bash
# What a new user's first commands do on a bare Debian 12: makes one, copies this checkout there, and runs ./run up to a finished
# tournament of a small suite and, if it is told to, ./test.
# usage: scripts/bare_machine.sh [run|test] [--no-gpu]
# Needs root, and the network for packages. Exit status 77: left out, and why.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-run}
[ $# -eq 0 ] || shift
options=("$@")
suite=examples/bring-your-own/small.toml

leave_out() { echo "left out: $*"; exit 77; }
case $what in run|test) ;; *) echo "$what is not run or test" >&2; exit 2 ;; esac
[ "$(id -u)" -eq 0 ] || leave_out "making a bare machine needs root"
. scripts/setup.sh
[ "$(known_distribution)" = debian ] || command -v debootstrap >/dev/null || leave_out "there is no debootstrap"
command -v debootstrap >/dev/null || install_packages debootstrap
unshare --mount --pid --fork true 2>/dev/null || leave_out "this machine lets nobody make a mount namespace"

root=$(mktemp -d)
chmod 755 "$root"  # it becomes /, which every user enters
trap 'rm -rf --one-file-system "$root"' EXIT
log=$root.log
debootstrap --variant=minbase bookworm "$root" >"$log" 2>&1 || leave_out "debootstrap could not make a Debian 12: $(tail -1 "$log")"
rm -f "$log"

# The checkout as it is, without what git ignores, and what this machine needs to reach packages.
mkdir -p "$root/root/thresher"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -cf - | tar -C "$root/root/thresher" -xf -
cp /etc/resolv.conf /etc/hosts "$root/etc/"
settings=()
for variable in http_proxy https_proxy no_proxy ${!PIP_*}; do
  [ -z "${!variable:-}" ] || settings+=("$variable=${!variable}")
done
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
if [ -f "${PIP_CERT:-}" ]; then  # where no package puts certificates of its own
  cp "$PIP_CERT" "$root/root/certificates.pem"
  settings+=(PIP_CERT=/root/certificates.pem)
fi

# in_root COMMAND: in the bare machine, in the checkout, with nothing of this one's environment.
in_root() {
  unshare --mount --pid --fork --kill-child bash -c '
    mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
    exec chroot "$0" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "${@:2}" bash -c "cd /root/thresher && $1"
  ' "$root" "$1" "${settings[@]}"
}

timed() {
  local begin=$SECONDS status=0
  in_root "$2" || status=$?
  echo "$1: $((SECONDS - begin)) s, status $status"
  [ "$status" -eq 0 ]  # and not 77, which would say that nothing was tried
}

timed "packages of ./run" '. scripts/setup.sh && install_packages "${build_packages[@]}"'
timed "build of ./run" ". scripts/setup.sh && take_options ${options[*]} && configure_and_build -- thresher"
timed "tournament of ./run" "./run ${options[*]} $suite --seconds 1 --report report"
in_root "test -s report/report.html && build/default/src/cli/thresher doctor"
if [ "$what" = test ]; then
  timed "packages of ./test" '. scripts/setup.sh && install_packages "${build_packages[@]}" "${test_packages[@]}"'
  timed "./test after ./run" "./test ${options[*]}"
fi
