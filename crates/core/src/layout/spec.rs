//! What a layout is made from, and what is wrong with it.

use std::time::Duration;

use crate::time::parse_duration;

/// Longest name of a Service and value of a label, in characters.
const LONGEST: usize = 63;
/// Longest short name of a zone: two of them have to fit into the name of a ring label.
const LONGEST_SHORT: usize = 20;

/// What to generate a layout from.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Name of the service; Rollouts are called `NAME-ZONE`.
    pub name: String,
    /// Namespace of all objects.
    pub namespace: String,
    /// Image of the one container.
    pub image: String,
    /// Zones in the order of the ring and of a promotion; at least two.
    pub zones: Vec<SpecZone>,
    /// Pods in each zone.
    pub replicas: u32,
    /// Port of the Service.
    pub port: u16,
    /// Port of the container.
    pub target_port: u16,
    /// Whether each zone waits at `pause: {}` before its first weight.
    pub gate: bool,
    /// Weights in percent, ascending.
    pub weights: Vec<u32>,
    /// Pause after each weight, as Argo Rollouts reads it: `5m`.
    pub pause: String,
    /// Seconds without progress until a Rollout counts as stuck.
    pub progress_deadline_seconds: u32,
    /// Version of `networking.istio.io` to write: `v1` from Istio 1.22, else `v1beta1`.
    pub istio_api_version: String,
}

/// A zone of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecZone {
    /// Short name, part of object names: `a`.
    pub short: String,
    /// Value of `topology.kubernetes.io/zone` on its nodes: `us-east-1a`.
    pub topology: String,
}

/// Why there is no layout for what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A single zone is no group.
    #[error("a group has at least two zones")]
    TooFewZones,
    /// The same zone was named twice.
    #[error("zone `{0}` is named twice")]
    SameZone(String),
    /// Two zones would have objects of the same names.
    #[error("zones `{0}` and `{1}` have the same short name `{2}`; name them, as SHORT=ZONE")]
    SameShort(String, String, String),
    /// A short name that cannot be part of object names.
    #[error(
        "`{short}` is no short name for zone `{topology}`: it takes 1 to {LONGEST_SHORT} \
         lower-case letters and digits; name it, as SHORT=ZONE"
    )]
    Short {
        /// The short name.
        short: String,
        /// The zone.
        topology: String,
    },
    /// A zone that cannot be the value of a node's label.
    #[error("`{0}` cannot be a zone: it is no value of a label")]
    Topology(String),
    /// The order does not name each zone once.
    #[error("the order has to name each zone once: {0}")]
    Order(String),
    /// A name that the API server would refuse.
    #[error(
        "`{0}` cannot be the name of a Service: it takes lower-case letters, digits and `-`, and \
         begins with a letter"
    )]
    Name(String),
    /// A namespace that the API server would refuse.
    #[error("`{0}` cannot be the name of a namespace")]
    Namespace(String),
    /// A name from which the name of a zone's Service would be too long.
    #[error("`{0}` is too long: a Service's name has at most {LONGEST} characters")]
    TooLong(String),
    /// Weights that do not rise.
    #[error("the steps have to rise, between 1 and 100: {0}")]
    Weights(String),
    /// A pause that would not end, or that nobody can read.
    #[error("`{0}` is no pause: write 90s, 5m or 1h30m")]
    Pause(String),
}

/// Reads zones as they are typed: `us-east-1a`, whose short name is then `a`, or `east=us-east-1a`.
///
/// # Errors
/// If a short name is none, or two zones have the same.
pub fn zones(words: &[String]) -> Result<Vec<SpecZone>, SpecError> {
    let zones: Vec<SpecZone> = words
        .iter()
        .map(|word| {
            let (short, topology) = word.split_once('=').unwrap_or((short_name(word), word));
            SpecZone { short: short.to_owned(), topology: topology.to_owned() }
        })
        .collect();
    check_zones(&zones)?;
    Ok(zones)
}

/// What tells a zone from its neighbours: the letters at the end of its last word, or all of that
/// word if it ends in digits.
fn short_name(topology: &str) -> &str {
    let word = topology.rsplit('-').next().unwrap_or(topology);
    let letters = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    if letters.is_empty() { word } else { letters }
}

/// Puts zones into this order, in which each is named once, by its short name or its topology.
///
/// # Errors
/// If one is missing, named twice or unknown.
pub fn in_order(zones: Vec<SpecZone>, order: &[String]) -> Result<Vec<SpecZone>, SpecError> {
    let mut left = zones;
    let mut ordered = Vec::new();
    for name in order {
        let named = |zone: &SpecZone| zone.short == *name || zone.topology == *name;
        match left.iter().position(named) {
            Some(index) => ordered.push(left.remove(index)),
            None => return Err(SpecError::Order(format!("`{name}` is none, or named twice"))),
        }
    }
    match left.first() {
        Some(missing) => Err(SpecError::Order(format!("`{}` is missing", missing.short))),
        None => Ok(ordered),
    }
}

impl Spec {
    /// Checks what the API server and the controllers would refuse, and what would not work.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        check_zones(&self.zones)?;
        let begins_with_letter = self.name.starts_with(|first: char| first.is_ascii_lowercase());
        if !begins_with_letter || !is_dns_label(&self.name) {
            return Err(SpecError::Name(self.name.clone()));
        }
        if !is_dns_label(&self.namespace) || self.namespace.len() > LONGEST {
            return Err(SpecError::Namespace(self.namespace.clone()));
        }
        let names = self.zones.iter().map(|zone| self.service_name("canary", zone));
        if let Some(name) = names.into_iter().find(|name| name.len() > LONGEST) {
            return Err(SpecError::TooLong(name));
        }
        let rising = self.weights.is_sorted_by(|one, next| one < next);
        let in_range = self.weights.iter().all(|weight| (1..=100).contains(weight));
        if !rising || !in_range || self.weights.is_empty() {
            let told: Vec<String> = self.weights.iter().map(ToString::to_string).collect();
            return Err(SpecError::Weights(told.join(",")));
        }
        match parse_duration(&self.pause) {
            Some(pause) if pause >= Duration::from_secs(1) => Ok(()),
            _ => Err(SpecError::Pause(self.pause.clone())),
        }
    }
}

fn check_zones(zones: &[SpecZone]) -> Result<(), SpecError> {
    for (index, zone) in zones.iter().enumerate() {
        if !is_label_value(&zone.topology) {
            return Err(SpecError::Topology(zone.topology.clone()));
        }
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let fits = (1..=LONGEST_SHORT).contains(&zone.short.len());
        if !fits || !zone.short.chars().all(plain) {
            let (short, topology) = (zone.short.clone(), zone.topology.clone());
            return Err(SpecError::Short { short, topology });
        }
        for other in &zones[..index] {
            if other.topology == zone.topology {
                return Err(SpecError::SameZone(zone.topology.clone()));
            }
            if other.short == zone.short {
                let (one, two) = (other.topology.clone(), zone.topology.clone());
                return Err(SpecError::SameShort(one, two, zone.short.clone()));
            }
        }
    }
    if zones.len() < 2 { Err(SpecError::TooFewZones) } else { Ok(()) }
}

fn is_dns_label(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|letter| plain(letter) || letter == '-')
}

fn is_label_value(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= LONGEST
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|letter| plain(letter) || "-_.".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::spec;

    fn words(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn zones_are_called_by_what_tells_them_apart() {
        let shorts = |text: &str| {
            let zones = zones(&words(text)).map_err(|error| error.to_string())?;
            let shorts: Vec<String> = zones.into_iter().map(|zone| zone.short).collect();
            Ok::<_, String>(shorts.join(","))
        };
        for (zones, expected) in [
            ("us-east-1a,us-east-1b", Ok("a,b")),
            ("europe-west1-b,europe-west1-c", Ok("b,c")),
            ("eastus-1,eastus-2", Ok("1,2")),
            ("us-west-2-lax-1a,us-west-2b", Ok("a,b")),
            ("east=us-east-1a,west=us-west-2a", Ok("east,west")),
            ("us-east-1a", Err("a group has at least two zones")),
            ("us-east-1a,b=us-east-1a", Err("zone `us-east-1a` is named twice")),
            (
                "us-east-1a,us-west-2a",
                Err("zones `us-east-1a` and `us-west-2a` have the same short name `a`; name \
                     them, as SHORT=ZONE"),
            ),
            (
                "us-east-1a,Rack.2",
                Err("`Rack.2` is no short name for zone `Rack.2`: it takes 1 to 20 lower-case \
                     letters and digits; name it, as SHORT=ZONE"),
            ),
            ("a,b/c", Err("`b/c` cannot be a zone: it is no value of a label")),
            (",b", Err("`` cannot be a zone: it is no value of a label")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(shorts(zones), expected, "{zones}");
        }
    }

    #[test]
    fn an_order_names_each_zone_once() {
        let ordered = |order: &str| {
            in_order(spec().zones, &words(order))
                .map(|zones| zones.into_iter().map(|zone| zone.short).collect::<String>())
                .map_err(|error| error.to_string())
        };
        assert_eq!(ordered("c,us-east-1a,b"), Ok("cab".to_owned()));
        for order in ["a,b", "a,b,d", "a,b,b", "a,b,c,c"] {
            assert!(ordered(order).is_err(), "{order}");
        }
    }

    #[test]
    fn what_would_be_refused_later_is_refused_now() {
        let told = |change: &dyn Fn(&mut Spec)| {
            let mut spec = spec();
            change(&mut spec);
            spec.check().err().map(|error| error.to_string())
        };
        assert_eq!(told(&|_| {}), None);
        for name in ["Shop", "1shop", "shop-", "-shop", "shop_1", "shop.x", ""] {
            assert!(told(&|spec| name.clone_into(&mut spec.name)).is_some(), "{name}");
        }
        assert_eq!(told(&|spec| spec.name = "s".repeat(54)), None);
        assert!(told(&|spec| spec.name = "s".repeat(55)).is_some());
        assert!(told(&|spec| spec.namespace = "Shop".to_owned()).is_some());
        for weights in [vec![], vec![0, 10], vec![10, 101], vec![10, 10], vec![20, 10]] {
            assert!(told(&|spec| spec.weights.clone_from(&weights)).is_some(), "{weights:?}");
        }
        for pause in ["0s", "soon", "-5m", ""] {
            assert!(told(&|spec| pause.clone_into(&mut spec.pause)).is_some(), "{pause}");
        }
    }
}
