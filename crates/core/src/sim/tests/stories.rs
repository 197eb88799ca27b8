//! The model tells every story as the real controllers did; their recordings are kept by the lab.

use std::path::PathBuf;

use crate::sim::story::{Record, play, stories};

fn recording(name: &str) -> Option<Record> {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/lab/recordings");
    let text = std::fs::read_to_string(PathBuf::from(recordings).join(format!("{name}.json")));
    text.ok().map(|text| serde_json::from_str(&text).unwrap())
}

#[test]
fn every_story_is_told_as_the_real_controllers_told_it() {
    let mut differences = Vec::new();
    for story in stories() {
        let played = play(&story, 1).unwrap();
        match recording(story.name) {
            None => differences.push(format!("{}: no recording\n  {played:?}", story.name)),
            Some(real) if real != played => {
                differences.push(format!("{}:\n  real {real:?}\n  here {played:?}", story.name));
            }
            Some(_) => {}
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
