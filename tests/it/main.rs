//! The program from outside, without a cluster: help, usage, errors of the connection, and
//! what is found in files.

mod connection;
mod corpus;
mod diagnose;
mod help;
mod support;
