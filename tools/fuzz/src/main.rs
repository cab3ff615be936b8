//! libFuzzer's main program for the target of `cashrank::fuzz` that has the program's name. The options are
//! libFuzzer's.

#![no_main]

const RUN: fn(&[u8]) = match cashrank::fuzz::named(env!("CARGO_BIN_NAME")) {
    Some(run) => run,
    None => panic!("no such target"),
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    cashrank::fuzz::pass_over_fenced();
    RUN(data);
});
