#!/usr/bin/env bash
# manifest.sh DIST VERSION: writes the sums of all archives in DIST, and the manifest that names them.
set -euo pipefail

dist=$1 version=$2
template=$(dirname "$0")/zone-rollout.yaml

(cd "$dist" && sha256sum -- *.tar.gz >SHA256SUMS)

# A paragraph of the template that names an archive is a platform; the first one is about the template.
sed "s/VERSION/$version/g" "$template" | awk '
  NR == FNR { sum[$2] = $1; next }
  FNR == 1 { next }
  match($0, /kubectl-zone_rollout_[^\n]*\.tar\.gz/) {
    archive = substr($0, RSTART, RLENGTH)
    if (!(archive in sum)) next
    sub(/SHA256/, sum[archive])
  }
  { print }
' "$dist/SHA256SUMS" RS= - >"$dist/zone-rollout.yaml"
