//! What a person types to name a group or a zone: `GROUP`, `GROUP/ZONE`, or a zone alone.

use super::{Group, ZoneId};

/// A group, and one zone of it if the address named one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection<'a> {
    /// The group.
    pub group: &'a Group,
    /// The zone, if one was named.
    pub zone: Option<ZoneId>,
}

/// Why an address names nothing, or too much.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// There is no group at all.
    #[error("no Rollout serves a zone")]
    NoGroups,
    /// Several groups, and the address does not say which.
    #[error("there are several groups: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The address could mean several zones.
    #[error("`{address}` could be any of {}", candidates.join(", "))]
    Ambiguous {
        /// What was typed.
        address: String,
        /// What it could mean.
        candidates: Vec<String>,
    },
    /// Nothing is called like this.
    #[error("no group or zone is called `{address}`; there is {}", known.join(", "))]
    Unknown {
        /// What was typed.
        address: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// Finds what an address names; without an address, the only group.
///
/// A zone answers to its short name, its Rollout's name and its topology zone.
///
/// # Errors
/// If the address names nothing or could mean several things; the error lists the candidates.
pub fn resolve<'a>(
    groups: &'a [Group],
    address: Option<&str>,
) -> Result<Selection<'a>, AddressError> {
    if groups.is_empty() {
        return Err(AddressError::NoGroups);
    }
    let Some(address) = address else {
        return match groups {
            [group] => Ok(Selection { group, zone: None }),
            _ => {
                Err(AddressError::Several(groups.iter().map(|group| group.name.clone()).collect()))
            }
        };
    };
    if let Some(group) = groups.iter().find(|group| group.name == address) {
        return Ok(Selection { group, zone: None });
    }
    let candidates = candidates(groups, address);
    match candidates.as_slice() {
        [(group, zone)] => Ok(Selection { group, zone: Some(zone.clone()) }),
        [] => Err(AddressError::Unknown { address: address.to_owned(), known: known(groups) }),
        several => Err(AddressError::Ambiguous {
            address: address.to_owned(),
            candidates: several
                .iter()
                .map(|(group, zone)| format!("{}/{zone}", group.name))
                .collect(),
        }),
    }
}

fn candidates<'a>(groups: &'a [Group], address: &str) -> Vec<(&'a Group, ZoneId)> {
    let (group_name, zone_name) = match address.split_once('/') {
        Some((group, zone)) => (Some(group), zone),
        None => (None, address),
    };
    groups
        .iter()
        .filter(|group| group_name.is_none_or(|name| group.name == name))
        .flat_map(|group| group.zones.iter().map(move |zone| (group, zone)))
        .filter(|(_, zone)| {
            zone.id.0 == zone_name
                || zone.rollout.name == zone_name
                || zone.topology.as_deref() == Some(zone_name)
        })
        .map(|(group, zone)| (group, zone.id.clone()))
        .collect()
}

fn known(groups: &[Group]) -> Vec<String> {
    groups
        .iter()
        .map(|group| {
            let zones: Vec<&str> = group.zones.iter().map(|zone| zone.id.0.as_str()).collect();
            format!("group `{}` with zones {}", group.name, zones.join(", "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Zone;
    use crate::scene::Key;

    fn group(name: &str) -> Group {
        let zone = |short: &str| Zone {
            id: ZoneId(short.to_owned()),
            rollout: Key::new("default", format!("{name}-{short}")),
            topology: Some(format!("us-east-1{short}")),
        };
        Group {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            zones: vec![zone("a"), zone("b")],
        }
    }

    fn told(groups: &[Group], address: Option<&str>) -> String {
        match resolve(groups, address) {
            Ok(found) => match found.zone {
                Some(zone) => format!("{}/{zone}", found.group.name),
                None => found.group.name.clone(),
            },
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn one_group_needs_no_name() {
        let groups = [group("test")];
        assert_eq!(told(&groups, None), "test");
        for address in ["a", "test-a", "us-east-1a", "test/a", "test/us-east-1a"] {
            assert_eq!(told(&groups, Some(address)), "test/a", "{address}");
        }
        assert_eq!(
            told(&groups, Some("d")),
            "no group or zone is called `d`; there is group `test` with zones a, b"
        );
    }

    #[test]
    fn what_is_ambiguous_names_its_candidates() {
        let groups = [group("test"), group("shop")];
        assert_eq!(told(&groups, None), "there are several groups: test, shop");
        assert_eq!(told(&groups, Some("a")), "`a` could be any of test/a, shop/a");
        assert_eq!(told(&groups, Some("shop-b")), "shop/b");
        assert_eq!(told(&[], None), "no Rollout serves a zone");
    }
}
