//! Help and usage.

use crate::support::{program, shown};

#[test]
fn help_names_the_verbs() {
    let home = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(shown(program(home.path()).arg("-h")));
}

#[test]
fn help_of_promote_explains_each_flag() {
    let home = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(shown(program(home.path()).args(["promote", "-h"])));
}

#[test]
fn a_command_line_that_makes_no_sense_exits_with_2() {
    let home = tempfile::tempdir().unwrap();
    for line in [
        vec!["unknown"],
        vec!["status", "--unknown"],
        vec!["status", "-o", "jsonpath"],
        vec!["promote", "--soak", "soon"],
        vec!["promote", "--hold"],
        vec!["promote", "--image", "a", "--expect", "b"],
        vec!["abort", "a", "--all"],
        vec!["abort", "--stable-floor", "120"],
    ] {
        let output = program(home.path()).args(&line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        assert!(!output.stderr.is_empty(), "{line:?} says nothing");
    }
}
