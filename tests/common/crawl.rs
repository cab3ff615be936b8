//! Random crawls from a seed, for tests and for the fault campaign.
#![allow(dead_code)] // Each user uses its part.

use serde_json::json;

/// Random numbers from a seed (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    /// Returns a number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    pub fn coin(&mut self) -> bool {
        self.roll(2) == 1
    }

    /// Returns the `n`th of many streams with one seed. Their states are mixed twice: states that differ by a multiple
    /// of the step would give the same numbers, shifted.
    #[allow(dead_code)] // Not every test binary needs it.
    pub fn numbered(seed: u64, n: u64) -> Dice {
        Dice(Dice(seed).fork().0 ^ n).fork()
    }

    /// Returns another stream, seeded by this one's next number.
    pub fn fork(&mut self) -> Dice {
        Dice(self.roll(u64::MAX))
    }
}

/// Returns a crawl of `records` records, one per line, with recrawls, gone and unchanged pages, failures, redirects,
/// self-links, repeated links and times.
pub fn crawl(seed: u64, records: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let pages = records / 3 + 2;
    let url = |n: u64| format!("http://h{}.example/p{n}", n % 7);
    (0..records)
        .map(|at| {
            let mut record =
                json!({"url": url(dice.roll(pages)), "fetched_at": 1_400_000_000 + at / 3});
            let links: Vec<String> = (0..dice.roll(12))
                .map(|_| url(dice.roll(2 * pages)))
                .collect();
            match dice.roll(20) {
                0 => record["status"] = json!(404),
                1 => record["status"] = json!(410),
                2 => record["status"] = json!(304),
                3 => record["status"] = json!(503),
                4 => {
                    record["status"] = json!(301);
                    record["redirect"] = json!(url(dice.roll(pages)));
                }
                5 => {}
                _ => {
                    record["status"] = json!(200);
                    record["links"] = json!(links);
                }
            }
            format!("{record}\n")
        })
        .collect()
}
