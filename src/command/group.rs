//! Finding the group that is meant.

use std::collections::BTreeSet;

use zone_rollout_core::group::{AddressError, Group, ZoneId, find_groups, group_by_hand, resolve};
use zone_rollout_core::scene::{Coverage, Scene};

use super::Context;
use crate::cli::Which;
use crate::cluster::Want;
use crate::error::Error;

impl Context {
    /// What has to be read for these Rollouts.
    pub(super) fn want(&self, which: &Which) -> Want {
        Want {
            namespace: self.namespace.clone(),
            selector: which.selector.clone(),
            ..Want::default()
        }
    }

    /// The group, and the zone of it, that an address names.
    pub(super) fn find(
        &self,
        scene: &Scene,
        which: &Which,
        address: Option<&str>,
    ) -> Result<(Group, Option<ZoneId>), Error> {
        let groups = self.groups(scene, which)?;
        match resolve(&groups, address) {
            Ok(found) => Ok((found.group.clone(), found.zone)),
            Err(error) => Err(self.no_such(&error, &groups)),
        }
    }

    /// Fails if the Rollouts could not be read at all.
    pub(super) fn require_rollouts(&self, scene: &Scene) -> Result<(), Error> {
        match &scene.rollouts.coverage {
            Coverage::Forbidden => Err(Error::unexpected(format!(
                "you may not list Rollouts in namespace `{}`",
                self.namespace
            ))
            .hint(format!("see what you may do: kubectl auth can-i --list{}", self.flags.0))),
            Coverage::KindAbsent => {
                Err(Error::unexpected("this cluster does not serve Argo Rollouts")
                    .because("there is no resource rollouts.argoproj.io")
                    .hint("see which context is used: kubectl config current-context"))
            }
            _ => Ok(()),
        }
    }

    /// All groups of the namespace.
    fn groups(&self, scene: &Scene, which: &Which) -> Result<Vec<Group>, Error> {
        self.require_rollouts(scene)?;
        if which.rollouts.is_empty() {
            return Ok(find_groups(scene));
        }
        let names: BTreeSet<String> = which.rollouts.iter().cloned().collect();
        let known: BTreeSet<String> =
            scene.rollouts.iter().map(|(key, _)| key.name.clone()).collect();
        if let Some(unknown) = names.difference(&known).next() {
            return Err(Error::usage(format!(
                "there is no Rollout `{unknown}` in namespace `{}`",
                self.namespace
            ))
            .hint(format!("see which there are: kubectl get rollouts{}", self.flags.0)));
        }
        Ok(group_by_hand(scene, &names).into_iter().collect())
    }

    fn no_such(&self, error: &AddressError, groups: &[Group]) -> Error {
        let flags = &self.flags.0;
        let failed = Error::usage(format!("in namespace `{}`, {error}", self.namespace));
        match error {
            AddressError::NoGroups => failed.hint(format!(
                "Rollouts need label `zone-rollout.io/zone`, or an affinity to one zone; see \
                 which there are: kubectl get rollouts --show-labels{flags}"
            )),
            AddressError::Several(_) => failed.hint(format!(
                "name one after the verb; see what it has: kubectl zone-rollout status {}{flags}",
                groups.first().map_or("GROUP", |group| group.name.as_str())
            )),
            AddressError::Ambiguous { candidates, .. } => failed.hint(format!(
                "name it in full: kubectl zone-rollout status {}{flags}",
                candidates.first().map_or("GROUP/ZONE", String::as_str)
            )),
            AddressError::Unknown { .. } => {
                failed.hint(format!("see all: kubectl zone-rollout status{flags}"))
            }
        }
    }
}
