//! libFuzzer's entry to [`fathom_fuzz::twin`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::twin::check(data));
