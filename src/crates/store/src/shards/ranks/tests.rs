use proptest::prelude::*;

use super::*;
use crate::rank::peers::OneProcess;
use crate::rank::peers::threads::with_processes;
use crate::snapshot::importance_of;

/// Scores in memory: importance, and half of it as the distributed value; and their certified bound.
struct MemoryScores(Vec<f64>, Option<f64>);

impl Scores for MemoryScores {
    fn certificate(&self) -> Option<Certificate> {
        Some(Certificate {
            residual_l1: 0.0,
            rounding_l1: 0.0,
            received_l1: self.1,
            distributed_l1: None,
        })
    }

    fn effort(&self) -> Effort {
        Effort {
            until: 0.5,
            reached: true,
            sweeps: 3,
            links_touched: 2,
            links: 1,
            resumed: false,
        }
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        out.clear();
        let pages = &self.0[first as usize..first as usize + len];
        out.extend(
            pages
                .iter()
                .map(|importance| (*importance, importance / 2.0)),
        );
        Ok(())
    }
}

/// Shard, and the location of each page that it knows: the owner, and the number there.
struct Shard {
    scores: MemoryScores,
    remote: Vec<RemotePages>,
    pages: Vec<(usize, u32)>,
}

/// Creates shards with own pages of these importances. Each knows some pages of the others, numbered among its own; its
/// scores for these are wrong.
fn shards(own: &[Vec<f64>], seed: u64) -> Vec<Shard> {
    let mut state = seed;
    let mut chance = |of: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % of
    };
    // Own pages have numbers once all shards know how many remote ones are between them.
    let mut known: Vec<Vec<(usize, usize)>> = Vec::new();
    for (shard, pages) in own.iter().enumerate() {
        let mut all: Vec<(usize, usize)> = (0..pages.len()).map(|page| (shard, page)).collect();
        for (other, pages) in own.iter().enumerate().filter(|(other, _)| *other != shard) {
            for page in (0..pages.len())
                .filter(|_| chance(3) == 0)
                .collect::<Vec<_>>()
            {
                let at = chance(all.len() as u64 + 1) as usize;
                all.insert(at, (other, page));
            }
        }
        known.push(all);
    }
    let number = |owner: usize, page: usize| {
        let at = known[owner].iter().position(|of| *of == (owner, page));
        at.unwrap() as u32
    };
    let shard = |(shard, known): (usize, &Vec<(usize, usize)>)| {
        let mut remote = vec![Vec::new(); own.len()];
        let mut scores = Vec::new();
        for (&(owner, page), here) in known.iter().zip(0u32..) {
            scores.push(own[owner][page]);
            if owner != shard {
                remote[owner].push((number(owner, page), here));
                scores[here as usize] += 1.0;
            }
        }
        let pages = known
            .iter()
            .map(|&(owner, page)| (owner, number(owner, page)));
        let remote = remote.into_iter().map(|mut pages: Vec<(u32, u32)>| {
            pages.sort_unstable();
            let (there, here) = pages.into_iter().unzip();
            RemotePages { here, there }
        });
        Shard {
            pages: pages.collect(),
            scores: MemoryScores(scores, None),
            remote: remote.collect(),
        }
    };
    known.iter().enumerate().map(shard).collect()
}

/// Results of each shard of a process: ranks, and scores as bits.
type ShardResults = Vec<(usize, Vec<u64>, Vec<(u64, u64)>)>;

fn rank_of(shards: &[Shard], peers: &mut dyn Peers) -> ShardResults {
    rank_by(shards, None, peers)
}

fn rank_by(shards: &[Shard], units: Option<ScoreUnits>, peers: &mut dyn Peers) -> ShardResults {
    let local = peers.local().to_vec();
    let given = local.iter().map(|at| ShardScores {
        scores: &shards[*at].scores,
        pages: shards[*at].pages.len() as u64,
        remote: &shards[*at].remote,
    });
    let given: Vec<_> = given.collect();
    let rankings = rank_together(&given, (Estimator::Received, units), peers).unwrap();
    let found = local.into_iter().zip(rankings).map(|(shard, ranking)| {
        assert_eq!(ranking.effort(), shards[shard].scores.effort());
        let own = shards.iter().enumerate().map(|(shard, of)| {
            let is_own = |page: &&(usize, u32)| page.0 == shard;
            of.pages.iter().filter(is_own).count() as u64
        });
        assert_eq!(ranking.all_pages, own.sum::<u64>());
        // Reads in pieces that begin anywhere.
        let mut scores = Vec::new();
        let (mut piece, mut first) = (Vec::new(), 0);
        while first < ranking.ranks.len() {
            let len = (first + 1).min(ranking.ranks.len() - first);
            ranking.read(first as u64, len, &mut piece).unwrap();
            scores.extend(piece.iter().map(|of| (of.0.to_bits(), of.1.to_bits())));
            first += len;
        }
        (shard, ranking.ranks.to_vec(), scores)
    });
    found.collect()
}

/// Compares the ranking of shards with a sort of all values, however they are distributed over processes.
fn check(own: &[Vec<f64>], seed: u64) {
    let shards = shards(own, seed);
    let found = rank_of(&shards, &mut OneProcess::new(shards.len()));
    for (shard, ranks, scores) in &found {
        for (at, &(owner, there)) in shards[*shard].pages.iter().enumerate() {
            let importance = shards[owner].scores.0[there as usize];
            let all = own.iter().flatten();
            let rank = 1 + all.filter(|other| **other > importance).count() as u64;
            assert_eq!(ranks[at], rank, "seed {seed}, shard {shard}, page {at}");
            let distributed = if owner == *shard {
                importance / 2.0
            } else {
                0.0f64
            };
            assert_eq!(scores[at], (importance.to_bits(), distributed.to_bits()));
        }
    }
    for processes in 1..=3 {
        let mut dealt =
            with_processes(shards.len(), processes, |peers| rank_of(&shards, peers)).concat();
        dealt.sort_unstable();
        assert!(dealt == found, "seed {seed}, {processes} processes");
    }
}

#[test]
fn ranks_are_those_of_a_sort_of_all() {
    let spread = |seed: u64, at: usize| {
        let bits = (seed + at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (bits >> 12) as f64 / (1u64 << 52) as f64
    };
    for count in [1, 2, 4, 7] {
        for seed in 0..6 {
            let len = |shard: usize| [40, 0, 1, 90, 7, 300, 3][(shard + seed as usize) % 7];
            let of = |value: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
                let pages = |shard| {
                    (0..len(shard))
                        .map(|page| value(shard * 1000 + page))
                        .collect()
                };
                (0..count).map(pages).collect()
            };
            check(&of(&|at| spread(seed, at)), seed);
            // Ties inside shards and between them, and both zeros.
            let few = |at| [0.0, -0.0, 0.25, 1e-300, 0.1, 0.1][(spread(seed, at) * 6.0) as usize];
            check(&of(&few), seed);
            check(&of(&|_| 0.125), seed);
            // Each shard has a range of its own, or values are in order.
            check(&of(&|at| 1.0 / (1 + at) as f64), seed);
        }
        check(&vec![Vec::new(); count], 0);
        let mut one = vec![Vec::new(); count];
        one[count / 2].push(1.0);
        check(&one, 0);
    }
}

/// More values than there are samples, and enough for sorting with two threads.
#[test]
fn many_values_have_their_ranks() {
    let own: Vec<Vec<f64>> = (0..3u64)
        .map(|shard| {
            let value = |at: u64| ((at * 7919 + shard * 31) % 20_011) as f64 / 20_011.0;
            (0..36_000).map(value).collect()
        })
        .collect();
    let mut all: Vec<f64> = own.iter().flatten().copied().collect();
    all.sort_by(|one, other| other.total_cmp(one));
    let given: Vec<MemoryScores> = own.into_iter().map(|of| MemoryScores(of, None)).collect();
    let remote = vec![RemotePages::default(); 3];
    let shards = given.iter().map(|scores| ShardScores {
        scores,
        pages: 36_000,
        remote: &remote,
    });
    let shards: Vec<_> = shards.collect();
    let rankings = rank_together(
        &shards,
        (Estimator::Received, None),
        &mut OneProcess::new(3),
    )
    .unwrap();
    for (of, ranking) in given.iter().zip(rankings) {
        for (value, rank) in of.0.iter().zip(&ranking.ranks) {
            let before = all.partition_point(|other| other > value);
            assert_eq!(*rank, before as u64 + 1);
        }
    }
}

/// Importances that are whole multiples of units take fewer bytes than others, and give the same result.
#[test]
fn units_take_fewer_bytes() {
    let units = ScoreUnits {
        offset: 123_456_789.37,
        sum: (1u64 << 58) as f64,
    };
    let own: Vec<Vec<f64>> = (0..4u64)
        .map(|shard| {
            let value = |page: u64| {
                let whole = (shard * 2_000 + page).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 28;
                // Some pages are below 0, and have 0.
                units.importance(whole as i64 - (1 << 30))
            };
            (0..2_000).map(value).collect()
        })
        .collect();
    assert!(own.iter().flatten().any(|importance| *importance == 0.0));
    let shards = shards(&own, 1);
    let ranked = |units: Option<ScoreUnits>| {
        with_processes(4, 2, |peers| {
            let found = rank_by(&shards, units, peers);
            (found, peers.sent)
        })
    };
    let (exact, plain) = (ranked(Some(units)), ranked(None));
    for ((found, sent), (expected, most)) in exact.into_iter().zip(plain) {
        assert!(found == expected);
        assert!(sent * 10 < most * 8, "{sent} of {most}");
    }
    // Units of which importances are not multiples change nothing.
    let other = ScoreUnits {
        offset: 0.5,
        sum: 3.0,
    };
    assert!(ranked(Some(other)) == ranked(None));
}

/// With a bound, importances of remote pages are rounded down to a part of it, in half as many bytes; ranks are exact, and
/// own pages are as they were.
#[test]
fn remote_importances_are_rounded_to_a_part_of_the_bound() {
    let pages = 8_000.0;
    let units = ScoreUnits {
        offset: 1_234.5,
        sum: pages * (1u64 << 35) as f64,
    };
    let own: Vec<Vec<f64>> = (0..4u64)
        .map(|shard| {
            let value = |page: u64| {
                let whole = (shard * 2_000 + page).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 28;
                units.importance(whole as i64 - (1 << 30))
            };
            (0..2_000).map(value).collect()
        })
        .collect();
    let mut shards = shards(&own, 1);
    let ranked = |shards: &[Shard]| {
        let of_processes = with_processes(4, 2, |peers| {
            (rank_by(shards, Some(units), peers), peers.sent)
        });
        let (found, sent): (Vec<_>, Vec<_>) = of_processes.into_iter().unzip();
        (found.concat(), sent.iter().sum::<u64>())
    };
    let (exact, most) = ranked(&shards);
    let bound = 1e-2;
    shards
        .iter_mut()
        .for_each(|shard| shard.scores.1 = Some(bound));
    let (rounded, sent) = ranked(&shards);
    assert!(sent * 10 < most * 8, "{sent} of {most}");
    let mut is_rounded = false;
    for ((shard, ranks, scores), (_, exact_ranks, exact)) in rounded.into_iter().zip(exact) {
        assert!(ranks == exact_ranks);
        let mut error = 0.0;
        for ((found, exact), page) in scores.iter().zip(&exact).zip(&shards[shard].pages) {
            if page.0 == shard {
                assert_eq!(found, exact);
            }
            let down = f64::from_bits(exact.0) - f64::from_bits(found.0);
            assert!(down >= 0.0);
            error += down;
            is_rounded |= found != exact;
        }
        assert!(error < bound / 64.0, "{error}");
    }
    assert!(is_rounded);
}

/// By the distributed value, where that is importance.
#[test]
fn importance_is_what_the_estimator_reads() {
    struct SwappedScores;
    impl Scores for SwappedScores {
        fn certificate(&self) -> Option<Certificate> {
            None
        }

        fn effort(&self) -> Effort {
            MemoryScores(Vec::new(), None).effort()
        }

        fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
            let all = [(0.75, 0.25), (0.25, 0.75)];
            out.clear();
            out.extend_from_slice(&all[first as usize..first as usize + len]);
            Ok(())
        }
    }
    for (estimator, ranks) in [
        (Estimator::Received, [1, 2]),
        (Estimator::Distributed, [2, 1]),
    ] {
        let shard = ShardScores {
            scores: &SwappedScores,
            pages: 2,
            remote: &[RemotePages::default()],
        };
        let ranking = rank_together(&[shard], (estimator, None), &mut OneProcess::new(1)).unwrap();
        assert_eq!(ranking[0].ranks, ranks);
    }
}

#[test]
fn pages_that_do_not_fit_are_refused() {
    let given = MemoryScores(vec![0.5; 4], None);
    let remote = |here: &[u32], there: &[u32]| RemotePages {
        here: here.to_vec(),
        there: there.to_vec(),
    };
    let nothing = RemotePages::default;
    for (first, second, why) in [
        (
            vec![nothing(), remote(&[4], &[0])],
            vec![nothing(), nothing()],
            "remote page 4",
        ),
        (
            vec![nothing(), remote(&[1, 1], &[0, 1])],
            vec![nothing(), nothing()],
            "there twice",
        ),
        (
            vec![nothing()],
            vec![nothing(), nothing()],
            "not of these shards",
        ),
        (
            vec![nothing(), remote(&[1, 2], &[1, 0])],
            vec![nothing(), nothing()],
            "order of their owner",
        ),
        (
            vec![nothing(), remote(&[1], &[4])],
            vec![nothing(), nothing()],
            "asks for page 4",
        ),
        (
            vec![nothing(), remote(&[1], &[2])],
            vec![remote(&[2], &[0]), nothing()],
            "asks for page 2",
        ),
    ] {
        let shards = [&first, &second].map(|remote| ShardScores {
            scores: &given,
            pages: 4,
            remote,
        });
        let ranked = rank_together(
            &shards,
            (Estimator::Received, None),
            &mut OneProcess::new(2),
        );
        let error = ranked.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

proptest! {
    #[test]
    fn units_come_back(
        whole in -(1i64 << 50)..1 << 53,
        offset in -1e12..1e12f64,
        sum in 1e15..3e18f64,
    ) {
        let units = ScoreUnits { offset, sum };
        let importance = units.importance(whole);
        let found = units.of(importance);
        prop_assert_eq!(found.map(|found| units.importance(found).to_bits()), Some(importance.to_bits()));
        prop_assert_eq!(importance_of(descending_key(importance)), importance);
    }

    #[test]
    fn any_shards_are_ranked(
        own in prop::collection::vec(prop::collection::vec(0u8..12, 0..30), 1..6),
        seed in any::<u64>(),
    ) {
        let own: Vec<Vec<f64>> = own.iter()
            .map(|pages| pages.iter().map(|value| f64::from(*value) / 12.0).collect())
            .collect();
        check(&own, seed);
    }

    #[test]
    fn any_message_is_survived(
        one in prop::collection::vec(any::<u8>(), 0..60),
        other in prop::collection::vec(any::<u8>(), 0..60),
        pages in 0usize..20,
    ) {
        let units = Some(ScoreUnits { offset: 0.5, sum: 3.0 });
        let _ = merge(&[one.clone(), other], units);
        let _ = take(&mut &one[..]);
        let _ = answered(&one, pages, units);
        let _ = take_pages(&one);
    }
}
