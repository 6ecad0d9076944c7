#!/bin/sh
# Chromium for the tests of pages, and a library that Playwright needs, where Debian's packages can be had.
set -u
missing=""
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || missing="chromium"
without="the tests of the viewer's page and of the site will be skipped"
command -v apt-get >/dev/null || { [ -z "$missing" ] || echo "no Chromium and no apt-get: $without"; exit 0; }
/sbin/ldconfig -p | grep -q libatomic.so.1 || missing="$missing libatomic1"
[ -n "$missing" ] || exit 0
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
# shellcheck disable=SC2086 -- several packages, and no words where there is no need of sudo
{ $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends $missing; } >/dev/null 2>&1 ||
	echo "$missing could not be installed: $without"
