//! Fuzz target: files of scores, and their comparison.

use super::moved::{By, MoveOptions, moved_by_name};
use super::{compare, read_scores};
use crate::fuzz::dice::Dice;
use crate::model::Limits;

pub fn scores(data: &[u8]) {
    let mut dice = Dice::of(data);
    let limits = Limits {
        line_bytes: dice.one_of([20, 1 << 20]),
        ..Limits::default()
    };
    let Ok(all) = read_scores(data, "scores", &limits) else {
        return;
    };
    let fit = |score: f64| score.is_finite() && score.is_sign_positive();
    assert!(all.rows.iter().all(|row| fit(row.score)));
    assert!(all.len() <= data.split(|&byte| byte == b'\n').count());
    let mut part = all.clone();
    part.rows.truncate(dice.below(all.len() + 1));
    if let Ok(same) = compare(all.clone(), all.clone()) {
        assert_eq!((same.l1, same.linf), (0.0, 0.0));
        assert!(same.kendall_tau_b.is_none_or(|tau| tau == 1.0));
        assert_eq!(same.common_pages, all.len() as u64);
    }
    let wanted = MoveOptions {
        count: dice.below(5),
        by: dice.one_of([By::Change, By::Relative, By::Rank]),
        top: dice.one_of([1, u64::MAX]),
        certain_only: dice.below(2) == 1,
    };
    if let Ok(found) = moved_by_name(all.clone(), part.clone(), [Some(0.1), None], wanted) {
        assert_eq!(found.summary.common_pages, part.len() as u64);
        assert_eq!(found.summary.missing_pages, (all.len() - part.len()) as u64);
        assert!(found.rose.len().max(found.missing.len()) <= wanted.count);
    }
    let sides = (compare(all.clone(), part.clone()), compare(part, all));
    if let (Ok(one), Ok(other)) = sides {
        // Each share is rounded once.
        assert!((0.0..=2.0 + 1e-9).contains(&one.l1), "{}", one.l1);
        assert_eq!(
            (one.l1, one.linf),
            (other.l1, other.linf),
            "a distance has no direction"
        );
        assert!(
            one.kendall_tau_b
                .is_none_or(|tau| (-1.0..=1.0).contains(&tau))
        );
        assert!((0.0..=1.0 + 1e-9).contains(&one.rank_biased_overlap));
    }
}
