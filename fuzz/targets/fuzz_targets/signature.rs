//! libFuzzer's entry to [`fathom_fuzz::signature`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::signature::check(data));
