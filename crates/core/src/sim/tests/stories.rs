//! The model tells every story as the real controllers did; their recordings are kept by the lab.

use std::path::PathBuf;

use crate::sim::story::{Record, play, stories};

fn recording(name: &str) -> Record {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/lab/recordings");
    let file = PathBuf::from(recordings).join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_story_is_told_as_the_real_controllers_told_it() {
    let mut differences = Vec::new();
    for story in stories() {
        let real = recording(story.name);
        for seed in 1..=8 {
            let played = play(&story, seed).unwrap();
            if real != played {
                let name = story.name;
                differences
                    .push(format!("{name}, seed {seed}:\n  real {real:?}\n  here {played:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
