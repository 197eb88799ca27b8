//! The model against what was measured on the real controllers, one test for each finding.

mod aborts;
mod adopted;
mod losses;
mod people;
mod promotions;
mod stories;
mod support;
mod waves;
mod writes;
