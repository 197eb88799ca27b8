#!/usr/bin/env bash
# Runs every check, one phase after another, and prints how long each took. Ends at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."

lab=(cargo run --quiet -p zone-lab --bin lab --)
summary=""

phase() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  summary+=$(printf '%6d s  %s' $((SECONDS - start)) "$name")$'\n'
}

phase "format" cargo fmt --all -- --check
phase "lints" cargo clippy --quiet --workspace --all-targets -- -D warnings
# The crates of other systems, too: without them the licences cannot be read offline.
phase "fetching" cargo fetch --quiet --locked
phase "dependencies" cargo deny --offline --log-level error check bans licenses sources
phase "unit, property and command-line tests" cargo test --quiet
phase "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps
phase "the lab's programs" "${lab[@]}" build
phase "stories on the real control plane" "${lab[@]}" test

printf '\n== all checks passed\n%s%6d s  in all\n' "$summary" "$SECONDS"
