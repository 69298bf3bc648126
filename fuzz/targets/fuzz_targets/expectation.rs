//! libFuzzer's entry to [`fathom_fuzz::expectation`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::expectation::check(data));
