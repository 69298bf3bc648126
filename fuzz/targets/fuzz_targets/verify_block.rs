//! libFuzzer's entry to [`fathom_fuzz::verify_block`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::verify_block::check(data));
