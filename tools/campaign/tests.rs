//! Short runs of the campaign, for every `cargo test`: of all parts but those that `.ci/run` has whole (a cut at every
//! operation, errors, mutants).

use super::*;

#[track_caller]
fn sound(tally: &Tally) {
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
}

#[test]
fn random_cuts_lose_nothing() {
    let lab = tempfile::tempdir().unwrap();
    let tally = cuts::random(Kind::Any, lab.path(), 7, 200, Broken::default());
    sound(&tally);
    assert!(tally.cuts_again > 200, "{tally:?}");
}

#[test]
fn cuts_among_threads_lose_nothing() {
    let lab = tempfile::tempdir().unwrap();
    let tally = cuts::random(Kind::Threads, lab.path(), 7, 30, Broken::default());
    sound(&tally);
    assert!(tally.cuts >= 30, "{tally:?}");
}

#[test]
fn a_stream_resent_after_any_cut_is_counted_once() {
    let lab = tempfile::tempdir().unwrap();
    let tally = cuts::random(Kind::Ends, lab.path(), 7, 100, Broken::default());
    sound(&tally);
    assert!(tally.cuts >= 100, "{tally:?}");
}

#[test]
fn rankings_from_the_last_one_agree_after_any_cut() {
    let lab = tempfile::tempdir().unwrap();
    let tally = cuts::random(Kind::Changes, lab.path(), 7, 30, Broken::default());
    sound(&tally);
    assert!(tally.cuts >= 30, "{tally:?}");
}

#[test]
fn readers_say_what_they_cannot_read() {
    let lab = tempfile::tempdir().unwrap();
    let scenario = Scenario::published_twice(lab.path(), 7).unwrap();
    let tally = reading::sweep(&scenario, 7, &reading::FAILING).unwrap();
    sound(&tally);
    assert!(tally.faults > 1_000, "{tally:?}");
}

#[test]
fn commands_at_once_leave_what_one_after_the_other_does() {
    let lab = tempfile::tempdir().unwrap();
    let tally = together::campaign(lab.path(), 7, 40, false);
    sound(&tally);
    assert_eq!(tally.survivors, 40);
}

/// Returns the program, if `cargo test` built it.
fn binary() -> Option<Binary> {
    let found = Binary::beside().and_then(Binary::existing);
    found.inspect_err(|what| eprintln!("SKIPPED: {what}")).ok()
}

#[test]
fn kills_lose_nothing() {
    let Some(binary) = binary() else { return };
    let lab = tempfile::tempdir().unwrap();
    let tally = kills::campaign(&binary, lab.path(), 7, 3).unwrap();
    sound(&tally);
    assert!(tally.cuts >= 3, "{tally:?}");
}

#[test]
fn a_full_disk_loses_nothing() {
    let Some(binary) = binary() else { return };
    let lab = tempfile::tempdir().unwrap();
    let tally = full_disk::campaign(&binary, lab.path(), 7, 2).unwrap();
    sound(&tally);
}

#[test]
fn names_that_are_taken_stay_their_owners() {
    let Some(binary) = binary() else { return };
    let lab = tempfile::tempdir().unwrap();
    let tally = outputs::campaign(&binary, lab.path(), 7, 20).unwrap();
    sound(&tally);
    assert_eq!(tally.survivors, 20);
}

#[test]
fn clocks_that_are_set_change_nothing() {
    let Some(binary) = binary() else { return };
    let lab = tempfile::tempdir().unwrap();
    let tally = clocks::campaign(&binary, lab.path(), 7, 3, clocks::Set::Wall).unwrap();
    sound(&tally);
}

#[test]
fn the_index_of_a_copy_is_not_used() {
    let lab = tempfile::tempdir().unwrap();
    let tally = copies::campaign(lab.path(), 7, 3, None);
    sound(&tally);
    assert_eq!(tally.survivors, 3);
}

#[test]
fn rot_is_named_or_harmless() {
    let lab = tempfile::tempdir().unwrap();
    let tally = flips::rot(lab.path(), 7, 300, |_| {});
    sound(&tally);
    // Whole files are damaged, too; and some bytes are never read.
    assert!(tally.faults > 400 && tally.survivors > 20, "{tally:?}");
}
