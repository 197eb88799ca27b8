//! The program from outside, without a cluster: help, usage, errors of the connection, the demo.

mod completion;
mod connection;
mod demo;
mod help;
mod manifests;
mod support;
mod version;
