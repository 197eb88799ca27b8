//! x
use super::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Io;
pub(super) async fn run(
    _c: &Context<'_>,
    _a: &crate::cli::PromoteArgs,
    _io: &mut Io,
) -> Result<Exit, Error> {
    Err(Error::unexpected("x"))
}
