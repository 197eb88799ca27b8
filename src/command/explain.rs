//! `explain`: what a code means, without a cluster.

use zone_rollout_core::diagnose::{RULES, rule};

use crate::cli::ExplainArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::{Io, findings};

pub(super) fn run(args: &ExplainArgs, io: &mut Io) -> Result<Exit, Error> {
    let Some(code) = &args.code else {
        io.result(&findings::codes(RULES));
        return Ok(Exit::Done);
    };
    let rule = rule(code).ok_or_else(|| {
        Error::usage(format!("there is no finding `{code}`"))
            .hint("see all codes: kubectl zone-rollout explain")
    })?;
    io.result(&findings::explanation(rule));
    Ok(Exit::Done)
}
