//! libFuzzer's entry to [`fathom_fuzz::iolog`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::iolog::check(data));
