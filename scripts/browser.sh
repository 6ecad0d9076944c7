#!/bin/sh
# Chromium for the tests of the viewer's page, where it is missing and Debian's package can be had.
set -u
command -v chromium >/dev/null || command -v chromium-browser >/dev/null && exit 0
command -v apt-get >/dev/null || { echo "no Chromium and no apt-get: the tests of the viewer's page will be skipped"; exit 0; }
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
{ $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 ||
	echo "Chromium could not be installed: the tests of the viewer's page will be skipped"
