//! libFuzzer's entry to [`fathom_fuzz::mounts`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::mounts::check(data));
