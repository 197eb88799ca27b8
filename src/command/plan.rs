//! `plan`: what `promote` would do and when, told without doing it.

use zone_rollout_core::promote::{Blocker, Goal, Plan, Planned};
use zone_rollout_core::rehearsal::{Rehearsal, Timeline, drift, rehearse};

use super::Context;
use super::release::{self, Judged, judge};
use crate::cli::{PlanArgs, PlanOutput};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::document;
use crate::render::words::blocked;
use crate::render::{Io, plan as plan_text, timeline};

pub(super) async fn run(context: &Context, args: &PlanArgs, io: &mut Io) -> Result<Exit, Error> {
    let want = release::want(context, &args.release);
    let judged = judge(context, &args.release, &want, io).await?;
    let preview = Preview::of(&judged);
    let exit = match &judged.planned {
        Planned::Refused(_) => Exit::Refused,
        _ => Exit::Done,
    };
    match args.output {
        PlanOutput::Text => io.result(&text(context, &judged, &preview, io)),
        PlanOutput::Json => {
            let now = context.clock.now();
            let document = document::plan(&judged.group, &judged.planned, preview.document(), now);
            io.result(&document::json(&document)?);
        }
    }
    Ok(exit)
}

/// What would happen, as far as the model knows.
enum Preview {
    /// Nothing.
    Nothing,
    /// A promotion.
    Promotion { hash: String, rehearsal: Box<Rehearsal> },
    /// What zones do by themselves, since nobody orders them.
    Drift(Timeline),
    /// It cannot be foretold.
    Unknown { hash: Option<String>, why: String },
}

impl Preview {
    fn of(judged: &Judged) -> Self {
        match (&judged.planned, &judged.goal) {
            (Planned::Plan(plan), Some(goal)) => Self::of_plan(judged, plan, goal),
            (Planned::Refused(_), Some(_)) => match drift(&judged.scene, &judged.group) {
                Ok(timeline) => Self::Drift(timeline),
                Err(unmodelled) => Self::Unknown { hash: None, why: unmodelled.to_string() },
            },
            _ => Self::Nothing,
        }
    }

    fn of_plan(judged: &Judged, plan: &Plan, goal: &Goal) -> Self {
        let Judged { scene, group, settings, .. } = judged;
        let hash = release::hash(plan, scene, group, settings);
        match rehearse(scene, group, settings, goal) {
            Ok(rehearsal) => Self::Promotion { hash, rehearsal: Box::new(rehearsal) },
            Err(unmodelled) => Self::Unknown { hash: Some(hash), why: unmodelled.to_string() },
        }
    }

    fn document(&self) -> document::Preview<'_> {
        match self {
            Self::Nothing => document::Preview::default(),
            Self::Promotion { hash, rehearsal } => document::Preview {
                hash: Some(hash.clone()),
                timeline: Some(&rehearsal.timeline),
                ending: Some(timeline::ending(rehearsal)),
                unknown: None,
            },
            Self::Drift(timeline) => {
                document::Preview { timeline: Some(timeline), ..document::Preview::default() }
            }
            Self::Unknown { hash, why } => document::Preview {
                hash: hash.clone(),
                unknown: Some(why.clone()),
                ..document::Preview::default()
            },
        }
    }
}

fn text(context: &Context, judged: &Judged, preview: &Preview, io: &Io) -> String {
    let mut parts = vec![match &judged.planned {
        Planned::NothingToDo => "nothing to do: no zone is to be updated".to_owned(),
        Planned::Refused(blockers) => refusal(context, judged, blockers),
        Planned::Plan(plan) => {
            plan_text::text(plan, &judged.group, &judged.settings, io.terminal())
        }
    }];
    match preview {
        Preview::Nothing => {}
        Preview::Promotion { hash, rehearsal } => {
            parts.push(timeline::promotion(rehearsal, io.terminal()));
            parts.push(to_carry_it_out(context, judged, hash));
        }
        Preview::Drift(drift) => parts.push(timeline::drift(drift, io.terminal())),
        Preview::Unknown { hash, why } => {
            parts.push(format!("When is not known: {why}."));
            parts.extend(hash.as_ref().map(|hash| to_carry_it_out(context, judged, hash)));
        }
    }
    parts.join("\n\n")
}

fn refusal(context: &Context, judged: &Judged, blockers: &[Blocker]) -> String {
    let lines = blocked::all(blockers, &judged.group, &context.flags, context.clock.now());
    format!("`promote` would refuse: {}", lines.join("\n"))
}

/// The same flags for `promote`, and the hash that makes it insist on this plan.
fn to_carry_it_out(context: &Context, judged: &Judged, hash: &str) -> String {
    let typed = context.typed.strip_prefix("plan").unwrap_or(&context.typed);
    let sequential = if judged.settings.order.len() > 1 { " --sequential" } else { "" };
    format!("Just this plan:\n  kubectl zone-rollout promote{typed}{sequential} --plan {hash}")
}
