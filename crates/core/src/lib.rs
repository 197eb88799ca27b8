//! The pure domain of `kubectl zone-rollout`: what is known about a group of Rollouts, the state of
//! each zone, where traffic goes, and what may be done next. Nothing here reads a clock, a file, an
//! environment variable or a network; everything is a function of its arguments.

pub mod by_hand;
pub mod diagnose;
pub mod diversion;
pub mod exposure;
pub mod gitops;
pub mod group;
pub mod layout;
pub mod promote;
pub mod proof;
pub mod rehearsal;
pub mod scene;
pub mod sim;
pub mod takeback;
pub mod template;
pub mod time;
pub mod traffic;
pub mod write;
pub mod zone;

#[cfg(test)]
mod testing;
