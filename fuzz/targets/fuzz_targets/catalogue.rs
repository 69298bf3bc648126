//! libFuzzer's entry to [`fathom_fuzz::catalogue`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::catalogue::check(data));
