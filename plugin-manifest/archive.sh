#!/usr/bin/env bash
# archive.sh DIST VERSION OS ARCH BINARY: puts a binary, the licence and the man pages in DIST/man into
# DIST/kubectl-zone_rollout_VERSION_OS_ARCH.tar.gz. The same input gives the same bytes.
set -euo pipefail

dist=$1 version=$2 os=$3 arch=$4 binary=$5
name=kubectl-zone_rollout
suffix=$([[ $os == windows ]] && echo .exe || true)

content=$(mktemp -d)
trap 'rm -rf "$content"' EXIT
cp "$(dirname "$0")/../LICENSE" "$content"
cp -R "$dist/man" "$content"
cp -L "$binary" "$content/$name$suffix"
chmod -R u=rwX,go=rX "$content"
chmod 755 "$content/$name$suffix"

tar --directory "$content" --create --format=ustar --sort=name --mtime='2000-01-01 00:00Z' \
  --owner=0 --group=0 --numeric-owner LICENSE man "$name$suffix" |
  gzip --no-name --best >"$dist/${name}_${version}_${os}_$arch.tar.gz"
