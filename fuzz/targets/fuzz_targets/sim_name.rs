//! libFuzzer's entry to [`fathom_fuzz::sim_name`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::sim_name::check(data));
