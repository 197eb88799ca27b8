//! The program from outside, without a cluster: help, usage, and errors of the connection.

mod connection;
mod help;
mod support;
