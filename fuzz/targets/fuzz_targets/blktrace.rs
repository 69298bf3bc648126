//! libFuzzer's entry to [`fathom_fuzz::blktrace`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::blktrace::check(data));
