#!/usr/bin/env bash
# Makes dist/ anew: archives for Linux, for glibc 2.17 and newer, and the manifest that names them.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v$(cargo pkgid --package kubectl-zone-rollout | sed 's/.*[#@]//')
target=${CARGO_TARGET_DIR:-target}

rm -rf dist
cargo run --quiet --locked --example man -- dist/man
# The folders of whoever builds are nobody's business, and differ.
export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/source"
for platform in x86_64:amd64 aarch64:arm64; do
  triple=${platform%:*}-unknown-linux-gnu
  rustup --quiet target add "$triple"
  cargo zigbuild --quiet --release --locked --package kubectl-zone-rollout --target "$triple.2.17"
  plugin-manifest/archive.sh dist "$version" linux "${platform#*:}" \
    "$target/$triple/release/kubectl-zone_rollout"
done
plugin-manifest/manifest.sh dist "$version"
