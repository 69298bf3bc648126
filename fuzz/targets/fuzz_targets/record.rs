//! libFuzzer's entry to [`fathom_fuzz::record`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::record::check(data));
