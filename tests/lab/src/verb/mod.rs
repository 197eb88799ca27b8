//! One module for each verb of the program.

pub(crate) mod deploy;
pub(crate) mod enter;
pub(crate) mod run;
pub(crate) mod test;
pub(crate) mod up;
