//! Short runs of the campaign, for every `cargo test`.

use super::*;

#[track_caller]
fn sound(tally: &Tally) {
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
}

#[test]
fn a_cut_at_every_operation_loses_nothing() {
    let lab = tempfile::tempdir().unwrap();
    let tally = cuts::exhaustive(&Scenario::small(lab.path(), 7).unwrap(), 7, false);
    sound(&tally);
    assert!(tally.cuts > 600 && tally.disks > 100, "{tally:?}");
}

#[test]
fn random_cuts_lose_nothing() {
    let lab = tempfile::tempdir().unwrap();
    let tally = cuts::random(lab.path(), 7, 500, None);
    sound(&tally);
    assert!(tally.cuts_again > 500, "{tally:?}");
}

#[test]
fn a_failed_operation_is_reported_and_loses_nothing() {
    let lab = tempfile::tempdir().unwrap();
    let tally = errors::sweep(&Scenario::small(lab.path(), 7).unwrap(), 7);
    sound(&tally);
    assert!(tally.faults > 200, "{tally:?}");
}

#[test]
fn rot_is_named_or_harmless() {
    let lab = tempfile::tempdir().unwrap();
    let tally = flips::rot(lab.path(), 7, 300, |_| {});
    sound(&tally);
    // Whole files are damaged, too; and there are bytes that nobody reads.
    assert!(tally.faults > 400 && tally.survivors > 20, "{tally:?}");
}
