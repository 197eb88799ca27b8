//! x
/// Start of the name of a route that sends a zone's clients elsewhere: `evacuate-a`.
pub const ROUTE_PREFIX: &str = "evacuate-";
