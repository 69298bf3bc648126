//! libFuzzer's entry to [`fathom_fuzz::import`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::import::check(data));
