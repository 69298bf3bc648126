//! libFuzzer's entry to [`fathom_fuzz::suite`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::suite::check(data));
