//! What the plugin promises, on the real control plane: each story is one that users live through.

mod abort;
mod by_hand;
mod connection;
mod contention;
mod docs;
mod evacuate;
mod failure;
mod faults;
mod gitops;
mod hold;
mod image;
mod install;
mod manifests;
mod order;
mod output;
mod plan;
mod recorded;
mod refusals;
mod restarts;
mod schemas;
mod soak;
mod support;
mod version;
