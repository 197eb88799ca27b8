//! The zones of the lab: their nodes, and the address at which each zone's client is reached.

/// A zone of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Zone {
    /// Short name: `a`.
    pub short: &'static str,
    /// Value of `topology.kubernetes.io/zone` on its nodes.
    pub topology: &'static str,
    number: u8,
}

/// The region of all zones.
pub(crate) const REGION: &str = "us-east-1";

/// All zones, in the order of the ring.
pub const ZONES: [Zone; 3] = [
    Zone { short: "a", topology: "us-east-1a", number: 1 },
    Zone { short: "b", topology: "us-east-1b", number: 2 },
    Zone { short: "c", topology: "us-east-1c", number: 3 },
];

const NODES_PER_ZONE: u8 = 2;

impl Zone {
    /// The zone with a short name such as `a`.
    ///
    /// # Panics
    ///
    /// When the lab has no such zone.
    pub fn named(short: &str) -> Self {
        let found = ZONES.into_iter().find(|zone| zone.short == short);
        found.unwrap_or_else(|| panic!("the lab has the zones a, b and c, not `{short}`"))
    }

    /// Names of the zone's nodes.
    pub fn nodes(self) -> impl Iterator<Item = String> {
        (1..=NODES_PER_ZONE).map(move |node| format!("node-{}{node}", self.short))
    }

    /// Name of the pod that stands for the zone's clients, in namespace `clients`.
    pub fn client_pod(self) -> String {
        format!("client-{}", self.short)
    }

    /// Address at which that client's sidecar takes requests to the mesh.
    pub(crate) fn client_address(self) -> String {
        format!("127.0.1.{}", self.number)
    }

    /// Port of that sidecar's admin interface on the loopback address.
    pub(crate) fn admin_port(self) -> u16 {
        19_000 + u16::from(self.number)
    }
}
