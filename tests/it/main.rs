//! The program from outside, without a cluster: help, usage, errors of the connection, the demo, and
//! what is found in files.

mod completion;
mod connection;
mod corpus;
mod demo;
mod diagnose;
mod help;
mod manifests;
mod support;
mod version;
