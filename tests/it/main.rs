//! The program from outside, without a cluster: help, usage, and errors of the connection.

mod completion;
mod connection;
mod help;
mod support;
mod version;
