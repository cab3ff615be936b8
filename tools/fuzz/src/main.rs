//! libFuzzer's main program around one target of `cashrank::fuzz`. The environment variable
//! `FUZZ_TARGET` names it; without a known name all names are printed. Options are libFuzzer's.

#![no_main]

use std::sync::LazyLock;

use cashrank::fuzz::TARGETS;

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => target.run,
        None => {
            TARGETS
                .iter()
                .for_each(|target| println!("{}", target.name));
            std::process::exit(2);
        }
    }
});

libfuzzer_sys::fuzz_target!(
    init: {
        LazyLock::force(&RUN);
    },
    |data: &[u8]| (*RUN)(data)
);
