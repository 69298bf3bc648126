//! libFuzzer's entry to [`fathom_fuzz::trace`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::trace::check(data));
