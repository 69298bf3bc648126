//! libFuzzer's entry to [`fathom_fuzz::observed`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::observed::check(data));
