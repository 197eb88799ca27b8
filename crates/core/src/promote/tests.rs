//! The machine, played by hand: what is seen goes in, what it wants comes out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::group::{ZoneId, find_groups};
use crate::layout::ring;
use crate::scene::Scene;
use crate::testing::{
    canary, now, object, promoted, running, scene_of, set_weight, settings, spec,
};
use crate::time::Moment;
use crate::write::{Action, Drift, Written};

/// A run over a cluster that a test changes by hand.
struct Play {
    run: Run,
    objects: Vec<Value>,
    now: Moment,
}

fn zone(short: &str) -> ZoneId {
    ZoneId(short.to_owned())
}

impl Play {
    /// All three zones wait at their gates with `myapp:v2`.
    fn at_the_gates(settings: Settings) -> Self {
        let mut objects = running(ring(&spec()));
        for zone in ["a", "b", "c"] {
            canary(&mut objects, zone, 0, 0);
        }
        Self::of(objects, settings)
    }

    fn of(objects: Vec<Value>, settings: Settings) -> Self {
        let scene = scene_of(&objects);
        let group = find_groups(&scene).remove(0);
        let goal = Goal::in_flight(&scene, &group).expect("something is in flight");
        Self { run: Run::new(settings, group, goal, now()), objects, now: now() }
    }

    fn scene(&self) -> Arc<Scene> {
        Arc::new(scene_of(&self.objects))
    }

    fn give(&mut self, input: Input) -> Step {
        step(&mut self.run, input, self.now)
    }

    fn see(&mut self) -> Step {
        let scene = self.scene();
        self.give(Input::Seen { scene, unwatched: None })
    }

    /// Lets time pass, looking every two seconds, until something is wanted or it is over.
    fn wait(&mut self, seconds: u64) -> Step {
        let mut last = Step::default();
        for _ in 0..seconds / 2 {
            self.now = self.now.after(Duration::from_secs(2));
            last = self.see();
            if last.confirm || last.end.is_some() || last.ask.is_some() {
                break;
            }
        }
        last
    }

    /// Answers the wish for a fresh reading; returns the patch it leads to, by object and change.
    fn confirm(&mut self) -> String {
        let scene = self.scene();
        let step = self.give(Input::Confirmed(scene));
        match (&step.write, &step.end) {
            (Some(write), None) => {
                let changes = write.patch();
                let changes = changes.as_array().unwrap();
                let change = changes.iter().find(|op| op["op"] != "test").unwrap();
                format!("{} {}", write.key.name, change["path"].as_str().unwrap())
            }
            (None, Some(outcome)) => format!("{outcome:?}"),
            _ => "nothing".to_owned(),
        }
    }

    /// Waits for the end of the run, which is said only after a fresh reading.
    fn end(&mut self, seconds: u64) -> Option<Outcome> {
        let step = self.wait(seconds);
        assert!(step.confirm && step.end.is_none(), "{:?}", step.end);
        let scene = self.scene();
        self.give(Input::Confirmed(scene)).end
    }

    fn landed(&mut self) -> Step {
        self.give(Input::Written(Written::Landed { resource_version: "9".to_owned() }))
    }

    /// Opens the gate of a zone and brings it to its end.
    fn promote(&mut self, short: &str) {
        self.see();
        assert_eq!(self.confirm(), format!("test-{short} /status/pauseConditions"));
        assert_eq!(self.landed().end, None);
        for weight in [10, 20, 50, 80] {
            self.objects.retain(|object| !is_of(object, short, "v2"));
            canary(&mut self.objects, short, weight, 1);
            assert_eq!(self.wait(2).end, None, "at {weight} %");
        }
        self.objects.retain(|object| !is_of(object, short, "v2"));
        canary(&mut self.objects, short, 80, 3);
        promoted(&mut self.objects, short);
    }
}

fn is_of(object: &Value, zone: &str, hash: &str) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    name.starts_with(&format!("test-{zone}-{hash}"))
}

fn open(play: &mut Play) {
    assert!(play.see().confirm);
    assert_eq!(play.confirm(), "test-a /status/pauseConditions");
}

#[test]
fn zones_are_opened_in_order_and_only_after_the_soak() {
    let mut play = Play::at_the_gates(settings());
    play.promote("a");
    assert!(!play.wait(26).confirm, "zone b was wanted before zone a had soaked");
    assert!(play.wait(10).confirm);
    assert_eq!(play.confirm(), "test-b /status/pauseConditions");
}

#[test]
fn the_whole_group_ends_well() {
    let mut play = Play::at_the_gates(settings());
    for zone in ["a", "b", "c"] {
        play.promote(zone);
        let step = play.wait(40);
        assert!(step.confirm, "zone {zone}: {:?}", step.end);
    }
    assert_eq!(play.confirm(), "Done");
}

#[test]
fn nothing_is_written_from_a_watch() {
    let mut play = Play::at_the_gates(settings());
    let wish = play.see();
    assert!(wish.confirm && wish.write.is_none());
    // By the time of the fresh reading, somebody else has opened the gate.
    let status = &mut object(&mut play.objects, "Rollout", "test-a")["status"];
    status["pauseConditions"] = json!([]);
    assert_eq!(play.confirm(), "LostControl(PromotedElsewhere(ZoneId(\"a\")))");
}

#[test]
fn a_landed_write_is_not_repeated_while_the_watch_is_behind() {
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    play.landed();
    assert!(!play.see().confirm);
    assert!(!play.wait(6).confirm);
}

#[test]
fn a_lost_answer_is_looked_up_in_the_cluster() {
    // It had landed: nothing is written again.
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    play.give(Input::Written(Written::Unknown("connection reset".to_owned())));
    canary(&mut play.objects, "a", 10, 1);
    let step = play.wait(4);
    assert!(!step.confirm && step.end.is_none(), "{:?}", step.end);
    // It had not: it is written, once.
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    play.give(Input::Written(Written::Unknown("connection reset".to_owned())));
    assert!(play.wait(4).confirm);
    assert_eq!(play.confirm(), "test-a /status/pauseConditions");
}

#[test]
fn refused_writes_are_judged_anew_and_end_the_run_if_they_go_on() {
    let mut play = Play::at_the_gates(settings());
    assert!(play.see().confirm);
    for refusal in 1..=5 {
        assert_eq!(play.confirm(), "test-a /status/pauseConditions");
        let drift = Drift::new("the object is not as it was seen");
        let step = play.give(Input::Written(Written::Refused(drift.clone())));
        if refusal < 5 {
            assert!(step.confirm, "after refusal {refusal}");
        } else {
            let lost = LostControl::Refused(zone("a"), drift);
            assert_eq!(step.end, Some(Outcome::LostControl(lost)));
        }
    }
}

#[test]
fn stopping_writes_nothing() {
    for level in [StopLevel::AfterRequest, StopLevel::Now] {
        let mut play = Play::at_the_gates(settings());
        assert!(play.see().confirm);
        // A reading that is under way is not awaited.
        let interrupted = Outcome::Interrupted { writing: None };
        assert_eq!(play.give(Input::Stop(level)).end, Some(interrupted));
        assert_eq!(play.confirm(), "nothing");
    }
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    // The request that is under way is awaited.
    assert_eq!(play.give(Input::Stop(StopLevel::AfterRequest)).end, None);
    assert_eq!(play.landed().end, Some(Outcome::Interrupted { writing: None }));
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    let unknown = Outcome::Interrupted { writing: Some(zone("a")) };
    assert_eq!(play.give(Input::Stop(StopLevel::Now)).end, Some(unknown));
}

#[test]
fn a_soak_does_not_count_what_may_have_been_missed() {
    let mut play = Play::at_the_gates(settings());
    play.promote("a");
    play.wait(40);
    let scene = play.scene();
    play.give(Input::Seen { scene, unwatched: Some(Duration::from_secs(30)) });
    let soak = play.run.zone(&zone("a")).witness.soak.as_ref().unwrap();
    assert!(soak.done() <= Duration::from_secs(12), "{:?}", soak.done());
    assert!(!play.wait(10).confirm);
}

#[test]
fn pods_that_fail_again_and_again_fail_the_zone() {
    let mut play = Play::at_the_gates(settings());
    play.promote("a");
    for restarts in 1..=5 {
        assert!(!play.wait(10).confirm, "after {} restarts", restarts - 1);
        let pod = object(&mut play.objects, "Pod", "test-a-v2-0");
        pod["status"]["containerStatuses"] = json!([{"name": "app", "restartCount": restarts}]);
    }
    let end = play.end(10);
    let Some(Outcome::ZoneFailed { why: Failure::Unsteady { breaks: 5, .. }, .. }) = end else {
        panic!("{end:?}")
    };
}

#[test]
fn a_pod_that_failed_unseen_keeps_the_next_zone_from_starting() {
    for relapse in [
        json!({"containerStatuses": [{"name": "app", "restartCount": 1}]}),
        json!({"conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}),
    ] {
        let mut play = Play::at_the_gates(settings());
        play.promote("a");
        assert!(play.wait(600).confirm);
        // Only the fresh reading shows it: the watches are silent.
        let pod = object(&mut play.objects, "Pod", "test-a-v2-0");
        for (key, value) in relapse.as_object().unwrap() {
            pod["status"][key] = value.clone();
        }
        assert_eq!(play.confirm(), "nothing");
    }
}

#[test]
fn a_watch_alone_does_not_end_a_run() {
    let mut play = Play::at_the_gates(settings());
    play.promote("a");
    let unready = json!([{"type": "Ready", "status": "False"}]);
    let pod = object(&mut play.objects, "Pod", "test-c-v1-0");
    let ready = std::mem::replace(&mut pod["status"]["conditions"], unready);
    assert!(play.wait(1200).confirm);
    for (why, told) in [("down", 1), ("down", 0), ("away", 1)] {
        let step = play.give(Input::NotConfirmed(why.to_owned()));
        assert_eq!((step.end, step.events.len()), (None, told), "{why}");
        assert!(play.wait(4).confirm);
    }
    object(&mut play.objects, "Pod", "test-c-v1-0")["status"]["conditions"] = ready;
    assert_eq!(play.confirm(), "test-b /status/pauseConditions");
}

#[test]
fn a_zone_that_is_not_well_keeps_the_next_one_from_starting() {
    let mut play = Play::at_the_gates(settings());
    play.promote("a");
    let pod = object(&mut play.objects, "Pod", "test-c-v1-0");
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    let step = play.wait(60);
    assert!(!step.confirm && step.end.is_none());
    let Some(Outcome::Stuck { zone, what, .. }) = play.end(600) else { panic!("it goes on") };
    assert_eq!(zone, Some(self::zone("b")));
    assert!(what.contains("pod `test-c-v1-0` is not Ready"), "{what}");
}

#[test]
fn somebody_else_ends_the_run() {
    type Change = fn(&mut Vec<Value>);
    let cases: [(Change, LostControl); 5] = [
        (
            |objects| {
                let status = &mut object(objects, "Rollout", "test-a")["status"];
                status["abort"] = json!(true);
            },
            LostControl::AbortedElsewhere(zone("a")),
        ),
        (
            |objects| {
                object(objects, "Rollout", "test-a")["status"]["promoteFull"] = json!(true);
            },
            LostControl::PromotedElsewhere(zone("a")),
        ),
        (|objects| canary(objects, "c", 10, 1), LostControl::PromotedElsewhere(zone("c"))),
        (
            |objects| {
                let rollout = object(objects, "Rollout", "test-b");
                rollout["spec"]["template"]["spec"]["containers"][0]["image"] = json!("myapp:v3");
                rollout["status"]["currentPodHash"] = json!("v3");
            },
            LostControl::TargetChanged { zone: zone("b"), version: "myapp:v3".to_owned() },
        ),
        (
            |objects| objects.retain(|object| object["metadata"]["name"] != "test-c"),
            LostControl::Deleted(zone("c")),
        ),
    ];
    for (change, lost) in cases {
        let mut play = Play::at_the_gates(settings());
        open(&mut play);
        play.landed();
        canary(&mut play.objects, "a", 10, 1);
        assert_eq!(play.see().end, None);
        change(&mut play.objects);
        assert_eq!(play.see().end, Some(Outcome::LostControl(lost)));
    }
}

#[test]
fn a_controller_that_missed_the_change_is_touched() {
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    play.landed();
    let status = &mut object(&mut play.objects, "Rollout", "test-a")["status"];
    status["pauseConditions"] = json!([]);
    assert!(!play.wait(4).confirm, "it was touched at once");
    assert!(play.wait(4).confirm);
    assert_eq!(play.confirm(), "test-a /metadata/annotations/zone-rollout.io~1nudge");
    play.landed();
    assert!(!play.wait(8).confirm, "it was touched again too soon");
    assert!(play.wait(4).confirm);
    assert_eq!(play.confirm(), "test-a /metadata/annotations/zone-rollout.io~1nudge");
}

#[test]
fn a_lost_zone_is_held_and_then_taken_back() {
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    play.landed();
    canary(&mut play.objects, "a", 10, 1);
    assert_eq!(play.see().end, None);
    for pod in 0..3 {
        let pod = object(&mut play.objects, "Pod", &format!("test-a-v1-{pod}"));
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    }
    assert!(play.see().confirm);
    assert_eq!(play.confirm(), "test-a /spec/paused");
    let rollout = object(&mut play.objects, "Rollout", "test-a");
    rollout["spec"]["paused"] = json!(true);
    rollout["metadata"]["generation"] = json!(3);
    assert!(play.landed().confirm, "the effect is looked for at once");
    assert_eq!(play.confirm(), "nothing", "it went on before the controller had seen the hold");
    object(&mut play.objects, "Rollout", "test-a")["status"]["observedGeneration"] = json!("3");
    assert!(play.wait(2).confirm);
    assert_eq!(play.confirm(), "test-a /status/abort");
    let status = &mut object(&mut play.objects, "Rollout", "test-a")["status"];
    status["abort"] = json!(true);
    status["abortedAt"] = json!("2026-11-30T12:00:10Z");
    assert!(play.landed().confirm);
    assert_eq!(play.confirm(), "test /spec/http/0/route", "the controller will not move it");
    set_weight(&mut play.objects, "a", 0);
    play.landed();
    let scene = play.scene();
    let step = play.give(Input::Confirmed(scene));
    let Some(Outcome::ZoneFailed { why, taken_back, .. }) = step.end else {
        panic!("{:?}", step.end)
    };
    assert!(taken_back && matches!(why, Failure::Outage(_)));
}

#[test]
fn a_pause_for_a_person_is_asked_about_once() {
    let mut settings = settings();
    settings.pauses = Pauses::Ask;
    let mut objects = running(ring(&spec()));
    for zone in ["a", "b", "c"] {
        canary(&mut objects, zone, 0, 0);
        let rollout = object(&mut objects, "Rollout", &format!("test-{zone}"));
        rollout["spec"]["strategy"]["canary"]["steps"][2] = json!({"pause": {}});
    }
    let mut play = Play::of(objects, settings);
    open(&mut play);
    play.landed();
    canary(&mut play.objects, "a", 10, 1);
    let question = Question::Continue { zone: zone("a"), step: 2 };
    let asked = play.wait(4);
    assert_eq!(asked.ask, Some(question));
    assert_eq!(play.wait(4).ask, None, "it was asked twice");
    assert!(play.give(Input::Answered(true)).confirm);
    assert_eq!(play.confirm(), "test-a /status/pauseConditions");
}

#[test]
fn actions_that_start_a_zone_carry_the_standing_of_all_others() {
    let mut play = Play::at_the_gates(settings());
    play.promote("a");
    play.wait(40);
    let scene = play.scene();
    let clearance = clear(&play.run, &scene, &zone("b"), play.now).unwrap();
    let told: Vec<&str> = clearance
        .others()
        .iter()
        .map(|standing| match standing {
            Standing::Verified(proof) => proof.zone().0.as_str(),
            Standing::Serving(zone) => zone.0.as_str(),
            Standing::Skipped(_) => "skipped",
            Standing::Awaiting(_) => "awaiting",
        })
        .collect();
    assert_eq!(told, ["a", "c"]);
    assert_eq!(Action::Open { clearance }.zone(), &zone("b"));
}

/// Zones without gates, at rest on `myapp:v1`; `myapp:v2` is expected, and held until its turn.
fn held() -> Play {
    let mut settings = settings();
    settings.hold = true;
    let objects = running(ring(&crate::layout::Spec { gate: false, ..spec() }));
    let scene = scene_of(&objects);
    let group = find_groups(&scene).remove(0);
    let images = Goal::images(&scene, &group, &["myapp:v2".to_owned()]).unwrap();
    let run = Run::new(settings, group, Goal::Expected(images), now());
    Play { run, objects, now: now() }
}

fn pause(play: &mut Play, short: &str, paused: bool) {
    object(&mut play.objects, "Rollout", &format!("test-{short}"))["spec"]["paused"] =
        json!(paused);
}

#[test]
fn zones_without_gates_are_held_one_by_one() {
    let mut play = held();
    assert!(play.see().confirm);
    for short in ["a", "b", "c"] {
        assert_eq!(play.confirm(), format!("test-{short} /spec/paused"));
        // The watch is behind the write: that is neither a reason to write again nor a release.
        let step = play.landed();
        assert_eq!(step.end, None);
        pause(&mut play, short, true);
        assert_eq!(step.confirm, short != "c", "after zone {short}");
    }
    assert_eq!(play.see().end, None);
    pause(&mut play, "b", false);
    let lost = LostControl::ReleasedElsewhere { zone: zone("b"), by: None };
    assert_eq!(play.see().end, Some(Outcome::LostControl(lost)));
}

#[test]
fn pods_that_do_not_come_up_fail_the_zone_without_the_controllers_help() {
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    play.landed();
    canary(&mut play.objects, "a", 10, 1);
    let pod = object(&mut play.objects, "Pod", "test-a-v2-0");
    pod["status"]["conditions"] = json!([{
        "type": "Ready", "status": "False", "reason": "ContainersNotReady",
        "message": "containers with unready status: [app]",
    }]);
    let status = &mut object(&mut play.objects, "Rollout", "test-a")["status"];
    status["currentStepIndex"] = json!(1);
    status["pauseConditions"] = json!([]);
    status["controllerPause"] = json!(false);
    set_weight(&mut play.objects, "a", 0);
    assert!(!play.wait(600).confirm);
    let Some(Outcome::ZoneFailed { why: Failure::Deadline { trouble, .. }, weight, .. }) =
        play.end(20)
    else {
        panic!("it goes on")
    };
    let told = trouble.unwrap().to_string();
    assert_eq!(told, "pod `test-a-v2-0` is not Ready (containers with unready status: [app])");
    assert_eq!(weight, Some(0));
}

#[test]
fn a_watch_that_is_behind_a_fresh_reading_is_no_change_back() {
    let mut play = held();
    let behind = play.scene();
    assert!(play.see().confirm);
    for short in ["a", "b", "c"] {
        assert_eq!(play.confirm(), format!("test-{short} /spec/paused"));
        pause(&mut play, short, true);
        assert_eq!(play.landed().end, None);
    }
    let step = play.give(Input::Seen { scene: behind, unwatched: None });
    assert_eq!(step.end, None);
}

/// As the controller writes it for a moment: the new generation is observed, and the hash is the old.
#[test]
fn an_old_hash_beside_a_new_template_is_no_promotion() {
    let mut play = held();
    for short in ["a", "b", "c"] {
        play.wait(2);
        assert_eq!(play.confirm(), format!("test-{short} /spec/paused"));
        pause(&mut play, short, true);
        play.landed();
    }
    let rollout = object(&mut play.objects, "Rollout", "test-a");
    rollout["spec"]["template"]["spec"]["containers"][0]["image"] = json!("myapp:v2");
    rollout["metadata"]["generation"] = json!(2);
    rollout["status"]["observedGeneration"] = json!("2");
    let step = play.wait(4);
    assert_eq!(step.end, None);
    assert_eq!(play.run.zone(&zone("a")).target, None, "the old hash was pinned");
}

#[test]
fn a_reading_that_fails_is_told_and_tried_again_a_little_later() {
    let mut play = Play::at_the_gates(settings());
    assert!(play.see().confirm);
    let step = play.give(Input::NotConfirmed("no answer".to_owned()));
    assert_eq!(step.events, [Event::NotRead("no answer".to_owned())]);
    assert!(!play.see().confirm, "it was tried again at once");
    assert!(play.wait(2).confirm);
}

#[test]
fn a_zone_that_was_lost_for_a_moment_only_goes_on() {
    let mut play = Play::at_the_gates(settings());
    open(&mut play);
    play.landed();
    canary(&mut play.objects, "a", 10, 1);
    assert_eq!(play.see().end, None);
    let well = play.objects.clone();
    for pod in 0..3 {
        let pod = object(&mut play.objects, "Pod", &format!("test-a-v1-{pod}"));
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    }
    assert!(play.see().confirm, "it is to be held");
    play.objects = well;
    assert_eq!(play.confirm(), "nothing", "the fresh reading shows it well");
    let step = play.wait(4);
    assert!(!step.confirm && step.end.is_none());
}

#[test]
fn a_zone_that_is_unwell_itself_is_not_started() {
    let mut play = Play::at_the_gates(settings());
    let pod = object(&mut play.objects, "Pod", "test-a-v1-0");
    pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    let step = play.wait(20);
    assert!(!step.confirm && step.end.is_none());
}

#[test]
fn an_analysis_may_take_its_time() {
    let mut play = Play::at_the_gates(settings());
    for zone in ["a", "b", "c"] {
        let rollout = object(&mut play.objects, "Rollout", &format!("test-{zone}"));
        rollout["spec"]["strategy"]["canary"]["steps"][2] = json!({"analysis": {}});
    }
    open(&mut play);
    play.landed();
    canary(&mut play.objects, "a", 10, 1);
    let status = &mut object(&mut play.objects, "Rollout", "test-a")["status"];
    status["pauseConditions"] = json!([]);
    status["controllerPause"] = json!(false);
    let step = play.wait(3600);
    assert_eq!(step.end, None);
}

#[test]
fn a_zone_on_its_way_is_taken_over_from_an_interrupted_run() {
    let mut objects = running(ring(&spec()));
    for zone in ["a", "b", "c"] {
        canary(&mut objects, zone, 0, 0);
    }
    canary(&mut objects, "b", 20, 1);
    let mut play = Play::of(objects, settings());
    let step = play.wait(10);
    assert!(!step.confirm && step.end.is_none(), "{:?}", step.end);
    // Its gate may have been opened only just now.
    let status = &mut object(&mut play.objects, "Rollout", "test-b")["status"];
    status["currentStepIndex"] = json!(0);
    status["pauseConditions"] = json!([]);
    let mut play = Play::of(play.objects, settings());
    let step = play.wait(4);
    assert!(!step.confirm && step.end.is_none(), "{:?}", step.end);
}

#[test]
fn a_pause_is_not_ended_while_the_rollout_is_still_being_written() {
    let mut play = Play::at_the_gates(settings());
    play.see();
    play.give(Input::NotConfirmed(String::new()));
    play.now = play.now.after(Duration::from_secs(5));
    object(&mut play.objects, "Rollout", "test-a")["metadata"]["resourceVersion"] = json!("8");
    assert!(!play.see().confirm, "it was written a moment ago");
    assert!(play.wait(2).confirm);
}
