//! Writes of the tool: applied as the API server applies them, or lost on the way.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::scene::{Rollout, VirtualService};
use crate::sim::{By, World};
use crate::write::{Drift, Subresource, TargetKind, Write, Written};

/// What becomes of the next write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It never reaches the server.
    NotSent,
    /// It is applied, and the answer is lost.
    AnswerLost,
    /// It is lost, and so is the answer.
    Lost,
    /// Somebody writes at the same time and is faster.
    Conflict,
    /// The user may not do it.
    Denied,
    /// A webhook refuses it.
    Invalid,
}

impl World {
    /// Lets the next write that has no fault yet fail in this way.
    pub fn fail_next_write(&mut self, fault: Fault) {
        self.faults.push_back(fault);
    }

    /// Applies a write of the tool.
    pub fn apply(&mut self, write: &Write) -> Written {
        match self.faults.pop_front() {
            None => self.land(write),
            Some(Fault::AnswerLost) => {
                self.land(write);
                Written::Unknown("the answer was lost".to_owned())
            }
            Some(Fault::Lost) => Written::Unknown("the answer was lost".to_owned()),
            Some(Fault::NotSent) => Written::NotSent("connection refused".to_owned()),
            Some(Fault::Conflict) => {
                Written::Refused(Drift::new("the object has been modified by somebody else"))
            }
            Some(Fault::Denied) => Written::Denied("forbidden".to_owned()),
            Some(Fault::Invalid) => Written::Invalid("denied by an admission webhook".to_owned()),
        }
    }

    fn land(&mut self, write: &Write) -> Written {
        let landed = match write.kind {
            TargetKind::Rollout => self.write_rollout(write),
            TargetKind::VirtualService => self.write_route(write),
        };
        match landed {
            Ok(()) => Written::Landed { resource_version: self.version.to_string() },
            Err(written) => written,
        }
    }

    /// A write to the status changes nothing else, and one to the object does not change the status.
    fn write_rollout(&mut self, write: &Write) -> Result<(), Written> {
        let before = self.rollout(&write.key);
        let before = before.ok_or_else(|| not_found("rollouts.argoproj.io", write))?;
        let patched: Rollout = patched(write, before.as_ref())?;
        let rollout = match write.subresource {
            Subresource::Status => Rollout { status: patched.status, ..(*before).clone() },
            Subresource::Main => Rollout { status: before.status.clone(), ..patched },
        };
        self.put_rollout(By::Tool, rollout);
        Ok(())
    }

    fn write_route(&mut self, write: &Write) -> Result<(), Written> {
        let before = self.scene.routes.get(&write.key);
        let before =
            before.ok_or_else(|| not_found("virtualservices.networking.istio.io", write))?;
        let patched: VirtualService = patched(write, before)?;
        self.put_route(By::Tool, patched);
        Ok(())
    }
}

fn not_found(kind: &str, write: &Write) -> Written {
    Written::Refused(Drift::new(format!("{kind} \"{}\" not found", write.key.name)))
}

fn patched<T: Serialize + DeserializeOwned>(write: &Write, object: &T) -> Result<T, Written> {
    let mut json =
        serde_json::to_value(object).map_err(|error| Written::Invalid(error.to_string()))?;
    write.apply_to(&mut json).map_err(Written::Refused)?;
    serde_json::from_value(json).map_err(|error| Written::Invalid(error.to_string()))
}
